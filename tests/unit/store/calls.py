"""Calls about pages that are on their way, each page its own owner's, and what the database says of them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from sqlalchemy import select, text

from models.document import Document, MediaType
from models.page import Route
from models.tables import BudgetMonthRow
from models.transcription import Call, CallOutcome, TokenUsage, Verdict
from pipeline.chargeback.cost_centres import payers
from pipeline.chargeback.entries import Payer, call_entry
from pipeline.store import ClosedCall, Store
from tests.unit.store.booking import ACCOUNT, BOOK

MODEL = "qwen2.5-vl-7b-fp8"


def started_in(month: str) -> float:
    return datetime.fromisoformat(f"{month}-15T12:00:00+00:00").timestamp()


@dataclass(slots=True)
class Pages:
    """``take_all`` makes ``count`` pages of a new document, each held by an owner of its own."""

    store: Store
    count: int
    reading_id: int = 0
    document_id: str = field(default_factory=lambda: secrets.token_hex(32))

    def take_all(self) -> None:
        document = Document(
            document_id=self.document_id, media_type=MediaType.PDF, byte_count=1, page_count=self.count
        )
        self.store.pages.save_document(document)
        self.reading_id = self.store.pages.open_reading(document, "f" * 64, force=False).reading_id
        waiting = text(
            "UPDATE pages SET state = 'awaiting_vlm', result = '{}' WHERE reading_id = :reading_id"
        )
        with self.store.database.write() as session:
            session.execute(waiting, {"reading_id": self.reading_id})
        for page_number in range(1, self.count + 1):
            assert self.take(page_number) == 0

    def owner_of(self, page_number: int) -> str:
        return f"{self.document_id[:8]}/{page_number}"

    def take(self, page_number: int) -> int | None:
        """The number of calls that were made about it; None where it does not wait."""
        page = self.store.transcriptions.claim_page(
            self.reading_id, page_number, owner=self.owner_of(page_number), lease_s=600
        )
        return None if page is None else page.calls_before

    def call(
        self,
        page_number: int,
        attempt: int,
        *,
        cost_centre: str,
        month: str,
        prompt_tokens: int,
        answer_tokens: int,
    ) -> Call:
        account = replace(ACCOUNT, payer=replace(ACCOUNT.payer, cost_centre=cost_centre))
        started_at_s = started_in(month)
        reservation = account.reservation(
            MODEL, prompt_tokens=prompt_tokens, answer_tokens=answer_tokens, at_s=started_at_s
        )
        return Call(
            reading_id=self.reading_id,
            page_number=page_number,
            attempt=attempt,
            submission_id=None,
            cost_centre=cost_centre,
            request_id=f"{self.reading_id}/{page_number}/{attempt}",
            model_id=MODEL,
            tier="full",
            width_px=1,
            height_px=1,
            predicted_visual_tokens=prompt_tokens,
            predicted_prompt_tokens=prompt_tokens,
            temperature=0.0,
            started_at_s=started_at_s,
            reserved_tokens=reservation.most.tokens,
            reserved_micro=reservation.most.micro,
        )

    def closed(self, call: Call, usage: TokenUsage) -> ClosedCall:
        outcome = CallOutcome(verdict=Verdict.ACCEPTED, usage=usage, elapsed_s=1.0)
        entry = call_entry(
            Payer(cost_centre=call.cost_centre, submitter=None, submission_id=None),
            BOOK,
            call,
            outcome,
            document_id=self.document_id,
            reasons=(),
            route=Route.VLM,
            when=datetime.fromtimestamp(call.started_at_s, UTC),
        )
        return ClosedCall(call=call, outcome=outcome, entry=entry)


@dataclass(frozen=True, slots=True)
class MonthRow:
    limit_micro: int | None
    limit_tokens: int | None
    reserved_micro: int
    reserved_tokens: int
    spent_micro: int
    spent_tokens: int


def month_rows(store: Store, team: str) -> dict[tuple[str, str], MonthRow]:
    """By cost centre and month: what the rows of a team and its projects hold."""
    rows = select(BudgetMonthRow).where(
        (BudgetMonthRow.cost_centre == team) | BudgetMonthRow.cost_centre.startswith(f"{team}/")
    )
    with store.database.read() as session:
        return {
            (row.cost_centre, row.month): MonthRow(
                row.limit_micro,
                row.limit_tokens,
                row.reserved_micro,
                row.reserved_tokens,
                row.spent_micro,
                row.spent_tokens,
            )
            for row in session.scalars(rows)
        }


OPEN = """
    SELECT cost_centre, month, coalesce(reserved_micro, 0), reserved_tokens, 0, 0
    FROM vlm_attempts WHERE verdict IS NULL
"""
BOOKED = """
    SELECT ledger.cost_centre, month, 0, 0, coalesce(cost_micro, 0),
        ledger.prompt_tokens + ledger.completion_tokens
    FROM ledger JOIN vlm_attempts USING (reading_id, page_number, attempt) WHERE ledger.model_id IS NOT NULL
"""


def counted(store: Store) -> dict[tuple[str, str], tuple[int, ...]]:
    """What the ledger and the open calls say of each cost centre and month: reserved and spent, micro-units and
    tokens."""
    sums: dict[tuple[str, str], list[int]] = {}
    with store.database.read() as session:
        for name, month, *amounts in session.execute(text(f"{OPEN} UNION ALL {BOOKED}")):
            for cost_centre in payers(name):
                held = sums.setdefault((cost_centre, month), [0, 0, 0, 0])
                held[:] = [int(one) + amount for one, amount in zip(held, amounts, strict=True)]
    return {key: tuple(held) for key, held in sums.items()}
