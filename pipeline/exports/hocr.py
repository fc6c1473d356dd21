"""hOCR 1.2: words with boxes and confidences, in the page as delivered (http://kba.github.io/hocr-spec/1.2/)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TextIO

from pipeline.exports.document import Json, Pages
from pipeline.exports.markup import WORDS_OF_VLM_PAGES, escaped, program_version
from pipeline.exports.page_parts import (
    blocks_with_lines,
    is_failed,
    is_followed_by_space,
    language_of,
    text_angle_deg,
    whole_box,
    words_of,
)

CAPABILITIES: Final = "ocr_page ocr_carea ocr_par ocr_line ocrx_word ocrp_wconf ocrp_lang"


def write_hocr(stream: TextIO, header: Json, pages: Pages) -> None:
    """XHTML, a page at a time; blank and failed pages are there too."""
    stream.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE html>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="und" lang="und">\n<head>\n'
        f"<title>{escaped(header['source'])}</title>\n"
        '<meta http-equiv="Content-Type" content="text/html;charset=utf-8" />\n'
        f'<meta name="ocr-system" content="doctriage {program_version()}" />\n'
        f'<meta name="ocr-capabilities" content="{CAPABILITIES}" />\n'
        '<meta name="ocr-langs" content="unknown" />\n<meta name="ocr-scripts" content="unknown" />\n'
        f'<meta name="ocr-number-of-pages" content="{header["page_count"]}" />\n'
        f'<meta name="description" content="{WORDS_OF_VLM_PAGES}" />\n'
        "</head>\n<body>\n"
    )
    for page in pages:
        stream.writelines(f"{line}\n" for line in _page(page, header))
    stream.write("</body>\n</html>\n")


def _page(page: Json, header: Json) -> Iterator[str]:
    number = page["page_number"]
    language = language_of(page)
    spoken = "" if language is None else f' lang="{escaped(language)}" xml:lang="{escaped(language)}"'
    title, route = _page_title(page, header), page["route"] or page["state"]
    yield f'<div class="ocr_page" id="page_{number}" title="{title}" data-route="{route}"{spoken}>'
    angle_deg = 0.0 if is_failed(page) else text_angle_deg(page)
    for block_number, (block, lines) in enumerate(blocks_with_lines(page), 1):
        name, title = f"{number}_{block_number}", f"bbox {whole_box(block['box'])}"
        yield f'<div class="ocr_carea" id="block_{name}" title="{title}">'
        yield f'<p class="ocr_par" id="par_{name}" title="{title}">'
        for line_number, line in enumerate(lines, 1):
            yield _line(line, f"{name}_{line_number}", angle_deg)
        yield "</p>"
        yield "</div>"
    yield "</div>"


def _page_title(page: Json, header: Json) -> str:
    width_px, height_px = page["width_px"] or 0, page["height_px"] or 0
    image = escaped(header["source"].replace('"', "'").replace("\\", "/").replace(";", ","))
    parts = [
        f"image &quot;{image}&quot;",
        f"bbox 0 0 {width_px} {height_px}",
        f"ppageno {page['page_number'] - 1}",
    ]
    if page["dpi"] is not None:
        parts.append(f"scan_res {round(page['dpi'])} {round(page['dpi'])}")
    return "; ".join(parts)


def _line(line: Json, name: str, angle_deg: float) -> str:
    turned = f"; textangle {angle_deg:g}" if angle_deg else ""
    spaces = is_followed_by_space(line)
    words = "".join(
        _word(word, f"{name}_{number}") + (" " if has_space else "")
        for number, (word, has_space) in enumerate(zip(words_of(line), spaces, strict=True), 1)
    )
    return f'<span class="ocr_line" id="line_{name}" title="bbox {whole_box(line["box"])}{turned}">{words}</span>'


def _word(word: Json, name: str) -> str:
    sure = word["confidence"]
    confidence = "" if sure is None else f"; x_wconf {round(100 * sure)}"
    title = f"bbox {whole_box(word['box'])}{confidence}"
    return f'<span class="ocrx_word" id="word_{name}" title="{title}">{escaped(word["text"])}</span>'
