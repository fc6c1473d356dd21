"""Alembic runs this file: migrate over the connection that ``models.migrations`` hands over."""

from __future__ import annotations

from alembic import context

from models import api_tables  # noqa: F401 — its rows are in the metadata then
from models.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
    compare_type=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
