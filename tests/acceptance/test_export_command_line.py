"""``doctriage export`` and ``ingest --format``: documents in every form, from what was read once."""

from __future__ import annotations

import io
import json
import subprocess
import zipfile
from pathlib import Path

import openpyxl
import pytest
from docling_core.types.doc import DoclingDocument
from lxml import etree, html

from pipeline.exports.formats import FORMATS
from tests.acceptance.test_command_line import DOCTRIAGE, run_doctriage
from tests.acceptance.test_ingest_command_line import SENTENCE, write_pdf, write_scan
from tests.integration.test_passwords import SECRET, encrypted_pdf
from tests.integration.test_searchable_pdf import words_in
from workers.sources import find_sources

WITHIN_PT = 3.0


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scan, a born-digital PDF and an encrypted one, ingested in two formats."""
    root = tmp_path_factory.mktemp("export")
    write_scan(root / "in" / "letters" / "scan.png")
    write_pdf(root / "in" / "ferry.pdf", 2)
    encrypted_pdf(root / "in" / "secret.pdf", user=SECRET)
    run = run_doctriage(
        "ingest", root / "in", "--out", root / "out", "--format", "pdf,alto", "--password", SECRET,
        home=root / "home",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return root


def export(root: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_doctriage("export", *arguments, home=root / "home")


def test_an_ingest_writes_the_formats_that_it_is_asked_for(root: Path) -> None:
    written = {str(path.relative_to(root / "out")) for path in (root / "out").rglob("*") if path.is_file()}
    stems = ("letters/scan.png", "ferry.pdf", "secret.pdf")
    outputs = {stem + suffix for stem in stems for suffix in (".searchable.pdf", ".alto.xml")}
    assert written == outputs | {"pages.jsonl", "failures.jsonl"}
    assert (root / "out" / "ferry.pdf.searchable.pdf").read_bytes() == (
        root / "in" / "ferry.pdf"
    ).read_bytes()


def test_what_was_written_is_not_read_as_a_source(root: Path) -> None:
    assert list(find_sources([root / "out"], left_out=())) == []


def test_every_format_is_written_of_what_was_read(root: Path) -> None:
    names = ",".join(FORMATS)
    answer = export(
        root, "letters/scan.png", root / "in" / "ferry.pdf", "--format", names, "--out", root / "ex"
    )
    assert answer.returncode == 0, answer.stderr
    written = {path.relative_to(root / "ex") for path in (root / "ex").rglob("*") if path.is_file()}
    suffixes = [each.suffix for each in FORMATS.values()]
    assert written == {
        Path(stem + suffix) for stem in ("letters/scan.png", "ferry.pdf") for suffix in suffixes
    }
    assert answer.stdout.splitlines()[0] == str(root / "ex" / "letters" / "scan.png.md")


def test_the_formats_hold_the_text_of_the_scan(root: Path) -> None:
    out = root / "ex2"
    assert export(root, "letters/scan.png", "--format", ",".join(FORMATS), "--out", out).returncode == 0
    stored = {name: (out / f"letters/scan.png{each.suffix}").read_bytes() for name, each in FORMATS.items()}
    assert json.loads(stored["json"])["pages"][0]["route"] == "ocr"
    assert SENTENCE in stored["markdown"].decode()
    assert stored["text"].decode().count(SENTENCE) == 6
    assert SENTENCE in html.document_fromstring(stored["html"]).text_content()
    for name in ("hocr", "alto"):
        assert len(etree.fromstring(stored[name]).xpath("//*[.='ferry' or @CONTENT='ferry']")) == 6, name
    document = DoclingDocument.model_validate_json(stored["docling"])
    assert SENTENCE in document.export_to_markdown()
    assert zipfile.ZipFile(io.BytesIO(stored["csv"])).testzip() is None
    assert openpyxl.load_workbook(io.BytesIO(stored["xlsx"])).sheetnames


def test_the_words_of_the_scan_are_found_where_they_are_printed(root: Path) -> None:
    alto = etree.parse(str(root / "out" / "letters" / "scan.png.alto.xml"))
    [printed] = alto.xpath("(//*[@CONTENT='harbour'])[last()]")
    left, top, width, height = (float(printed.get(name)) for name in ("HPOS", "VPOS", "WIDTH", "HEIGHT"))
    found = words_in(root / "out" / "letters" / "scan.png.searchable.pdf")["harbour"]
    expected = [edge * 72 / 150 for edge in (left, top, left + width, top + height)]
    assert found == pytest.approx(expected, abs=WITHIN_PT)


def test_one_document_goes_to_a_file_or_to_standard_output(root: Path) -> None:
    assert export(root, "ferry.pdf", "--format", "html", "-o", root / "one.html").returncode == 0
    printed = export(root, "ferry.pdf", "--format", "html", "-o", "-")
    assert printed.stdout == (root / "one.html").read_text(encoding="utf-8")
    assert printed.stdout.startswith("<!DOCTYPE html>")


def test_an_encrypted_pdf_needs_its_password_to_be_shown_and_not_to_be_told(root: Path) -> None:
    assert export(root, "secret.pdf", "--format", "text", "-o", root / "secret.txt").returncode == 0
    assert "minutes of the harbour board" in (root / "secret.txt").read_text(encoding="utf-8")
    refused = export(root, "secret.pdf", "--format", "pdf,html", "--out", root / "closed")
    assert refused.returncode == 1
    [line] = refused.stderr.splitlines()
    assert line.startswith("doctriage: secret.pdf: no pdf output: ")
    assert "--password" in line
    assert [path.name for path in (root / "closed").iterdir()] == ["secret.pdf.html"]
    opened = export(root, "secret.pdf", "--format", "pdf", "--out", root / "open", "--password", SECRET)
    assert opened.returncode == 0
    assert "minutes" in words_in(root / "open" / "secret.pdf.searchable.pdf")


def test_one_that_is_not_there_does_not_keep_the_others(root: Path) -> None:
    answer = export(root, "nobody.pdf", "ferry.pdf", "--format", "text", "--out", root / "some")
    assert answer.returncode == 1
    assert answer.stderr.startswith("doctriage: nobody.pdf: not ingested yet")
    assert "Traceback" not in answer.stderr
    assert (root / "some" / "ferry.pdf.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("ferry.pdf", "--format", "docx", "--out", "x"), "choose from markdown, json, text"),
        (("ferry.pdf", "--format", "text"), "give a folder with --out"),
        (("ferry.pdf", "--format", "text", "--out", "x", "-o", "y"), "give a folder with --out"),
        (("ferry.pdf", "--format", "text,html", "-o", "y"), "one document in one format"),
        (("a.pdf", "b.pdf", "--format", "text", "-o", "y"), "one document in one format"),
    ],
)
def test_what_does_not_fit_together_is_refused(root: Path, arguments: tuple[str, ...], told: str) -> None:
    answer = export(root, *arguments)
    assert answer.returncode == 2
    assert told in " ".join(answer.stderr.replace("│", " ").split())


def test_a_pipe_that_is_closed_early_is_no_crash(root: Path) -> None:
    command = f"{DOCTRIAGE} export ferry.pdf --format html -o - | head -c 10"
    environment = {"DOCTRIAGE_HOME": str(root / "home"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout == "<!DOCTYPE "
    assert "Traceback" not in done.stderr
