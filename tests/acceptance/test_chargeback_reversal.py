"""``doctriage chargeback reverse`` as a user starts it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from models.budget import Budget
from models.document import Document, MediaType
from models.tables import VlmAttemptRow
from pipeline.store import Store, open_store
from tests.acceptance.test_command_line import run_doctriage
from tests.fakes.ledger import INVOICE, NOTHING, book, vlm_call

MONTH = "2026-11"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path)) as opened:
        yield opened


def billed_call(store: Store, month: str = MONTH) -> int:
    """A closed call about a document that is known as invoice.pdf, booked, and spent of a budget; its entry's id."""
    document = Document(document_id=INVOICE, media_type=MediaType.PDF, byte_count=1, page_count=3)
    store.pages.save_document(document)
    reading_id = store.pages.open_reading(document, "f" * 64, force=False).reading_id
    submission_id = store.submissions.start_submission(
        out_dir="/out", cost_centre="retail", submitter="ada", fingerprint="f" * 64
    )
    store.submissions.add_source(
        submission_id, name="invoice.pdf", output_stem="invoice", reading_id=reading_id
    )
    attempt = VlmAttemptRow(
        **dict.fromkeys(("attempt", "width_px", "height_px", "predicted_visual_tokens"), 1),
        **dict.fromkeys(("temperature", "started_at_s"), 1.0),
        **dict.fromkeys(("request_id", "model_id", "tier"), "x"),
        reading_id=reading_id,
        page_number=1,
        verdict="accepted",
        cost_centre="retail",
        month=month,
    )
    row = vlm_call(f"{month}-03", reading_id=reading_id)
    with store.database.write() as session:
        session.add(attempt)
    book(store, row)
    store.budgets.set_budget(
        Budget(cost_centre="retail", limit_micro=1_000_000, currency="USD", limit_tokens=9_000), month=month
    )
    return row.entry_id


def spent(store: Store) -> tuple[int, int]:
    """Micro-units and tokens."""
    [stands] = store.budgets.in_month(MONTH)
    assert stands.money is not None
    assert stands.tokens is not None
    return stands.money.spent, stands.tokens.spent


def test_a_call_is_taken_back_from_its_bill_and_its_budget(tmp_path: Path, store: Store) -> None:
    entry_id = billed_call(store)
    assert spent(store) == (493, 2_740)
    answer = run_doctriage("chargeback", "reverse", str(entry_id), home=tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.splitlines()[:2] == [
        f"entry {entry_id} is taken back by entry {entry_id + 1}: VLM call about invoice.pdf, page 1",
        "less for retail: 2,330 prompt and 410 completion tokens, 0.000493 USD",
    ]
    assert spent(store) == (0, 0)
    statement = run_doctriage("chargeback", "--from", f"{MONTH}-01", "--format", "json", home=tmp_path).stdout
    assert json.loads(statement)["totals"][0]["cost"] == "0"
    explained = run_doctriage("chargeback", "explain", "invoice.pdf", "--page", "1", home=tmp_path).stdout
    assert f"takes back entry {entry_id}" in explained


def test_what_cannot_be_taken_back_is_one_line_and_changes_nothing(tmp_path: Path, store: Store) -> None:
    entry_id = billed_call(store)
    assert run_doctriage("chargeback", "reverse", str(entry_id), home=tmp_path).returncode == 0
    for wrong, told in (
        (entry_id, f"entry {entry_id}: was reversed before, by entry {entry_id + 1}"),
        (entry_id + 1, f"entry {entry_id + 1}: is the reversal of {entry_id}"),
        (999, "entry 999: the ledger has none of that number"),
    ):
        answer = run_doctriage("chargeback", "reverse", str(wrong), home=tmp_path)
        assert (answer.returncode, answer.stdout) == (2, "")
        assert answer.stderr.startswith(f"doctriage: {told}")
        assert answer.stderr.count("\n") == 1
    assert spent(store) == (0, 0)


@pytest.mark.parametrize("wrong", ["0", "x", str(2**63)])
def test_what_is_no_number_of_an_entry_is_wrong_usage(tmp_path: Path, wrong: str) -> None:
    answer = run_doctriage("chargeback", "reverse", str(wrong), home=tmp_path)
    assert answer.returncode == 2
    assert "ENTRY_ID" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_an_entry_without_a_price_says_so(tmp_path: Path, store: Store) -> None:
    row = vlm_call(f"{MONTH}-03", NOTHING)
    book(store, row)
    answer = run_doctriage("chargeback", "reverse", str(row.entry_id), home=tmp_path)
    assert answer.returncode == 0
    assert answer.stdout.splitlines()[1].endswith("completion tokens, unpriced")
