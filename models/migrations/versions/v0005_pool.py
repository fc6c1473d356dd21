"""what the pool of workers keeps: sources on their way, lanes and turns, places for calls, watched files"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

SORTED_TEXT: Final = sa.String().with_variant(sa.String(collation="C"), "postgresql")

INDEXES: Final = {
    "submissions": ("state",),
    "sources": ("state", "submission_id", "source_id"),
    "readings": ("state", "submission_id", "reading_id"),
    "pages": ("settled_at_s",),
}

KEPT_OF_CALLS: Final = (
    *(
        "vlm_attempt_id",
        "reading_id",
        "page_number",
        "attempt",
        "submission_id",
        "request_id",
        "model_id",
        "tier",
    ),
    *("width_px", "height_px", "predicted_visual_tokens", "temperature", "started_at_s", "verdict"),
    *(
        "prompt_tokens",
        "cached_tokens",
        "completion_tokens",
        "reasoning_tokens",
        "usage_is_estimated",
        "elapsed_s",
    ),
    *("cost_centre", "month", "predicted_prompt_tokens", "reserved_tokens", "reserved_micro"),
)
"""What stays of a call that is closed. Words of the page are in the others alone, ``evidence`` and ``message``."""

UNSETTLED: Final = ("pending", "running", "awaiting_vlm", "transcribing")
BEFORE: Final = "ix_pages_reading_id_pages_state"


def upgrade() -> None:
    for table, columns in _added().items():
        for column in columns:
            op.add_column(table, column)
    for table, names in INDEXES.items():
        op.create_index(op.f(_index_of(table)), table, list(names))
    op.drop_index(op.f(BEFORE), table_name="pages")
    for state in UNSETTLED:
        where = sa.text(f"state = '{state}'")
        op.create_index(
            op.f(f"ix_pages_{state}"),
            "pages",
            ["reading_id", "page_number"],
            sqlite_where=where,
            postgresql_where=where,
        )
    op.create_table(
        "lanes",
        _stage(),
        sa.Column("cost_centre", SORTED_TEXT, nullable=False),
        sa.Column("passed", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("stage", "cost_centre", name=op.f("pk_lanes")),
    )
    op.create_table(
        "turns",
        _stage(),
        sa.Column("submission_id", sa.Integer(), nullable=False),
        sa.Column("served_at_ns", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submissions.submission_id"],
            name=op.f("fk_turns_submission_id_submissions"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("stage", "submission_id", name=op.f("pk_turns")),
    )
    op.create_table(
        "vlm_slots",
        sa.Column("service", sa.String(length=200), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(), nullable=True),
        sa.Column("expires_at_s", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("service", "slot", name=op.f("pk_vlm_slots")),
    )
    op.create_table(
        "watched_files",
        sa.Column("folder", SORTED_TEXT, nullable=False),
        sa.Column("name", SORTED_TEXT, nullable=False),
        sa.Column("byte_count", sa.BigInteger(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("submission_id", sa.Integer(), nullable=True),
        sa.Column("seen_at_s", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submissions.submission_id"],
            name=op.f("fk_watched_files_submission_id_submissions"),
        ),
        sa.PrimaryKeyConstraint("folder", "name", name=op.f("pk_watched_files")),
    )
    _guard_calls(are_erasable=True)


def downgrade() -> None:
    _guard_calls(are_erasable=False)
    for table in ("watched_files", "vlm_slots", "turns", "lanes"):
        op.drop_table(table)
    for state in UNSETTLED:
        op.drop_index(op.f(f"ix_pages_{state}"), table_name="pages")
    op.create_index(op.f(BEFORE), "pages", ["reading_id", "state"])
    for table in INDEXES:
        op.drop_index(op.f(_index_of(table)), table_name=table)
    for table, columns in _added().items():
        for column in reversed(columns):
            op.drop_column(table, column.name)


def _guard_calls(*, are_erasable: bool) -> None:
    """A call that is closed stays as it was booked, but for what it says of the page, which may be erased."""
    trigger, is_closed = "keep_vlm_attempts_from_update", "OLD.verdict IS NOT NULL"
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    equals = "IS NOT DISTINCT FROM" if is_postgresql else "IS"
    same = " AND ".join(f"OLD.{name} {equals} NEW.{name}" for name in KEPT_OF_CALLS)
    is_erasure = f"NEW.evidence IS NULL AND NEW.message IS NULL AND {same}"
    refused = f"{is_closed} AND NOT ({is_erasure})" if are_erasable else is_closed
    op.execute(f"DROP TRIGGER {trigger}{' ON vlm_attempts' if is_postgresql else ''}")
    if is_postgresql:
        op.execute(
            f"CREATE TRIGGER {trigger} BEFORE UPDATE ON vlm_attempts FOR EACH ROW WHEN ({refused}) "
            "EXECUTE FUNCTION refuse_vlm_attempts()"
        )
    else:
        op.execute(
            f"CREATE TRIGGER {trigger} BEFORE UPDATE ON vlm_attempts WHEN {refused} "
            "BEGIN SELECT RAISE(ABORT, 'a call that is closed stays as it was booked'); END"
        )


def _stage() -> sa.Column[Any]:
    stages = sa.Enum("intake", "ocr", "vlm", "assemble", name="queue", native_enum=False, length=20)
    return sa.Column("stage", stages, nullable=False)


def _index_of(table: str) -> str:
    return "ix_" + "_".join(f"{table}_{name}" for name in INDEXES[table])


def _added() -> Mapping[str, Sequence[sa.Column[Any]]]:
    """Table, and its new columns. Programs of before leave them out of what they insert."""
    return {
        "submissions": (
            sa.Column(
                "state",
                sa.Enum(
                    "open", "finished", "cancelled", name="submissionstate", native_enum=False, length=20
                ),
                nullable=True,
            ),
            sa.Column("priority", sa.Integer(), server_default="5", nullable=False),
            sa.Column("wishes", sa.JSON(none_as_null=True), nullable=True),
            sa.Column("sealed_passwords", sa.String(), nullable=True),
            sa.Column("is_sealed", sa.Boolean(), server_default=sa.false(), nullable=False),
            sa.Column("submitter_seen_at_s", sa.Double(), nullable=True),
            sa.Column("traceparent", sa.String(length=55), nullable=True),
        ),
        "sources": (
            sa.Column(
                "state",
                sa.Enum(
                    "received",
                    "in_intake",
                    "reading",
                    "read",
                    "being_written",
                    "settled",
                    name="sourcestate",
                    native_enum=False,
                    length=20,
                ),
                nullable=True,
            ),
            sa.Column("blob_id", sa.String(length=64), nullable=True),
            sa.Column("byte_count", sa.BigInteger(), nullable=True),
            sa.Column("lease_owner", sa.String(), nullable=True),
            sa.Column("lease_expires_at_s", sa.Double(), nullable=True),
            sa.Column("losses", sa.Integer(), server_default="0", nullable=False),
            sa.Column("taken_in_at_s", sa.Double(), nullable=True),
            sa.Column("settled_at_s", sa.Double(), nullable=True),
            sa.Column("failed_pages", sa.Integer(), nullable=True),
        ),
        "readings": (sa.Column("submission_id", sa.Integer(), nullable=True),),
        "pages": (
            sa.Column("losses", sa.Integer(), server_default="0", nullable=False),
            sa.Column("settled_at_s", sa.Double(), nullable=True),
        ),
    }
