"""What every OCR engine owes, shown on the real engines."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from models.geometry import Box
from models.page import ReadBy
from models.text import Line
from pipeline.engines.paddleocr import PaddleOcrEngine
from pipeline.engines.tesseract import TesseractEngine
from pipeline.ports import OcrEngine
from pipeline.settings import PaddleSettings
from tests.fakes.papers import paper, printed

DPI = 150
LANGUAGES = ("eng",)
SENTENCES = (
    "The ferry leaves the harbour at nine",
    "Tickets are sold on the upper deck",
    "Bicycles travel free of charge in winter",
)


@pytest.fixture(scope="module", params=["tesseract", "paddleocr"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OcrEngine]:
    if request.param == "tesseract":
        yield TesseractEngine()
    else:
        yield PaddleOcrEngine(PaddleSettings(), weights_dir=tmp_path_factory.mktemp("weights"))


def letter(mode: str = "L") -> Image.Image:
    image = paper(DPI, tone=255, grain=0)
    for number, sentence in enumerate(SENTENCES):
        printed(image, DPI, (1, 2 + number), sentence, size_pt=14)
    return image.convert(mode)


def read(engine: OcrEngine, image: Image.Image, dpi: float = DPI) -> tuple[Line, ...]:
    return engine.read(image, dpi=dpi, languages=LANGUAGES)


def text_of(lines: tuple[Line, ...]) -> str:
    return "\n".join(line.text for line in lines)


def test_it_names_itself_as_results_do(engine: OcrEngine) -> None:
    assert ReadBy(engine.name)
    assert engine.version
    assert engine.version == engine.version.strip()


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_printed_lines_are_read_in_order(engine: OcrEngine, mode: str) -> None:
    assert text_of(read(engine, letter(mode))).splitlines() == list(SENTENCES)


def test_words_stand_where_they_are_printed_with_a_confidence(engine: OcrEngine) -> None:
    lines = read(engine, letter())
    for number, line in enumerate(lines):
        assert abs(line.box.left - DPI) < 15
        assert (2 + number) * DPI - 15 < line.box.top < line.box.bottom < (2 + number) * DPI + 60
        lefts = [word.box.left for word in line.words]
        assert lefts == sorted(lefts)
        for word in line.words:
            assert word.confidence is not None
            assert 0.6 < word.confidence <= 1
            assert word.box.intersection(line.box) == pytest.approx(word.box.area)
        assert "".join(word.text for word in line.words) == line.text.replace(" ", "")


def test_text_is_composed_and_printable(engine: OcrEngine) -> None:
    image = printed(letter(), DPI, (1, 6), "Café Müller, naïve façade", size_pt=14)
    text = text_of(read(engine, image)).replace("\n", " ")
    assert unicodedata.is_normalized("NFC", text)
    assert text.isprintable()


def test_the_image_is_left_as_it_was_and_reads_the_same_again(engine: OcrEngine) -> None:
    image = letter("RGB")
    before = image.tobytes()
    assert read(engine, image) == read(engine, image)
    assert image.tobytes() == before


def noise() -> Image.Image:
    return Image.fromarray(np.random.default_rng(2).integers(0, 255, (400, 300), dtype=np.uint8))


@pytest.mark.parametrize(
    "image",
    [
        pytest.param(Image.new("L", (1, 1), 0), id="one pixel"),
        pytest.param(Image.new("RGB", (9, 9), "white"), id="nine by nine"),
        pytest.param(Image.new("L", (600, 800), 255), id="white"),
        pytest.param(Image.new("RGB", (600, 800), "black"), id="black"),
        pytest.param(Image.new("L", (40_000, 20), 255), id="very wide"),
        pytest.param(Image.new("L", (20, 40_000), 0), id="very high"),
        pytest.param(noise(), id="noise"),
    ],
)
def test_an_image_without_text_gives_no_lines(engine: OcrEngine, image: Image.Image) -> None:
    assert read(engine, image) == ()


def test_white_on_black_is_read(engine: OcrEngine) -> None:
    image = letter()
    ImageDraw.Draw(image).rectangle((DPI, 6 * DPI, 6 * DPI, 6 * DPI + 50), fill=0)
    printed(image, DPI, (1.2, 6.05), "OPENING HOURS AND PRICES", size_pt=14, grey=255)
    negative = Image.fromarray(255 - np.asarray(letter()))
    assert "OPENING HOURS AND PRICES" in text_of(read(engine, image))
    assert text_of(read(engine, negative)).splitlines() == list(SENTENCES)


def test_every_item_of_a_long_strip_is_read_once(engine: OcrEngine) -> None:
    count = 70
    strip = Image.new("L", (420, 80 + 50 * count), 255)
    draw, font = ImageDraw.Draw(strip), ImageFont.load_default(26)
    for number in range(count):
        draw.text((20, 40 + 50 * number), f"{100 + number} brown bread", fill=0, font=font)
        draw.text((310, 40 + 50 * number), "4.20", fill=0, font=font)
    text = text_of(read(engine, strip, dpi=200))
    numbers = [int(found) for found in re.findall(r"^(1\d\d) brown", text, flags=re.MULTILINE)]
    assert numbers == list(range(100, 100 + count))


def test_a_banner_is_read_from_end_to_end(engine: OcrEngine) -> None:
    words = [f"stop{number}" for number in range(10, 50)]
    banner = Image.new("L", (160 * len(words), 90), 255)
    for number, word in enumerate(words):
        ImageDraw.Draw(banner).text((20 + 160 * number, 25), word, fill=0, font=ImageFont.load_default(32))
    found = re.findall(r"stop\d\d", text_of(read(engine, banner, dpi=200)))
    assert found == words


def test_two_columns_of_small_print_lose_no_word(engine: OcrEngine) -> None:
    image = paper(DPI, tone=255, grain=0)
    for number in range(30):
        printed(image, DPI, (0.8, 1 + number * 0.2), f"item {number} of the first column", size_pt=9)
        printed(image, DPI, (4.5, 1 + number * 0.2), f"item {number} of the second column", size_pt=9)
    text = text_of(read(engine, image))
    assert text.count("of the first column") == 30
    assert text.count("of the second column") == 30


def test_boxes_lie_on_the_image(engine: OcrEngine) -> None:
    image = letter().crop((DPI - 4, 2 * DPI, 7 * DPI, 5 * DPI))
    page = Box(0, 0, image.width, image.height)
    for line in read(engine, image):
        assert line.box.intersection(page) == pytest.approx(line.box.area)
