"""ALTO 4.4: words with boxes and confidences, in pixels of the page as delivered
(http://www.loc.gov/standards/alto/)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, TextIO

from models.page import Route
from pipeline.exports.document import Json, Pages
from pipeline.exports.markup import WORDS_OF_VLM_PAGES, escaped, program_version
from pipeline.exports.page_parts import (
    blocks_with_lines,
    is_by_vlm,
    is_failed,
    is_followed_by_space,
    language_of,
    text_angle_deg,
    words_of,
)

NAMESPACE: Final = "http://www.loc.gov/standards/alto/ns-v4#"
READING: Final = "reading"
VLM_READING: Final = "vlm_reading"
_LANGUAGE: Final = re.compile(r"[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8})*")


def write_alto(stream: TextIO, header: Json, pages: Pages) -> None:
    """A page at a time; blank and failed pages are there too."""
    stream.write(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<alto xmlns="{NAMESPACE}" SCHEMAVERSION="4.4">\n<Description>\n'
        "<MeasurementUnit>pixel</MeasurementUnit>\n<sourceImageInformation>\n"
        f"<fileName>{escaped(header['source'])}</fileName>\n"
        f"<documentIdentifier>{header['document_id']}</documentIdentifier>\n</sourceImageInformation>\n"
        f"{_processing(READING, 'Words, boxes and confidences as the reader on the CPU gives them.')}"
        f"{_processing(VLM_READING, WORDS_OF_VLM_PAGES)}"
        "</Description>\n<Layout>\n"
    )
    for page in pages:
        stream.writelines(f"{line}\n" for line in _page(page))
    stream.write("</Layout>\n</alto>\n")


def _processing(name: str, description: str) -> str:
    return (
        f'<Processing ID="{name}">\n<processingCategory>contentGeneration</processingCategory>\n'
        f"<processingStepDescription>{description}</processingStepDescription>\n"
        "<processingSoftware><softwareName>doctriage</softwareName>"
        f"<softwareVersion>{program_version()}</softwareVersion></processingSoftware>\n</Processing>\n"
    )


def _page(page: Json) -> Iterator[str]:
    number = page["page_number"]
    yield f"<Page{_attributes(_page_attributes(page))}>"
    size = {} if is_failed(page) else _place((0, 0, page["width_px"], page["height_px"]))
    yield f"<PrintSpace{_attributes({'ID': f'print_space_{number}', **size})}>"
    for block_number, (block, lines) in enumerate(blocks_with_lines(page), 1):
        name = f"{number}_{block_number}"
        yield f"<TextBlock{_attributes({'ID': f'block_{name}', **_place(block['box'])})}>"
        for line_number, line in enumerate(lines, 1):
            yield from _line(line, f"{name}_{line_number}")
        yield "</TextBlock>"
    yield "</PrintSpace>"
    yield "</Page>"


def _page_attributes(page: Json) -> dict[str, object]:
    named: dict[str, object] = {
        "ID": f"page_{page['page_number']}",
        "PAGECLASS": page["route"] or page["state"],
        "PROCESSINGREFS": VLM_READING if is_by_vlm(page) else READING,
        "PHYSICAL_IMG_NR": page["page_number"],
    }
    if is_failed(page):
        return {**named, "QUALITY": "Damaged", "QUALITY_DETAIL": page["error"]["message"]}
    if page["route"] == Route.OCR_DEGRADED and page["degraded"] is not None:
        named["QUALITY_DETAIL"] = page["degraded"]["message"]
    language = language_of(page)
    return {
        **named,
        "WIDTH": page["width_px"],
        "HEIGHT": page["height_px"],
        "PC": page["confidence"],
        "ROTATION": text_angle_deg(page) or None,
        "LANG": language if language and _LANGUAGE.fullmatch(language) else None,
    }


def _line(line: Json, name: str) -> Iterator[str]:
    yield f"<TextLine{_attributes({'ID': f'line_{name}', **_place(line['box'])})}>"
    spaces = is_followed_by_space(line)
    for number, (word, has_space) in enumerate(zip(words_of(line), spaces, strict=True), 1):
        named = {"ID": f"word_{name}_{number}", "CONTENT": word["text"], "WC": word["confidence"]}
        yield f"<String{_attributes({**named, **_place(word['box'])})}/>"
        if has_space:
            yield "<SP/>"
    yield "</TextLine>"


def _place(box: Sequence[float]) -> dict[str, object]:
    left, top, right, bottom = box
    return {"HPOS": left, "VPOS": top, "WIDTH": round(right - left, 1), "HEIGHT": round(bottom - top, 1)}


def _attributes(named: dict[str, object]) -> str:
    return "".join(f' {name}="{escaped(str(value))}"' for name, value in named.items() if value is not None)
