"""Commands on a database with real submissions, as a user starts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from typer.testing import CliRunner, Result

from models.document import Document
from models.page import Route
from models.tables import PageState
from pipeline.outputs import failed_page_json, page_row
from pipeline.store import PagesToRead, Store
from tests.unit.store.pool_parts import LEASE_S, Pool, Submitted, entry_of, new_document
from workers.cli import app


def blank_page(page_number: int) -> dict[str, Any]:
    triage = {"escalate": False, "reasons": [], "policy_version": "1"}
    failed = failed_page_json(page_number, code="", message="")
    return {
        **failed,
        "state": "done",
        "route": Route.BLANK.value,
        "triage": triage,
        "visual_tokens_if_vlm": 0,
        "elapsed_s": 1.0,
        "error": None,
    }


@dataclass(frozen=True, slots=True)
class Commands:
    """``pool`` is the database that they work on."""

    home: Path
    pool: Pool
    database_url: SecretStr | None = None

    @property
    def store(self) -> Store:
        return self.pool.store

    def run(self, *arguments: object, answer: str | None = None, **environment: str) -> Result:
        return CliRunner().invoke(
            app, list(map(str, arguments)), env={**self.environment, **environment}, input=answer
        )

    def printed(self, *arguments: object) -> str:
        result = self.run(*arguments)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    @property
    def environment(self) -> Mapping[str, str]:
        named = {"DOCTRIAGE_HOME": str(self.home), "NO_COLOR": "1", "COLUMNS": "200"}
        if self.database_url is not None:
            named["DOCTRIAGE_DATABASE_URL"] = self.database_url.get_secret_value()
        return named

    def submitted(self, pages: int, name: str, **changes: object) -> Submitted:
        """A sealed submission of one document that was taken in."""
        return self.submitted_document(new_document(pages), name, **changes)

    def submitted_document(self, document: Document, name: str, **changes: object) -> Submitted:
        submission_id = self.pool.open(**changes)
        source_id = self.pool.add(submission_id, name, output_stem=name)
        self.store.pool.seal(submission_id)
        return self.pool.take_in(document, source_id)

    def read_document(self, document_id: str, name: str) -> Submitted:
        """One of two pages whose bytes the blob store has; it is not written up."""
        submission_id = self.pool.open()
        self.pool.add(submission_id, name, blob_id=document_id)
        self.store.pool.seal(submission_id)
        submitted = self.pool.take_in(replace(new_document(2), document_id=document_id))
        self.read_pages(2)
        return submitted

    def read_pages(self, pages: int) -> PagesToRead:
        """By the worker ``me``, who finds them blank."""
        work = self.pool.claim(max_pages=pages)
        assert work is not None
        for number in work.page_numbers:
            self._finish(work, number)
        self._complete(work.reading_id)
        return work

    def _finish(self, work: PagesToRead, page_number: int) -> None:
        document_id = work.document.document_id
        page = blank_page(page_number)
        assert self.store.pages.finish_page(
            work.reading_id,
            page_number,
            owner="me",
            page=page,
            summary=page_row("", document_id, page),
            route=Route.BLANK,
            elapsed_s=1.0,
            entry=entry_of(work.reading_id, page_number, document_id, work.terms.submission_id),
        )

    def _complete(self, reading_id: int) -> None:
        if self.store.pages.complete_reading(reading_id):
            self.store.pool.sources_read(reading_id)

    def fail_page(self, submitted: Submitted, page_number: int) -> None:
        """It is the next one."""
        work = self.pool.claim()
        assert work is not None
        assert (work.reading_id, work.page_numbers) == (submitted.reading_id, (page_number,))
        document_id = submitted.document.document_id
        assert self.store.pages.fail_page(
            submitted.reading_id,
            page_number,
            owner="me",
            code="worker_lost",
            message="five workers were lost over it; look at it, and try again",
            entry=entry_of(submitted.reading_id, page_number, document_id, submitted.submission_id),
        )
        self._complete(submitted.reading_id)

    def write_up(self, *, failed_pages: int = 0) -> int:
        """The source that was assembled."""
        pool = self.store.pool
        source = pool.claim_assembly(owner="me", lease_s=LEASE_S, weights={})
        assert source is not None
        assert pool.source_written(source.source_id, owner="me", failed_pages=failed_pages)
        return source.source_id

    def page_states(self, submitted: Submitted) -> list[PageState]:
        return [record.state for record in self.store.pages.stream_summaries(submitted.reading_id)]
