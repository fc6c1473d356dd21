"""DoclingDocument JSON, for what is built on Docling. The only importer of docling-core.

Boxes and page sizes are in pixels of the page as delivered, origin top left.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TextIO

from models.errors import EngineUnavailable
from models.geometry import Box
from pipeline.exports.document import Json, Pages
from pipeline.exports.flow import FlowKind, FlowPart, page_flow
from pipeline.exports.page_parts import failure_note, is_failed
from pipeline.exports.table_grid import TableGrid

if TYPE_CHECKING:
    from docling_core.types.doc import DoclingDocument, ListGroup, ProvenanceItem, TableData

UNNAMED_MEDIA_TYPE: Final = "application/octet-stream"
"""Of what Python's own table of media types does not have, as docling-core asks for."""


def write_docling(stream: TextIO, header: Json, pages: Pages) -> None:
    """The whole document is in memory: DoclingDocument is one object. On a page of the route vlm the text is the
    model's, each part of it with the box of the whole page. Raises ``EngineUnavailable`` without docling-core."""
    stream.write(docling_document(header, pages).model_dump_json(exclude_none=True))
    stream.write("\n")


def docling_document(header: Json, pages: Pages) -> DoclingDocument:
    """Raises ``EngineUnavailable``."""
    try:
        from docling_core.types.doc import DoclingDocument, DocumentOrigin, Size
    except ModuleNotFoundError as error:
        raise EngineUnavailable(
            f'the format docling needs {error.name}; pip install "doctriage[docling]"'
        ) from error
    media_type = header["media_type"]
    document = DoclingDocument(
        name=header["source"],
        origin=DocumentOrigin(
            mimetype=media_type if media_type in mimetypes.types_map.values() else UNNAMED_MEDIA_TYPE,
            binary_hash=header["document_id"],
            filename=header["source"],
        ),
    )
    for page in pages:
        number = page["page_number"]
        size = Size(width=page["width_px"] or 0, height=page["height_px"] or 0)
        document.add_page(page_no=number, size=size)
        parts: Iterable[FlowPart] = page_flow(page)
        if is_failed(page):
            parts = [FlowPart(kind=FlowKind.PARAGRAPH, text=failure_note(page))]
        _add_parts(document, number, Box(0, 0, size.width, size.height), parts)
    return document


def _add_parts(document: DoclingDocument, page_number: int, page_box: Box, parts: Iterable[FlowPart]) -> None:
    """List items in a row are one list."""
    items: ListGroup | None = None
    for part in parts:
        place = _place(page_number, part.box or page_box, len(part.text))
        if part.kind is FlowKind.LIST_ITEM:
            items = items or document.add_list_group()
            document.add_list_item(
                part.text,
                enumerated=part.marker is not None,
                marker=part.marker or "-",
                prov=place,
                parent=items,
            )
            continue
        items = None
        _add_part(document, part, place)


def _add_part(document: DoclingDocument, part: FlowPart, place: ProvenanceItem) -> None:
    from docling_core.types.doc import DocItemLabel

    if part.table is not None:
        document.add_table(data=_table(part.table), prov=place)
    elif part.kind is FlowKind.HEADING:
        document.add_heading(part.text, level=part.heading_level or 1, prov=place)
    else:
        document.add_text(DocItemLabel.TEXT, part.text, prov=place)


def _place(page_number: int, box: Box, text_chars: int) -> ProvenanceItem:
    from docling_core.types.doc import BoundingBox, CoordOrigin, ProvenanceItem

    return ProvenanceItem(
        page_no=page_number,
        bbox=BoundingBox(l=box.left, t=box.top, r=box.right, b=box.bottom, coord_origin=CoordOrigin.TOPLEFT),
        charspan=(0, text_chars),
    )


def _table(grid: TableGrid) -> TableData:
    from docling_core.types.doc import TableCell, TableData

    cells = [
        TableCell(
            text=cell.text,
            row_span=cell.rows,
            col_span=cell.columns,
            start_row_offset_idx=cell.row,
            end_row_offset_idx=cell.row + cell.rows,
            start_col_offset_idx=cell.column,
            end_col_offset_idx=cell.column + cell.columns,
        )
        for cell in grid.cells
    ]
    return TableData(table_cells=cells, num_rows=grid.row_count, num_cols=grid.column_count)
