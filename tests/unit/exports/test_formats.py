"""The registry of formats, and what all of their writers have in common."""

from __future__ import annotations

import io
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from models.document import Document, MediaType
from models.errors import BlobMissing, OutputImpossible
from models.tables import PageState
from pipeline.blobs.store import SUFFIX
from pipeline.exports.document import Json
from pipeline.exports.formats import FORMATS
from pipeline.exports.original import Original
from pipeline.publish import document_outputs
from pipeline.store import PageRecord, PageStore
from tests.unit.exports.documents import block, header, page

ROOT = Path(__file__).parents[3]
PAGE_BY_PAGE = ("markdown", "json", "text", "html", "csv", "hocr", "alto")
DOCUMENT = Document(
    document_id="ab" * 32, media_type=MediaType.PDF, byte_count=9, page_count=1, attachments=()
)


def test_every_format_has_a_file_of_its_own_that_the_blob_store_takes() -> None:
    suffixes = [each.suffix for each in FORMATS.values()]
    assert len(set(suffixes)) == len(suffixes)
    assert all(SUFFIX.fullmatch(suffix) for suffix in suffixes)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_documented(name: str) -> None:
    told = (ROOT / "docs" / "output.md").read_text(encoding="utf-8")
    assert f"| `{name}` | `{FORMATS[name].suffix}` |" in told
    assert f"`{name}`" in (ROOT / "README.md").read_text(encoding="utf-8")


class CountedPage(dict[str, Any]):
    """A page of which it is known whether anybody still has it."""


@pytest.mark.parametrize("name", PAGE_BY_PAGE)
def test_pages_are_written_one_by_one(name: str) -> None:
    held: list[weakref.ref[CountedPage]] = []
    most = 0

    def pages() -> Iterator[Json]:
        nonlocal most
        for number in range(1, 9):
            counted = CountedPage(page([block("Pay at once", top=100)], number=number))
            held.append(weakref.ref(counted))
            yield counted
            del counted
            most = max(most, sum(one() is not None for one in held))

    FORMATS[name].writer()(io.BytesIO(), header(8), pages(), None)
    assert len(held) == 8
    assert most <= 2


def outputs_of(*formats: str, original: Original | Exception | None = None) -> Iterator[Any]:
    done = PageRecord(
        page_number=1,
        state=PageState.DONE,
        attempts=1,
        elapsed_s=1.0,
        error_code=None,
        error_message=None,
        content=page(),
    )
    pages = SimpleNamespace(failure_of_all_pages=lambda _: None, stream_pages=lambda _: iter([done]))

    def asked() -> Original:
        if isinstance(original, Exception):
            raise original
        assert original is not None, "the original is asked for"
        return original

    return document_outputs(
        cast("PageStore", pages),
        reading_id=1,
        document=DOCUMENT,
        source="a.pdf",
        formats=formats,
        original=asked,
    )


def test_the_original_is_asked_for_where_a_format_shows_it_and_nowhere_else() -> None:
    for output in outputs_of(*(name for name in FORMATS if name != "pdf")):
        assert output.write(io.BytesIO()) == 0
    [pdf] = outputs_of("pdf", original=BlobMissing("our copy is gone; submit the file again"))
    with pytest.raises(OutputImpossible, match="no pdf output: our copy is gone; submit"):
        pdf.write(io.BytesIO())


def test_a_format_that_a_newer_program_asked_for_is_refused_with_words() -> None:
    with pytest.raises(OutputImpossible, match="no format epub here; update doctriage"):
        list(outputs_of("epub"))
