"""A font for text that is found and selected but not seen: every character is a box half as wide as high.

Nothing of it is painted, as the text is shown in render mode 3; but by their outlines PDFium knows where letters are,
and without any it passes over text that runs up a page. The character codes of a document are given out in the order
of first use; a ToUnicode map says what each stands for, so that any script can be searched and copied.
"""

from __future__ import annotations

from io import BytesIO
from typing import Final

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib.tables._g_l_y_f import Glyph
from pypdf import PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    NameObject,
    NumberObject,
    StreamObject,
    TextStringObject,
)

FONT_NAME: Final = "/DoctriageInvisible"
EM: Final = 1000
ADVANCE_EM: Final = 0.5
MOST_CODES: Final = 0xFFFE
REPLACEMENT: Final = "\ufffd"
CODES_A_BLOCK: Final = 100
"""What a CMap may list at once."""


class InvisibleFont:
    """``text_code`` and ``reference`` while pages are written, ``write`` at the end."""

    def __init__(self, writer: PdfWriter) -> None:
        self._writer = writer
        self._font = DictionaryObject()
        self._codes: dict[str, int] = {REPLACEMENT: 1}
        self.is_used = False

    @property
    def reference(self) -> IndirectObject:
        """What pages refer to."""
        self.is_used = True
        return self._writer._add_object(self._font)

    def text_code(self, text: str) -> str:
        """The text as a hexadecimal string of a content stream, two bytes a character."""
        return "".join(f"{self._code(character):04X}" for character in text)

    def _code(self, character: str) -> int:
        code = self._codes.get(character)
        if code is None:
            if len(self._codes) >= MOST_CODES:
                return self._codes[REPLACEMENT]
            code = self._codes[character] = len(self._codes) + 1
        return code

    def write(self) -> None:
        """Once at the end, where it is used."""
        writer = self._writer
        descendant = _named(
            {
                "/Type": NameObject("/Font"),
                "/Subtype": NameObject("/CIDFontType2"),
                "/BaseFont": NameObject(FONT_NAME),
                "/CIDSystemInfo": _named(
                    {
                        "/Registry": TextStringObject("Adobe"),
                        "/Ordering": TextStringObject("Identity"),
                        "/Supplement": NumberObject(0),
                    }
                ),
                "/DW": NumberObject(int(ADVANCE_EM * EM)),
                "/CIDToGIDMap": writer._add_object(_deflated(b"\0\0" + b"\0\1" * len(self._codes))),
                "/FontDescriptor": writer._add_object(_descriptor(writer)),
            }
        )
        self._font.update(
            _named(
                {
                    "/Type": NameObject("/Font"),
                    "/Subtype": NameObject("/Type0"),
                    "/BaseFont": NameObject(FONT_NAME),
                    "/Encoding": NameObject("/Identity-H"),
                    "/DescendantFonts": ArrayObject([writer._add_object(descendant)]),
                    "/ToUnicode": writer._add_object(_deflated(_to_unicode(self._codes).encode("ascii"))),
                }
            )
        )


def _descriptor(writer: PdfWriter) -> DictionaryObject:
    """The ascent is the whole height of a line of ours, so that a selection covers the print."""
    font_file = _deflated(_font_program())
    return _named(
        {
            "/Type": NameObject("/FontDescriptor"),
            "/FontName": NameObject(FONT_NAME),
            "/Flags": NumberObject(5),
            "/FontBBox": ArrayObject(map(NumberObject, (0, 0, int(ADVANCE_EM * EM), EM))),
            "/ItalicAngle": NumberObject(0),
            "/Ascent": NumberObject(EM),
            "/Descent": NumberObject(-1),
            "/CapHeight": NumberObject(EM),
            "/StemV": NumberObject(80),
            "/FontFile2": writer._add_object(font_file),
        }
    )


def _font_program() -> bytes:
    """A TrueType font of two boxes; the same bytes each time."""
    names = [".notdef", "any"]
    builder = FontBuilder(EM, isTTF=True)
    builder.font.recalcTimestamp = False
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({0x20: "any"})
    builder.setupGlyf({name: _box() for name in names})
    builder.setupHorizontalMetrics({name: (int(ADVANCE_EM * EM), 0) for name in names})
    builder.setupHorizontalHeader(ascent=EM, descent=-1)
    builder.setupPost(keepGlyphNames=False)
    builder.updateHead(created=0, modified=0)
    program = BytesIO()
    builder.save(program)
    return program.getvalue()


def _box() -> Glyph:
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for corner in ((0, EM), (int(ADVANCE_EM * EM), EM), (int(ADVANCE_EM * EM), 0)):
        pen.lineTo(corner)
    pen.closePath()
    return pen.glyph()


def _to_unicode(codes: dict[str, int]) -> str:
    pairs = [f"<{code:04X}> <{letter.encode('utf-16-be').hex().upper()}>" for letter, code in codes.items()]
    blocks = [pairs[start : start + CODES_A_BLOCK] for start in range(0, len(pairs), CODES_A_BLOCK)]
    listed = "\n".join(f"{len(block)} beginbfchar\n{chr(10).join(block)}\nendbfchar" for block in blocks)
    return (
        "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n"
        "/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def\n"
        "/CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n"
        "1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n"
        f"{listed}\nendcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n"
    )


def _named(entries: dict[str, object]) -> DictionaryObject:
    return DictionaryObject({NameObject(name): value for name, value in entries.items()})


def _deflated(stored: bytes) -> StreamObject:
    stream = StreamObject()
    stream.set_data(stored)
    return stream.flate_encode()
