"""how urgent a key of the API may make what it sends"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Keys that are there may go on as before. So may those that programs of before make: they leave it out."""
    op.add_column("api_keys", sa.Column("max_priority", sa.Integer(), server_default="9", nullable=False))


def downgrade() -> None:
    op.drop_column("api_keys", "max_priority")
