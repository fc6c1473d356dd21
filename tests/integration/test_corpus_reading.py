"""Labelled pages through the ordinary executor, with an engine that counts its calls."""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image, ImageDraw

from pipeline.settings import Settings
from tests.fakes.engines import FakeEngines, FakeOcr, Fault
from workers.corpus_reading import CorpusReading, read_labelled_pages
from workers.labelled import read_corpora

BAD_WIDTH = 640


def write_page(path: Path, width_px: int) -> None:
    page = Image.new("L", (width_px, 400), 255)
    draw = ImageDraw.Draw(page)
    for row in range(6):
        draw.rectangle((40, 40 + 50 * row, width_px - 60, 60 + 50 * row), fill=0)
    page.save(path)


def write_corpus(folder: Path) -> Path:
    pages = folder / "pages"
    pages.mkdir(parents=True)
    rows = []
    for name, width_px in (("one", 600), ("two", 620), ("bad", BAD_WIDTH), ("again", 600)):
        write_page(pages / f"{name}.png", width_px)
        rows.append({"id": name, "path": f"pages/{name}.png", "needs_vlm": name == "two"})
    text = "\n".join(json.dumps(row) for row in rows)
    (folder / "MANIFEST.jsonl").write_text(text, encoding="utf-8")
    return folder


def read(folder: Path, out: Path, **triage: object) -> CorpusReading:
    ocr = FakeOcr(folder=folder, faults={BAD_WIDTH: Fault.ENGINE_ERROR})
    settings = Settings(
        home=folder / "home", executor={"jobs": 1, "max_attempts": 1}, triage=triage, route="vlm"
    )
    return read_labelled_pages(
        read_corpora([folder / "corpus"]),
        out,
        settings=settings,
        on_event=lambda event: None,
        engine_builder=FakeEngines(ocr=ocr),
    )


def test_every_row_has_its_page_and_no_policy_makes_it_be_read_again(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus")
    reading = read(tmp_path, tmp_path / "out")
    calls = (tmp_path / "calls").read_text(encoding="ascii").splitlines()

    by_id = {page.label.row.id: page for page in reading.pages}
    assert by_id["one"].text == by_id["again"].text == "page of 600 pixels"
    assert by_id["two"].text == "page of 620 pixels"
    assert not by_id["bad"].is_read
    assert by_id["one"].signals["confidence_median"] == 0.99
    assert by_id["one"].visual_tokens > 0
    assert not any(page.is_blank for page in reading.pages)

    again = read(tmp_path, tmp_path / "other", profile="thrifty", audit_share=0.5)
    later = (tmp_path / "calls").read_text(encoding="ascii").splitlines()
    assert [page.text for page in again.pages] == [page.text for page in reading.pages]
    assert [call.split()[0] for call in later[len(calls) :]] == [str(BAD_WIDTH)]
