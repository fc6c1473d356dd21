"""DoclingDocument: what docling-core reads back is what was read."""

from __future__ import annotations

import pytest
from docling_core.types.doc import DoclingDocument, ListItem, SectionHeaderItem, TableItem, TextItem

from models.document import MediaType
from models.geometry import Box
from models.page import Table
from models.text import BlockKind
from tests.unit.exports.documents import block, every_kind, header, page, vlm_page, written


def read_back(pages: object, **about: object) -> DoclingDocument:
    kept = tuple(pages)  # type: ignore[call-overload]
    return DoclingDocument.model_validate_json(written("docling", kept, header(len(kept), **about)))  # type: ignore[arg-type]


def test_every_page_is_there_in_its_size() -> None:
    document = read_back(every_kind())
    assert sorted(document.pages) == list(range(1, 8))
    assert (document.pages[1].size.width, document.pages[1].size.height) == (850, 1100)
    assert document.name == "a/inv.pdf"
    assert document.origin is not None
    assert document.origin.binary_hash == int("ab" * 8, 16)


def test_headings_items_and_paragraphs_are_told_apart_and_placed() -> None:
    document = read_back(every_kind()[:1])
    heading, item, paragraph = (one for one, _ in document.iterate_items())
    assert isinstance(heading, SectionHeaderItem)
    assert (heading.text, heading.level) == ("Invoice & <Sons>", 2)
    assert isinstance(item, ListItem)
    assert (item.text, item.enumerated) == ("first thing", False)
    assert isinstance(paragraph, TextItem)
    assert paragraph.text == "Pay at once, or never more."
    box = paragraph.prov[0].bbox
    assert (box.l, box.t, box.r, box.b, box.coord_origin.value) == (100, 240, 340, 310, "TOPLEFT")


def test_a_table_stands_in_the_place_of_its_lines() -> None:
    html = "<table><tr><td colspan='2'>all</td></tr><tr><td>1</td><td>2</td></tr></table>"
    blocks = [block("before", top=100), block("all", "1 2", top=200), block("after", top=400)]
    [before, table, after] = [
        one
        for one, _ in read_back(
            [page(blocks, tables=[Table(box=Box(90, 190, 500, 300), html=html)])]
        ).iterate_items()
    ]
    assert isinstance(before, TextItem)
    assert isinstance(after, TextItem)
    assert (before.text, after.text) == ("before", "after")
    assert isinstance(table, TableItem)
    assert [(cell.text, cell.col_span) for cell in table.data.table_cells] == [("all", 2), ("1", 1), ("2", 1)]
    assert (table.data.num_rows, table.data.num_cols) == (2, 2)


def test_a_page_of_the_vlm_has_the_models_text_and_the_pages_box() -> None:
    markdown = (
        "## Über **uns**\n\n- eins\n- zwei\n\n3. drei\n\n<table><tr><td>7</td></tr></table>\n\n```\ncode\n```"
    )
    items = [one for one, _ in read_back([vlm_page(1, [block("cpu", top=9)], markdown)]).iterate_items()]
    told = [(type(one).__name__, getattr(one, "text", "")) for one in items]
    assert told == [
        ("SectionHeaderItem", "Über uns"),
        ("ListItem", "eins"),
        ("ListItem", "zwei"),
        ("ListItem", "drei"),
        ("TableItem", ""),
        ("TextItem", "code"),
    ]
    assert {(one.prov[0].bbox.r, one.prov[0].bbox.b) for one in items} == {(850, 1100)}  # type: ignore[attr-defined]
    assert [one.marker for one in items if isinstance(one, ListItem)] == ["-", "-", "3."]


def test_a_failed_page_says_so() -> None:
    [text] = [one for one, _ in read_back([every_kind()[3]]).iterate_items()]
    assert isinstance(text, TextItem)
    assert text.text == "Page 4 could not be read: damaged & <torn>"


@pytest.mark.parametrize("media_type", MediaType)
def test_every_media_type_is_taken(media_type: MediaType) -> None:
    assert read_back([page()], media_type=media_type).origin is not None


def test_a_list_item_without_a_mark_keeps_its_text() -> None:
    [item] = [
        one
        for one, _ in read_back([page([block("a thing", top=9, kind=BlockKind.LIST_ITEM)])]).iterate_items()
    ]
    assert isinstance(item, ListItem)
    assert item.text == "a thing"
