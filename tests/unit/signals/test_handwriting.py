"""Handwriting is told from print by its shape, and only where no word was read with confidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image, ImageOps

from models.geometry import Box
from models.text import Word
from pipeline.signals import handwriting
from pipeline.signals.handwriting import Handwriting, find_handwriting
from pipeline.signals.rules import find_rules
from pipeline.signals.view import view_page
from tests.unit.signals.pages import blank_page, write_lines

SAMPLES = Path(__file__).parents[3] / "samples"
NOTE = (260, 330, 1060, 480)
"""Two written lines of samples/handwritten_letter.jpg."""


def found_on(page: Image.Image, words: tuple[Word, ...]) -> Handwriting:
    view = view_page(page, words)
    return find_handwriting(view, find_rules(view))


def written_note() -> Image.Image:
    with Image.open(SAMPLES / "handwritten_letter.jpg") as letter:
        cut = ImageOps.autocontrast(letter.convert("L").crop(NOTE), cutoff=2)
    return cut.resize((round(cut.width * 0.45), round(cut.height * 0.45)))


def printed_page() -> tuple[Image.Image, tuple[Word, ...]]:
    page = blank_page()
    return page, tuple(word for line in write_lines(page, 20) for word in line)


def test_a_written_note_on_a_printed_page_is_found_where_it_stands() -> None:
    page, words = printed_page()
    note = written_note()
    left, top = 250, 900
    page.paste(note, (left, top))

    found = found_on(page, words)

    assert found.probability > 0.7
    assert found.ink > 2
    best = found.areas[0]
    assert left - 5 <= best.left_px * page.width / 806 <= left + note.width
    assert top - 5 <= best.top_px * page.width / 806 <= top + note.height


def test_print_that_nobody_read_is_no_handwriting() -> None:
    page, _ = printed_page()

    found = found_on(page, ())

    assert found.probability < 0.5
    assert found.areas == ()


def test_a_note_that_was_read_with_confidence_needs_no_second_look() -> None:
    page, words = printed_page()
    note = written_note()
    page.paste(note, (250, 900))
    box = Box(250.0, 900.0, 250.0 + note.width, 900.0 + note.height)

    sure = found_on(page, (*words, Word(text="noted", box=box, confidence=0.95)))
    unsure = found_on(page, (*words, Word(text="noted", box=box, confidence=0.3)))

    assert sure.areas == ()
    assert unsure.areas


def test_an_empty_page_has_none() -> None:
    assert found_on(blank_page(), ()) == Handwriting(probability=0.0, ink=0.0, areas=())


def test_weights_for_other_shapes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = json.loads(handwriting.WEIGHTS_FILE.read_text())
    stored["names"] = stored["names"][::-1]
    other = tmp_path / "handwriting.json"
    other.write_text(json.dumps(stored))
    monkeypatch.setattr(handwriting, "WEIGHTS_FILE", other)
    handwriting.network.cache_clear()
    with pytest.raises(ValueError, match="train it again"):
        handwriting.network()
    handwriting.network.cache_clear()
