"""Intake of a source: whose bytes are kept, which password opens it, and what the database knows then."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from models.errors import DocumentEncrypted, UnsupportedMediaType, WrongPassword
from pipeline.blobs import BlobStore
from pipeline.ports import PdfFacts
from pipeline.settings import Settings
from pipeline.store import Store, open_store
from tests.fakes.engines import NoPdf
from tests.fakes.pages import tiff_of_widths
from workers.document_intake import DocumentIntake

PDF_BYTES = b"%PDF-1.7\n% as much as its kind is known by\n"


@dataclass(slots=True)
class LockedPdf(NoPdf):
    """Opens with one password, or with none at all where that is None, and notes each that is tried."""

    opens_with: str | None = None
    tried: list[str | None] = field(default_factory=list)

    def inspect(self, path: Path, password: str | None) -> PdfFacts:
        self.tried.append(password)
        if password == self.opens_with:
            return PdfFacts(page_count=2, attachments=())
        raise DocumentEncrypted("give --password") if password is None else WrongPassword("wrong")


@dataclass(slots=True)
class Desk:
    folder: Path
    store: Store
    pdf: LockedPdf = field(default_factory=LockedPdf)
    blobs: BlobStore = field(init=False)
    intake: DocumentIntake = field(init=False)

    def __post_init__(self) -> None:
        settings = Settings(home=self.folder / "home")
        self.blobs = BlobStore(settings.home)
        self.intake = DocumentIntake(
            settings=settings, pdf=lambda: self.pdf, blobs=self.blobs, store=self.store
        )

    def write(self, content: bytes) -> Path:
        path = self.folder / "source"
        path.write_bytes(content)
        return path

    def files_kept(self) -> list[bytes]:
        return [path.read_bytes() for path in (self.folder / "home").rglob("*") if self._is_copy(path)]

    def _is_copy(self, path: Path) -> bool:
        return path.is_file() and {"blobs", "incoming"} & set(path.parts) != set()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with contextlib.closing(open_store(tmp_path / "home")) as store:
        yield Desk(folder=tmp_path, store=store)


def test_a_file_is_kept_under_its_documents_name_and_known_to_the_database(desk: Desk) -> None:
    path = tiff_of_widths(desk.folder / "a.tif", [400, 401])
    document, password = desk.intake.take_in(path, ("unused",))
    assert (document.page_count, password) == (2, None)
    assert desk.store.pages.document(document.document_id) == document
    assert desk.files_kept() == [path.read_bytes()]


def test_none_is_tried_before_the_passwords_and_the_one_that_opens_it_is_told(desk: Desk) -> None:
    desk.pdf.opens_with = "right"
    document, password = desk.intake.take_in(desk.write(PDF_BYTES), ("wrong", "right", "never tried"))
    assert (document.page_count, password) == (2, "right")
    assert desk.pdf.tried == [None, "wrong", "right"]


@pytest.mark.parametrize(("passwords", "error"), [((), DocumentEncrypted), (("wrong",), WrongPassword)])
def test_a_document_that_stays_locked_is_refused_for_its_last_try_and_not_kept(
    desk: Desk, passwords: tuple[str, ...], error: type[DocumentEncrypted]
) -> None:
    desk.pdf.opens_with = "right"
    with pytest.raises(DocumentEncrypted) as caught:
        desk.intake.take_in(desk.write(PDF_BYTES), passwords)
    assert type(caught.value) is error
    assert desk.files_kept() == []


def test_bytes_in_the_blob_store_are_looked_at_where_they_are(desk: Desk) -> None:
    desk.pdf.opens_with = "right"
    snapshot = desk.blobs.take(desk.write(PDF_BYTES), max_bytes=2**20)
    desk.blobs.keep(snapshot)
    document, password = desk.intake.inspect_blob(snapshot.document_id, ("right",))
    assert (document.document_id, password) == (snapshot.document_id, "right")
    assert desk.store.pages.document(document.document_id) == document
    assert desk.files_kept() == [PDF_BYTES]


def test_bytes_in_the_blob_store_that_are_refused_stay_there_and_are_no_document(desk: Desk) -> None:
    snapshot = desk.blobs.take(desk.write(b"just words"), max_bytes=2**20)
    desk.blobs.keep(snapshot)
    with pytest.raises(UnsupportedMediaType):
        desk.intake.inspect_blob(snapshot.document_id, ())
    assert desk.store.pages.document(snapshot.document_id) is None
    assert desk.files_kept() == [b"just words"]
