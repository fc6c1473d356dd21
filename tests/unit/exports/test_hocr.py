"""hOCR: valid by the validator of its specification, every page there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree

from tests.unit.exports.documents import every_kind, header, page, written

HTML = {"h": "http://www.w3.org/1999/xhtml"}


@pytest.fixture(scope="module")
def hocr() -> bytes:
    return written("hocr", every_kind())


def test_it_is_valid(hocr: bytes, tmp_path: Path) -> None:
    """The validator is a program of its own: Python warns of its code."""
    (tmp_path / "a.hocr").write_bytes(hocr)
    validator = Path(sys.executable).with_name("hocr-spec")
    done = subprocess.run([validator, tmp_path / "a.hocr"], capture_output=True, text=True, check=False)
    assert "[OK]" in done.stdout + done.stderr, done.stdout + done.stderr
    assert "[ERROR]" not in done.stdout + done.stderr


def test_every_page_is_there(hocr: bytes) -> None:
    pages = etree.fromstring(hocr).findall(".//h:div[@class='ocr_page']", HTML)
    assert [one.get("data-route") for one in pages] == [
        "ocr", "text_layer", "blank", "failed", "ocr_degraded", "vlm", "ocr",
    ]  # fmt: skip
    assert "bbox 0 0 850 1100" in pages[0].get("title")
    assert "ppageno 4" in pages[4].get("title")


def test_words_have_boxes_confidences_and_the_turn_of_their_line(hocr: bytes) -> None:
    root = etree.fromstring(hocr)
    [word] = [
        one
        for one in root.iterfind(".//h:div[@id='page_1']//h:span[@class='ocrx_word']", HTML)
        if one.text == "once,"
    ]
    assert word.get("title") == "bbox 212 240 292 270; x_wconf 91"
    [layer, *_] = root.iterfind(".//h:div[@id='page_2']//h:span[@class='ocrx_word']", HTML)
    assert layer.text == "Pay"
    turned = root.find(".//h:div[@id='page_7']//h:span[@class='ocr_line']", HTML)
    assert turned.get("title").endswith("; textangle 88.5")


def test_a_name_cannot_leave_its_quotes() -> None:
    text = written("hocr", [page()], header(source='a"; bbox 1 1 1 1; image "<b>.png')).decode()
    title = etree.fromstring(text.encode()).find(".//h:div", HTML).get("title")
    assert title.startswith("image \"a', bbox 1 1 1 1, image '<b>.png\"; bbox 0 0 850 1100;")
