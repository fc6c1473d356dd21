"""what the API keeps: keys, uploads, bytes that arrive, callbacks, reviews"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

SORTED_TEXT: Final = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("key_id", sa.Integer(), nullable=False),
        sa.Column("prefix", sa.String(length=16), nullable=False),
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("cost_centre", SORTED_TEXT, nullable=False),
        sa.Column("scopes", sa.String(length=40), nullable=False),
        sa.Column("requests_per_min", sa.Integer(), nullable=True),
        sa.Column("max_open_documents", sa.Integer(), nullable=True),
        sa.Column("created_at_s", sa.Double(), nullable=False),
        sa.Column("expires_at_s", sa.Double(), nullable=True),
        sa.Column("revoked_at_s", sa.Double(), nullable=True),
        sa.Column("last_used_at_s", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("prefix", name=op.f("uq_api_keys_prefix")),
    )
    op.create_index(op.f("ix_api_keys_cost_centre"), "api_keys", ["cost_centre"])
    op.create_table(
        "uploads",
        sa.Column("upload_id", sa.String(length=32), nullable=False),
        sa.Column("submission_id", sa.Integer(), nullable=False),
        sa.Column("cost_centre", SORTED_TEXT, nullable=False),
        sa.Column("key_id", sa.Integer(), nullable=True),
        sa.Column("idempotency_key", sa.String(length=255), nullable=True),
        sa.Column("request_sha256", sa.String(length=64), nullable=True),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("callback_url", sa.String(), nullable=True),
        sa.Column("created_at_s", sa.Double(), nullable=False),
        sa.Column("erased_at_s", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submissions.submission_id"],
            name=op.f("fk_uploads_submission_id_submissions"),
        ),
        sa.ForeignKeyConstraint(["key_id"], ["api_keys.key_id"], name=op.f("fk_uploads_key_id_api_keys")),
        sa.PrimaryKeyConstraint("upload_id", name=op.f("pk_uploads")),
        sa.UniqueConstraint("submission_id", name=op.f("uq_uploads_submission_id")),
        sa.UniqueConstraint("cost_centre", "idempotency_key", name=op.f("uq_uploads_cost_centre")),
    )
    op.create_index(
        op.f("ix_uploads_cost_centre_uploads_created_at_s_uploads_upload_id"),
        "uploads",
        ["cost_centre", "created_at_s", "upload_id"],
    )
    op.create_index(op.f("ix_uploads_created_at_s"), "uploads", ["created_at_s"])
    op.create_table(
        "arriving_blobs",
        sa.Column("arriving_blob_id", sa.Integer(), nullable=False),
        sa.Column("blob_id", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("noted_at_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("arriving_blob_id", name=op.f("pk_arriving_blobs")),
    )
    op.create_index(op.f("ix_arriving_blobs_blob_id"), "arriving_blobs", ["blob_id"])
    op.create_table(
        "callbacks",
        sa.Column("callback_id", sa.Integer(), nullable=False),
        sa.Column("upload_id", sa.String(length=32), nullable=False),
        sa.Column("message_id", sa.String(length=64), nullable=False),
        sa.Column("event", sa.String(length=40), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at_s", sa.Double(), nullable=False),
        sa.Column("last_status", sa.Integer(), nullable=True),
        sa.Column("last_error", sa.String(), nullable=True),
        sa.Column("created_at_s", sa.Double(), nullable=False),
        sa.Column("delivered_at_s", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["uploads.upload_id"], name=op.f("fk_callbacks_upload_id_uploads")
        ),
        sa.PrimaryKeyConstraint("callback_id", name=op.f("pk_callbacks")),
        sa.UniqueConstraint("message_id", name=op.f("uq_callbacks_message_id")),
        sa.UniqueConstraint("upload_id", "event", name=op.f("uq_callbacks_upload_id")),
    )
    op.create_index(
        op.f("ix_callbacks_state_callbacks_next_attempt_at_s"), "callbacks", ["state", "next_attempt_at_s"]
    )
    op.create_table(
        "reviews",
        sa.Column("review_id", sa.Integer(), nullable=False),
        sa.Column("reading_id", sa.Integer(), nullable=False),
        sa.Column("page_number", sa.Integer(), nullable=False),
        sa.Column("cost_centre", SORTED_TEXT, nullable=False),
        sa.Column("reviewer", sa.String(), nullable=False),
        sa.Column("needs_vlm", sa.Boolean(), nullable=False),
        sa.Column("classes", sa.JSON(), nullable=False),
        sa.Column("remark", sa.String(), nullable=True),
        sa.Column("reviewed_at_s", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["reading_id", "page_number"],
            ["pages.reading_id", "pages.page_number"],
            name=op.f("fk_reviews_reading_id_pages"),
        ),
        sa.PrimaryKeyConstraint("review_id", name=op.f("pk_reviews")),
        sa.UniqueConstraint("reading_id", "page_number", "reviewer", name=op.f("uq_reviews_reading_id")),
    )
    op.create_index(op.f("ix_reviews_cost_centre"), "reviews", ["cost_centre"])


def downgrade() -> None:
    for table in ("reviews", "callbacks", "arriving_blobs", "uploads", "api_keys"):
        op.drop_table(table)
