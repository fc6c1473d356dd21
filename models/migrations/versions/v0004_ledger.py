"""the ledger, budgets, and what an open call to the VLM reserves of them"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

SORTED_TEXT: Final = sa.String().with_variant(sa.String(collation="C"), "postgresql")
ENTRY_ID: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

STATEMENT_COLUMNS: Final = [
    *("day", "team", "cost_centre", "currency", "kind", "model_id", "reason"),
    *("is_forced", "is_wasted", "usage_is_estimated"),
    *("pages", "vlm_pages", "cached_pages", "cpu_pages", "cpu_s"),
    *("predicted_prompt_tokens", "prompt_tokens", "cached_tokens"),
    *("completion_tokens", "reasoning_tokens", "avoided_tokens"),
    *("cost_micro", "avoided_micro"),
]

SETTLED: Final = {
    "ledger": ("TRUE", "the ledger is only added to; book a reversal"),
    "vlm_attempts": ("OLD.verdict IS NOT NULL", "a call that is closed stays as it was booked"),
}
"""Table, which of its rows are settled, and what whoever changes one is told."""

REPLACED: Final = {
    "ledger": "OLD.entry_id = NEW.entry_id OR OLD.entry_key = NEW.entry_key "
    "OR OLD.reverses_entry_id = NEW.reverses_entry_id",
    "vlm_attempts": "OLD.vlm_attempt_id = NEW.vlm_attempt_id OR (OLD.reading_id = NEW.reading_id "
    "AND OLD.page_number = NEW.page_number AND OLD.attempt = NEW.attempt)",
}
"""Rows that SQLite's INSERT OR REPLACE would delete, without a word to the triggers of DELETE."""


