"""calls to the VLM, and why a page went without its text"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("pages", schema=None) as batch_op:
        batch_op.add_column(sa.Column("degraded_code", sa.String(length=80), nullable=True))
    op.create_table(
        "vlm_attempts",
        sa.Column("vlm_attempt_id", sa.Integer(), nullable=False),
        sa.Column("reading_id", sa.Integer(), nullable=False),
        sa.Column("page_number", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("submission_id", sa.Integer(), nullable=True),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("model_id", sa.String(), nullable=False),
        sa.Column("tier", sa.String(), nullable=False),
        sa.Column("width_px", sa.Integer(), nullable=False),
        sa.Column("height_px", sa.Integer(), nullable=False),
        sa.Column("predicted_visual_tokens", sa.Integer(), nullable=False),
        sa.Column("temperature", sa.Double(), nullable=False),
        sa.Column("started_at_s", sa.Double(), nullable=False),
        sa.Column("verdict", sa.String(length=40), nullable=True),
        sa.Column("evidence", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("message", sa.String(), nullable=True),
        sa.Column("prompt_tokens", sa.Integer(), nullable=True),
        sa.Column("cached_tokens", sa.Integer(), nullable=True),
        sa.Column("completion_tokens", sa.Integer(), nullable=True),
        sa.Column("reasoning_tokens", sa.Integer(), nullable=True),
        sa.Column("usage_is_estimated", sa.Boolean(), nullable=True),
        sa.Column("elapsed_s", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["reading_id", "page_number"],
            ["pages.reading_id", "pages.page_number"],
            name=op.f("fk_vlm_attempts_reading_id_pages"),
        ),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submissions.submission_id"],
            name=op.f("fk_vlm_attempts_submission_id_submissions"),
        ),
        sa.PrimaryKeyConstraint("vlm_attempt_id", name=op.f("pk_vlm_attempts")),
        sa.UniqueConstraint("reading_id", "page_number", "attempt", name=op.f("uq_vlm_attempts_reading_id")),
    )
    with op.batch_alter_table("vlm_attempts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_vlm_attempts_verdict"), ["verdict"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("vlm_attempts", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_vlm_attempts_verdict"))
    op.drop_table("vlm_attempts")
    op.drop_column("pages", "degraded_code")
