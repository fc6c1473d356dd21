"""ALTO: valid, every page there, boxes and confidences those of the words."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from tests.unit.exports.documents import every_kind, header, written

GRAMMAR = Path(__file__).with_name("alto.rng")
ALTO = {"a": "http://www.loc.gov/standards/alto/ns-v4#"}


@pytest.fixture(scope="module")
def alto() -> etree._Element:
    return etree.fromstring(written("alto", every_kind()))


def test_it_is_valid(alto: etree._Element) -> None:
    grammar = etree.RelaxNG(etree.parse(str(GRAMMAR)))
    assert grammar.validate(alto), grammar.error_log


def test_every_page_is_there_and_says_how_it_came_about(alto: etree._Element) -> None:
    pages = alto.findall(".//a:Page", ALTO)
    assert [page.get("PHYSICAL_IMG_NR") for page in pages] == [str(number) for number in range(1, 8)]
    assert [page.get("PAGECLASS") for page in pages] == [
        "ocr", "text_layer", "blank", "failed", "ocr_degraded", "vlm", "ocr",
    ]  # fmt: skip
    assert pages[3].get("QUALITY_DETAIL") == "damaged & <torn>"
    assert pages[4].get("QUALITY_DETAIL") == "no VLM is configured"


def test_a_page_of_the_vlm_says_whose_words_it_has(alto: etree._Element) -> None:
    vlm, ocr = (alto.find(f".//a:Page[@PAGECLASS='{route}']", ALTO) for route in ("vlm", "ocr"))
    notes = {
        step.get("ID"): step.findtext("a:processingStepDescription", namespaces=ALTO)
        for step in alto.findall(".//a:Processing", ALTO)
    }
    assert "the words are those of the reader on the CPU" in notes[vlm.get("PROCESSINGREFS")]
    assert vlm.get("PROCESSINGREFS") != ocr.get("PROCESSINGREFS")
    assert [word.get("CONTENT") for word in vlm.findall(".//a:String", ALTO)] == [
        "Pay", "at", "once,", "or", "never", "more.",
    ]  # fmt: skip


def test_words_have_their_place_and_how_sure_they_are(alto: etree._Element) -> None:
    word = alto.find(".//a:String[@CONTENT='once,']", ALTO)
    place = [float(word.get(name)) for name in ("HPOS", "VPOS", "WIDTH", "HEIGHT", "WC")]
    assert place == [212, 240, 80, 30, 0.91]


def test_a_turned_page_says_so(alto: etree._Element) -> None:
    assert alto.findall(".//a:Page", ALTO)[6].get("ROTATION") == "88.5"


def test_what_xml_cannot_hold_is_replaced() -> None:
    text = written("alto", [], header(source="bad\x02name\ufffe & co.pdf")).decode()
    assert "<fileName>bad\ufffdname\ufffd &amp; co.pdf</fileName>" in text
