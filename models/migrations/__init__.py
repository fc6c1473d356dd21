"""The database's history, one step a file in ``versions``, and the two moves along it."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def migration_config(connection: Connection) -> Config:
    """Alembic's view of these migrations over an open connection; no configuration file is involved."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Bring the database up to ``revision``; does nothing when it is there. A database at a
    revision that this program does not know raises ``alembic.util.CommandError``."""
    command.upgrade(migration_config(connection), revision)


def downgrade(connection: Connection, revision: str) -> None:
    command.downgrade(migration_config(connection), revision)