def upgrade() -> None:
    op.create_table(
        "budget_months",
        sa.Column("cost_centre", SORTED_TEXT, nullable=False),
        sa.Column("month", sa.String(length=7), nullable=False),
        sa.Column("limit_micro", sa.BigInteger(), nullable=True),
        sa.Column("limit_tokens", sa.BigInteger(), nullable=True),
        sa.Column("reserved_micro", sa.BigInteger(), nullable=False),
        sa.Column("reserved_tokens", sa.BigInteger(), nullable=False),
        sa.Column("spent_micro", sa.BigInteger(), nullable=False),
        sa.Column("spent_tokens", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("cost_centre", "month", name=op.f("pk_budget_months")),
    )
    op.create_table(
        "budgets",
        sa.Column("cost_centre", SORTED_TEXT, nullable=False),
        sa.Column("limit_micro", sa.BigInteger(), nullable=True),
        sa.Column("currency", sa.String(length=3), nullable=True),
        sa.Column("limit_tokens", sa.BigInteger(), nullable=True),
        sa.Column("warn_percent", sa.Integer(), nullable=False),
        sa.Column(
            "when_spent",
            sa.Enum("degrade", "hold", "reject", name="whenspent", native_enum=False, length=20),
            nullable=False,
        ),
        sa.Column("updated_at_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("cost_centre", name=op.f("pk_budgets")),
    )
    op.create_table(
        "ledger",
        sa.Column("entry_id", ENTRY_ID, nullable=False),
        sa.Column("entry_key", sa.String(length=160), nullable=False),
        sa.Column(
            "kind",
            sa.Enum(
                "cpu_page",
                "vlm_call",
                "cache_hit",
                "reversal",
                name="ledgerkind",
                native_enum=False,
                length=20,
            ),
            nullable=False,
        ),
        sa.Column("booked_at_s", sa.Double(), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("cost_centre", SORTED_TEXT, nullable=False),
        sa.Column("team", SORTED_TEXT, nullable=False),
        sa.Column("submission_id", sa.Integer(), nullable=True),
        sa.Column("submitter", sa.String(), nullable=True),
        sa.Column("document_id", sa.String(length=64), nullable=False),
        sa.Column("reading_id", sa.Integer(), nullable=False),
        sa.Column("page_number", sa.Integer(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("model_id", sa.String(), nullable=True),
        sa.Column("route", sa.String(length=20), nullable=True),
        sa.Column("outcome", sa.String(length=80), nullable=False),
        sa.Column("reason", sa.String(length=80), nullable=True),
        sa.Column("is_forced", sa.Boolean(), nullable=False),
        sa.Column("is_audit", sa.Boolean(), nullable=False),
        sa.Column("is_wasted", sa.Boolean(), nullable=False),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("vlm_pages", sa.Integer(), nullable=False),
        sa.Column("cached_pages", sa.Integer(), nullable=False),
        sa.Column("cpu_pages", sa.Integer(), nullable=False),
        sa.Column("predicted_visual_tokens", sa.Integer(), nullable=False),
        sa.Column("predicted_prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("cached_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.Column("reasoning_tokens", sa.Integer(), nullable=False),
        sa.Column("usage_is_estimated", sa.Boolean(), nullable=False),
        sa.Column("cpu_s", sa.Double(), nullable=True),
        sa.Column("avoided_tokens", sa.Integer(), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("price_book_version", sa.String(), nullable=False),
        sa.Column("prompt_price_micro", sa.BigInteger(), nullable=True),
        sa.Column("cached_price_micro", sa.BigInteger(), nullable=True),
        sa.Column("completion_price_micro", sa.BigInteger(), nullable=True),
        sa.Column("cpu_page_price_micro", sa.BigInteger(), nullable=True),
        sa.Column("cost_micro", sa.BigInteger(), nullable=True),
        sa.Column("avoided_micro", sa.BigInteger(), nullable=True),
        sa.Column("reverses_entry_id", ENTRY_ID, nullable=True),
        sa.ForeignKeyConstraint(
            ["reverses_entry_id"], ["ledger.entry_id"], name=op.f("fk_ledger_reverses_entry_id_ledger")
        ),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.submission_id"], name=op.f("fk_ledger_submission_id_submissions")
        ),
        sa.PrimaryKeyConstraint("entry_id", name=op.f("pk_ledger")),
        sa.UniqueConstraint("entry_key", name=op.f("uq_ledger_entry_key")),
        sa.UniqueConstraint("reverses_entry_id", name=op.f("uq_ledger_reverses_entry_id")),
    )
    with op.batch_alter_table("ledger", schema=None) as batch_op:
        batch_op.create_index("ix_ledger_statement", STATEMENT_COLUMNS, unique=False)
        batch_op.create_index(
            batch_op.f("ix_ledger_document_id_ledger_page_number"),
            ["document_id", "page_number"],
            unique=False,
        )

    with op.batch_alter_table("submissions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("submitter", sa.String(), nullable=True))

    with op.batch_alter_table("vlm_attempts", schema=None) as batch_op:
        batch_op.add_column(sa.Column("cost_centre", sa.String(), nullable=True))
        batch_op.add_column(sa.Column("month", sa.String(length=7), nullable=True))
        batch_op.add_column(sa.Column("predicted_prompt_tokens", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("reserved_tokens", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("reserved_micro", sa.BigInteger(), nullable=True))
    _refuse_changes()


def downgrade() -> None:
    _allow_changes()
    for column in ("reserved_micro", "reserved_tokens", "predicted_prompt_tokens", "month", "cost_centre"):
        op.drop_column("vlm_attempts", column)
    op.drop_column("submissions", "submitter")

    with op.batch_alter_table("ledger", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_ledger_document_id_ledger_page_number"))
        batch_op.drop_index("ix_ledger_statement")

    op.drop_table("ledger")
    op.drop_table("budgets")
    op.drop_table("budget_months")


def _refuse_changes() -> None:
    """A later migration that copies one of these tables anew, as Alembic's batches do on SQLite, must call this
    again."""
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    for table, (settled, words) in SETTLED.items():
        if is_postgresql:
            op.execute(
                f"CREATE FUNCTION refuse_{table}() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN RAISE EXCEPTION '{words}'; END $$"
            )
            op.execute(
                f"CREATE TRIGGER keep_{table}_whole BEFORE TRUNCATE ON {table} EXECUTE FUNCTION refuse_{table}()"
            )
        for change in ("UPDATE", "DELETE"):
            name = f"keep_{table}_from_{change.lower()}"
            if is_postgresql:
                op.execute(
                    f"CREATE TRIGGER {name} BEFORE {change} ON {table} FOR EACH ROW WHEN ({settled}) "
                    f"EXECUTE FUNCTION refuse_{table}()"
                )
            else:
                op.execute(
                    f"CREATE TRIGGER {name} BEFORE {change} ON {table} WHEN {settled} "
                    f"BEGIN SELECT RAISE(ABORT, '{words}'); END"
                )
        if not is_postgresql:
            same_key = f"EXISTS (SELECT 1 FROM {table} AS OLD WHERE {settled} AND ({REPLACED[table]}))"
            op.execute(
                f"CREATE TRIGGER keep_{table}_from_replace BEFORE INSERT ON {table} WHEN {same_key} "
                f"BEGIN SELECT RAISE(ABORT, '{words}'); END"
            )


def _allow_changes() -> None:
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    for table in SETTLED:
        for change in ("update", "delete"):
            place = f" ON {table}" if is_postgresql else ""
            op.execute(f"DROP TRIGGER keep_{table}_from_{change}{place}")
        if not is_postgresql:
            op.execute(f"DROP TRIGGER keep_{table}_from_replace")
        if is_postgresql:
            op.execute(f"DROP TRIGGER keep_{table}_whole ON {table}")
            op.execute(f"DROP FUNCTION refuse_{table}()")
