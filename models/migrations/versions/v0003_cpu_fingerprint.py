"""what the CPU's part of a reading depends on, so that a run with another VLM can take it over"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("readings", schema=None) as batch_op:
        batch_op.add_column(sa.Column("cpu_fingerprint", sa.String(length=64), nullable=True))
        batch_op.create_index(
            batch_op.f("ix_readings_document_id_readings_cpu_fingerprint"),
            ["document_id", "cpu_fingerprint"],
            unique=False,
        )


def downgrade() -> None:
    op.drop_index(op.f("ix_readings_document_id_readings_cpu_fingerprint"), table_name="readings")
    op.drop_column("readings", "cpu_fingerprint")
