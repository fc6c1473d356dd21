"""Plain text and HTML: what a reader sees, and nothing that runs."""

from __future__ import annotations

import pytest
from lxml import html

from pipeline.exports.html import page_html
from tests.unit.exports.documents import block, every_kind, header, page, vlm_page, written


def test_text_has_a_form_feed_after_each_page() -> None:
    pages = written("text", every_kind()).decode().split("\f")
    assert len(pages) == 8
    assert pages[1] == "Pay at once, or\nnever more.\n"
    assert (pages[2], pages[7]) == ("", "")
    assert pages[3] == "[Page 4 could not be read: damaged & <torn>]\n"
    assert pages[5] == "the model's\n"


def test_every_page_is_a_section_with_its_route_and_reasons() -> None:
    root = html.document_fromstring(written("html", every_kind()))
    sections = root.findall(".//section")
    assert [one.get("id") for one in sections] == [f"page-{number}" for number in range(1, 8)]
    assert [one.get("data-route") for one in sections] == [
        "ocr", "text_layer", "blank", None, "ocr_degraded", "vlm", "ocr",
    ]  # fmt: skip
    assert sections[4].get("data-reasons") == "table_ruled_cells 18 ≥ 12"
    assert sections[5].get("lang") == "de"
    notes = [one.findtext("p[@class='note']") for one in sections]
    assert [index for index, note in enumerate(notes) if note] == [3, 4]
    assert notes[3] == "Page 4 could not be read: damaged & <torn>"
    assert "no VLM is configured" in str(notes[4])


def test_the_pages_are_in_the_html_as_they_are_in_the_markdown() -> None:
    root = html.document_fromstring(written("html", every_kind()))
    first, sixth = root.get_element_by_id("page-1"), root.get_element_by_id("page-6")
    assert first.findtext("h2") == "Invoice & <Sons>"
    assert first.findtext("ul/li") == "first thing"
    assert sixth.findtext("h1") == "Rechnung"
    assert sixth.findtext("ol/li") == "erstens"
    assert sixth.findtext(".//td") == "7"


@pytest.mark.parametrize(
    "markdown",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "![x](http://tracker.example/a.png)",
        "[x](javascript:alert(1))",
        "<p style='background:url(http://a.example)' onclick='a()'>x</p>",
        "<iframe src=http://a.example></iframe>",
        "<table><tr><td background='http://a.example'>x</td></tr></table>",
        "<svg><script>alert(1)</script></svg>",
        "<link rel=stylesheet href=http://a.example>",
        "<span class='handwriting evil' id=x>x</span>",
    ],
)
def test_nothing_runs_and_nothing_is_fetched(markdown: str) -> None:
    fragment = html.fragment_fromstring(page_html(markdown), create_parent=True)
    for element in fragment.iter():
        assert element.tag not in {"script", "img", "iframe", "svg", "link", "a", "style", "object"}
        assert set(element.attrib) <= {"rowspan", "colspan", "start", "class"}
        assert element.get("class") in (None, "", "handwriting")


def test_marks_of_the_vlm_are_kept_as_spans() -> None:
    page_with_marks = vlm_page(1, [], "<handwriting>see me</handwriting> <signature/>")
    root = html.document_fromstring(written("html", [page_with_marks]))
    spans = [(one.get("class"), one.text) for one in root.iterfind(".//span")]
    assert spans == [("handwriting", "see me"), ("signature", "[signature]")]


def test_a_name_and_a_page_cannot_write_html_of_their_own() -> None:
    document = header(source="</title><script>alert(1)</script>.pdf")
    root = html.document_fromstring(written("html", [page([block("<script>x</script>", top=9)])], document))
    assert root.findall(".//script") == []
    assert root.findtext(".//title") == "</title><script>alert(1)</script>.pdf"
    assert "<script>x</script>" in root.get_element_by_id("page-1").text_content()
