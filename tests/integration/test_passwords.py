"""Encrypted PDFs: each password is tried, and none is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pikepdf
import pytest
from reportlab.pdfgen.canvas import Canvas

from models.errors import DocumentEncrypted, WrongPassword
from pipeline.settings import Settings
from workers.events import IngestReport, IngestRequest
from workers.local import ingest

SECRET = "correct horse battery staple"


def encrypted_pdf(path: Path, *, user: str, owner: str = "owner-secret") -> Path:
    plain = path.with_suffix(".plain")
    canvas = Canvas(str(plain))
    for line in range(30):
        canvas.drawString(
            72, 760 - 20 * line, f"The minutes of the harbour board, line {line}, were approved."
        )
    canvas.save()
    with pikepdf.open(plain) as pdf:
        pdf.save(path, encryption=pikepdf.Encryption(user=user, owner=owner))
    plain.unlink()
    return path


def run(tmp_path: Path, *passwords: str) -> IngestReport:
    return ingest(
        IngestRequest(paths=(tmp_path / "in",), out_dir=tmp_path / "out", passwords=passwords),
        settings=Settings(home=tmp_path / "home", executor={"jobs": 1}),
        on_event=lambda _event: None,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    encrypted_pdf(tmp_path / "in" / "secret.pdf", user=SECRET)
    encrypted_pdf(tmp_path / "in" / "open.pdf", user="")
    return tmp_path


def test_each_password_is_tried_and_none_is_kept_anywhere(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report = run(folder, "wrong", SECRET)
    assert report.failures == ()
    assert {document.source for document in report.documents} == {"secret.pdf", "open.pdf"}
    text = json.loads((folder / "out" / "secret.pdf.json").read_bytes())["pages"][0]["text"]
    assert "minutes of the harbour board" in text
    kept = [*folder.joinpath("home").rglob("*"), *folder.joinpath("out").rglob("*")]
    assert kept
    for path in kept:
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err
    assert SECRET not in repr(IngestRequest(paths=(), out_dir=folder, passwords=(SECRET,)))


def test_without_its_password_a_document_is_refused_and_says_how_to_give_it(folder: Path) -> None:
    for passwords, code in (((), DocumentEncrypted.code), (("wrong", "wronger"), WrongPassword.code)):
        report = run(folder, *passwords)
        [failure] = report.failures
        assert (failure.source, failure.code) == ("secret.pdf", code)
        assert "password" in failure.message
        assert [document.source for document in report.documents] == ["open.pdf"]
    assert not (folder / "out" / "secret.pdf.json").exists()


def test_pages_read_with_the_password_are_not_written_without_it(folder: Path) -> None:
    run(folder, SECRET)
    (folder / "out" / "secret.pdf.json").unlink()
    assert [failure.source for failure in run(folder).failures] == ["secret.pdf"]
    assert not (folder / "out" / "secret.pdf.json").exists()
