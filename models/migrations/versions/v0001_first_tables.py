"""documents, readings, pages, submissions and sources"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "documents",
        sa.Column("document_id", sa.String(length=64), nullable=False),
        sa.Column("media_type", sa.String(length=80), nullable=False),
        sa.Column("byte_count", sa.BigInteger(), nullable=False),
        sa.Column("page_count", sa.Integer(), nullable=False),
        sa.Column("attachments", sa.JSON(), nullable=False),
        sa.Column("created_at_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("document_id", name=op.f("pk_documents")),
    )
    op.create_table(
        "submissions",
        sa.Column("submission_id", sa.Integer(), nullable=False),
        sa.Column("out_dir", sa.String(), nullable=False),
        sa.Column("cost_centre", sa.String(), nullable=True),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("created_at_s", sa.Double(), nullable=False),
        sa.Column("finished_at_s", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("submission_id", name=op.f("pk_submissions")),
    )
    op.create_table(
        "readings",
        sa.Column("reading_id", sa.Integer(), nullable=False),
        sa.Column("document_id", sa.String(length=64), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column(
            "state",
            sa.Enum("open", "complete", name="readingstate", native_enum=False, length=20),
            nullable=False,
        ),
        sa.Column("created_at_s", sa.Double(), nullable=False),
        sa.Column("completed_at_s", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.document_id"], name=op.f("fk_readings_document_id_documents")
        ),
        sa.PrimaryKeyConstraint("reading_id", name=op.f("pk_readings")),
        sa.UniqueConstraint("document_id", "fingerprint", name=op.f("uq_readings_document_id")),
    )
    op.create_table(
        "pages",
        sa.Column("reading_id", sa.Integer(), nullable=False),
        sa.Column("page_number", sa.Integer(), nullable=False),
        sa.Column(
            "state",
            sa.Enum("pending", "running", "done", "failed", name="pagestate", native_enum=False, length=20),
            nullable=False,
        ),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(), nullable=True),
        sa.Column("lease_expires_at_s", sa.Double(), nullable=True),
        sa.Column("route", sa.String(length=20), nullable=True),
        sa.Column("elapsed_s", sa.Double(), nullable=True),
        sa.Column("error_code", sa.String(length=80), nullable=True),
        sa.Column("error_message", sa.String(), nullable=True),
        sa.Column("summary", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["reading_id"], ["readings.reading_id"], name=op.f("fk_pages_reading_id_readings")
        ),
        sa.PrimaryKeyConstraint("reading_id", "page_number", name=op.f("pk_pages")),
    )
    with op.batch_alter_table("pages", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_pages_reading_id_pages_state"), ["reading_id", "state"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_pages_state_pages_lease_owner"), ["state", "lease_owner"], unique=False
        )

    op.create_table(
        "sources",
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("submission_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False),
        sa.Column("output_stem", sa.String(), nullable=False),
        sa.Column("reading_id", sa.Integer(), nullable=True),
        sa.Column("error_code", sa.String(length=80), nullable=True),
        sa.Column("error_message", sa.String(), nullable=True),
        sa.Column("written_at_s", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["reading_id"], ["readings.reading_id"], name=op.f("fk_sources_reading_id_readings")
        ),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submissions.submission_id"],
            name=op.f("fk_sources_submission_id_submissions"),
        ),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_sources")),
        sa.UniqueConstraint("submission_id", "name", name=op.f("uq_sources_submission_id")),
    )
    with op.batch_alter_table("sources", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_sources_name"), ["name"], unique=False)
        batch_op.create_index(batch_op.f("ix_sources_reading_id"), ["reading_id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("sources", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_sources_reading_id"))
        batch_op.drop_index(batch_op.f("ix_sources_name"))

    op.drop_table("sources")
    with op.batch_alter_table("pages", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_pages_state_pages_lease_owner"))
        batch_op.drop_index(batch_op.f("ix_pages_reading_id_pages_state"))

    op.drop_table("pages")
    op.drop_table("readings")
    op.drop_table("submissions")
    op.drop_table("documents")
