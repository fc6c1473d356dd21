"""What is Tesseract's own: languages, paragraphs, time limits, and looking twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytesseract
import pytest
from PIL import Image, ImageDraw, ImageFont

from models.errors import EngineError, EngineUnavailable
from models.text import Line
from pipeline.engines.tesseract import TesseractEngine, TesseractOptions
from tests.fakes.papers import paper, printed


def words_of(lines: tuple[Line, ...]) -> list[str]:
    return [word.text for line in lines for word in line.words]


@pytest.mark.parametrize(
    ("language", "package"),
    [
        ("xyz", "tesseract-ocr-xyz"),
        ("chi_foo", "tesseract-ocr-chi-foo"),
        ("script/Thai", "tesseract-ocr-script-thai"),
    ],
)
def test_a_missing_language_names_the_package(language: str, package: str) -> None:
    with pytest.raises(EngineUnavailable, match=f"apt-get install {package}"):
        TesseractEngine().read(paper(100), dpi=100, languages=("eng", language))


def test_no_language_is_an_error_too() -> None:
    with pytest.raises(EngineUnavailable, match="at least one language"):
        TesseractEngine().read(paper(100), dpi=100, languages=())


def test_a_missing_binary_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pytesseract.pytesseract, "tesseract_cmd", str(tmp_path / "nowhere"))
    with pytest.raises(EngineUnavailable, match="apt-get install tesseract-ocr"):
        TesseractEngine().read(paper(100), dpi=100, languages=("eng",))


def test_a_page_that_takes_too_long_is_an_engine_error_that_may_be_retried() -> None:
    page = paper(150)
    for number in range(40):
        printed(page, 150, (1, 1 + number * 0.22), "many words that take their time to be read, line by line")
    with pytest.raises(EngineError) as failure:
        TesseractEngine(timeout_s=0.05).read(page, dpi=150, languages=("eng",))
    assert failure.value.retryable


def test_one_thread_a_process() -> None:
    TesseractEngine()
    assert os.environ["OMP_THREAD_LIMIT"] == "1"


def test_the_version_changes_with_the_options() -> None:
    other = TesseractOptions(rescue_confidence=0.7)
    assert TesseractEngine().version == TesseractEngine().version
    assert TesseractEngine().version != TesseractEngine(options=other).version


def test_paragraphs_are_numbered() -> None:
    page = paper(150)
    for number, top in enumerate((1, 1.25, 1.5, 3, 3.25, 3.5)):
        printed(page, 150, (1, top), f"Line {number} of a letter in two paragraphs", size_pt=12)
    numbers = [line.paragraph_number for line in TesseractEngine().read(page, dpi=150, languages=("eng",))]
    assert None not in numbers
    assert numbers == sorted(numbers, key=lambda number: number or 0)
    assert len(set(numbers)) == 2


@pytest.mark.parametrize("text", ["7", "1", "12", "iv", "- 3 -"])
def test_a_lone_page_number_is_read(text: str) -> None:
    page = printed(paper(200), 200, (4.1, 11), text, size_pt=11)
    (line,) = TesseractEngine().read(page, dpi=200, languages=("eng",))
    assert line.text.strip("- ") == text.strip("- ")
    assert abs(line.box.left - 4.1 * 200) < 30
    assert abs(line.box.bottom - 11 * 200) < 40


def test_words_far_apart_on_a_nearly_empty_page_are_read_in_place() -> None:
    page = printed(printed(paper(200), 200, (1, 1), "Annex"), 200, (6, 10), "sheet 4")
    lines = TesseractEngine().read(page, dpi=200, languages=("eng",))
    assert sorted(words_of(lines)) == ["4", "Annex", "sheet"]
    assert min(line.box.top for line in lines) < 260
    assert max(line.box.bottom for line in lines) > 1_990


def test_print_of_a_few_pixels_is_enlarged() -> None:
    large = paper(200, grain=0)
    lines = [f"row {number} of the small print that nobody reads until it matters" for number in range(12)]
    for number, line in enumerate(lines):
        printed(large, 200, (1, 2 + number * 0.3), line, size_pt=9)
    small = large.resize((large.width * 2 // 5, large.height * 2 // 5), Image.Resampling.BOX)
    expected = " ".join(lines).split()

    def missed(options: TesseractOptions) -> int:
        read = words_of(TesseractEngine(options=options).read(small, dpi=80, languages=("eng",)))
        return sum(word not in read for word in expected)

    as_it_is = TesseractOptions(minute_letter_px=0, tiny_letter_px=0, small_letter_px=0)
    assert missed(TesseractOptions()) * 2 < missed(as_it_is)


def test_ink_that_the_first_look_leaves_out_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look is made blind for the right half, as page segmentation at times is."""
    page = paper(200)
    for number in range(12):
        printed(page, 200, (0.8, 1 + number * 0.3), f"item {number} of the bill", size_pt=12)
        printed(page, 200, (6, 1 + number * 0.3), f"EUR {number}4.20", size_pt=12)
    engine, runs = TesseractEngine(), []
    honest = engine._run

    def half_blind(grey: Image.Image, call: object, mode: str) -> tuple[Line, ...]:
        runs.append(mode)
        lines = honest(grey, call, mode)  # type: ignore[arg-type]
        return lines if len(runs) > 1 else tuple(line for line in lines if line.box.right < 1_000)

    monkeypatch.setattr(engine, "_run", half_blind)
    lines = engine.read(page, dpi=200, languages=("eng",))
    assert words_of(lines).count("EUR") == 12
    assert words_of(lines).count("item") == 12
    assert len(runs) == 2


def test_a_clean_page_is_read_in_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    page = paper(200)
    for number in range(25):
        printed(
            page, 200, (1, 1 + number * 0.3), f"Clause {number}: the tenant keeps the yard clean", size_pt=12
        )
    engine, runs = TesseractEngine(), []
    honest = engine._run

    def counted(grey: Image.Image, call: object, mode: str) -> tuple[Line, ...]:
        runs.append(mode)
        return honest(grey, call, mode)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "_run", counted)
    engine.read(page, dpi=200, languages=("eng",))
    assert len(runs) == 1


@pytest.mark.parametrize("gap_px", [120, 200])
def test_numbers_in_a_margin_of_their_own_are_read(gap_px: int) -> None:
    page = Image.new("L", (1_700, 1_100), 255)
    draw = ImageDraw.Draw(page)
    font = ImageFont.truetype("DejaVuSerif.ttf", 26)
    for number in range(1, 10):
        top = 100 + 72 * number
        draw.text((270, top), str(number), fill=0, font=font)
        draw.text(
            (270 + gap_px, top), "the witness said that the boat had left before noon", fill=0, font=font
        )
    words = words_of(TesseractEngine().read(page, dpi=200, languages=["eng"]))
    assert [word for word in words if word.isdigit()] == [str(number) for number in range(1, 10)]
    assert words.count("witness") == 9
