"""Fonts whose codes say nothing, or lie, about the letters that they draw."""

from __future__ import annotations

import io
import random
import re
import string
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.basePen import BasePen
from fontTools.pens.t2CharStringPen import T2CharStringPen
from fontTools.ttLib import TTFont
from pikepdf import Array, Dictionary, Name, Pdf
from reportlab.pdfbase import pdfmetrics, ttfonts

from tests.kinds.judging import Cousin, Expected
from tests.kinds.paper import altered, drawn_pdf, font_path, printed, raw_pdf

TIMETABLE = (
    "Rules for the mountain hut",
    "The stove is lit by whoever comes first in the evening.",
    "Blankets are shaken out and folded before leaving at dawn.",
    "Guests bring their own bread; soup costs three coins a bowl.",
    "The key hangs behind the second shutter on the south wall.",
    "Write your name in the big book, with the path you will take.",
)
SPACE_KEPT = string.ascii_letters + string.digits + ".,;:"


def ciphered_layers() -> Iterator[Cousin]:
    """The layer is long, printable and wrong; only the ink tells. The page must be read from its picture."""
    for name, cipher in _ciphers().items():
        yield _unread(
            f"cipher_{name}", lambda path, cipher=cipher: _write_lying_map(path, cipher, first_line=0)
        )
    yield _unread(
        "cipher_body_only", lambda path: _write_lying_map(path, _ciphers()["substitution"], first_line=1)
    )
    yield _read_anyhow("truetype_without_a_map", _write_without_map)
    yield _unread("type3_without_a_map", lambda path: _write_type3(path, keeps_spaces=False))
    yield _unread("type3_with_real_spaces", lambda path: _write_type3(path, keeps_spaces=True))
    yield _unread("type1_with_glyph_numbers", _write_type1)


def _unread(name: str, write: Callable[[Path], None]) -> Cousin:
    expected = Expected(must=TIMETABLE, edit_share=0.08, not_routes=frozenset({"text_layer", "blank"}))
    return Cousin(name=name, suffix=".pdf", write=write, expected=expected)


def _read_anyhow(name: str, write: Callable[[Path], None]) -> Cousin:
    """The font's own tables still tell the letters, so the layer may be used by who looks there."""
    return Cousin(name=name, suffix=".pdf", write=write, expected=Expected(must=TIMETABLE, edit_share=0.08))


def _ciphers() -> Mapping[str, Mapping[str, str]]:
    def shifted(by: int) -> dict[str, str]:
        printable = [chr(code) for code in range(33, 127)]
        return {letter: printable[(ord(letter) - 33 + by) % 94] for letter in printable}

    def permuted(alphabet: str, seed: int) -> dict[str, str]:
        letters = list(alphabet)
        random.Random(seed).shuffle(letters)
        return dict(zip(alphabet, letters, strict=True))

    lower = permuted(string.ascii_lowercase, 3)
    upper = {letter.upper(): code.upper() for letter, code in lower.items()}
    return {
        "shift_plus_1": shifted(1),
        "shift_minus_29": shifted(-29),
        "everything_permuted": permuted(SPACE_KEPT + " ", 7),
        "substitution": {**lower, **upper},
        "private_use": {letter: chr(0xF000 + ord(letter)) for letter in SPACE_KEPT + " "},
        "one_letter_for_all": dict.fromkeys(SPACE_KEPT, "e"),
    }


def _write_lying_map(path: Path, cipher: Mapping[str, str], *, first_line: int) -> None:
    """An embedded TrueType font whose ToUnicode map names the wrong letters, from ``first_line`` on."""
    drawn_pdf(
        path,
        lambda canvas: (
            printed(canvas, TIMETABLE[:first_line], face="DejaVuSans-Bold"),
            printed(canvas, TIMETABLE[first_line:], top_pt=760 - 24 * first_line),
        ),
    )

    def lie(pdf: Pdf) -> None:
        for font in pdf.pages[0].Resources.Font.values():
            if "/ToUnicode" in font and "Serif" in str(font.BaseFont):
                font.ToUnicode = pdf.make_stream(_lying(font.ToUnicode.read_bytes(), cipher))

    altered(path, lie)


def _lying(cmap: bytes, cipher: Mapping[str, str]) -> bytes:
    def substitute(match: re.Match[bytes]) -> bytes:
        letter = chr(int(match.group(1), 16))
        return b"<%04X>" % ord(cipher.get(letter, letter))

    before, table, after = re.split(
        rb"(begin(?:bfrange|bfchar).*end(?:bfrange|bfchar))", cmap, maxsplit=1, flags=re.S
    )
    return before + re.sub(rb"<([0-9A-Fa-f]{4})>", substitute, table) + after


def _write_without_map(path: Path) -> None:
    """Letters numbered as they first occur, and no map from the numbers to letters."""
    pdfmetrics.registerFont(ttfonts.TTFont("Numbered", str(font_path("DejaVuSerif")), asciiReadable=False))
    drawn_pdf(path, lambda canvas: printed(canvas, TIMETABLE, face="Numbered"))

    def strip(pdf: Pdf) -> None:
        for font in pdf.pages[0].Resources.Font.values():
            if "/ToUnicode" in font:
                del font["/ToUnicode"]

    altered(path, strip)


def _codes(*, keeps_spaces: bool) -> dict[str, int]:
    """Each letter of the page under an arbitrary printable code."""
    letters = sorted(set("".join(TIMETABLE)) - ({" "} if keeps_spaces else set()))
    codes = random.Random(2).sample(range(33, 123), len(letters))
    return dict(zip(letters, codes, strict=True)) | ({" ": 32} if keeps_spaces else {})


def _lines_in_codes(codes: Mapping[str, int]) -> bytes:
    parts = ["BT /T 13 Tf"]
    for number, line in enumerate(TIMETABLE):
        hexadecimal = "".join(f"{codes[letter]:02x}" for letter in line)
        parts.append(f"1 0 0 1 70 {760 - 24 * number} Tm <{hexadecimal}> Tj")
    return " ".join([*parts, "ET"]).encode()


class _PathPen(BasePen):
    """Glyph outlines as the path operators of a content stream."""

    def __init__(self, glyphs) -> None:
        super().__init__(glyphs)
        self.operators: list[str] = []

    def _moveTo(self, pt) -> None:  # noqa: N802
        self.operators.append(f"{pt[0]:.0f} {pt[1]:.0f} m")

    def _lineTo(self, pt) -> None:  # noqa: N802
        self.operators.append(f"{pt[0]:.0f} {pt[1]:.0f} l")

    def _curveToOne(self, *points) -> None:  # noqa: N802
        self.operators.append(" ".join(f"{x:.0f} {y:.0f}" for x, y in points) + " c")

    def _closePath(self) -> None:  # noqa: N802
        self.operators.append("h")


def _write_type3(path: Path, *, keeps_spaces: bool) -> None:
    codes = _codes(keeps_spaces=keeps_spaces)
    face = TTFont(font_path("DejaVuSerif"))
    glyphs, names = face.getGlyphSet(), face.getBestCmap()

    def add_font(pdf: Pdf) -> None:
        procedures, differences = Dictionary(), Array()
        for letter, code in codes.items():
            glyph = glyphs[names[ord(letter)]]
            pen = _PathPen(glyphs)
            glyph.draw(pen)
            outline = f"{glyph.width} 0 -400 -600 2600 2100 d1 {' '.join(pen.operators)} f"
            procedures[f"/g{code}"] = pdf.make_stream(outline.encode())
            differences.extend([code, Name(f"/g{code}")])
        widths = [0] * 95
        for letter, code in codes.items():
            widths[code - 32] = glyphs[names[ord(letter)]].width
        pdf.pages[0].Resources.Font["/T"] = Dictionary(
            Type=Name.Font,
            Subtype=Name.Type3,
            FontBBox=Array([-400, -600, 2600, 2100]),
            FontMatrix=Array([1 / 2048, 0, 0, 1 / 2048, 0, 0]),
            CharProcs=procedures,
            Encoding=Dictionary(Type=Name.Encoding, Differences=differences),
            FirstChar=32,
            LastChar=126,
            Widths=Array(widths),
            Resources=Dictionary(),
        )

    raw_pdf(path, _lines_in_codes(codes), change=add_font)


def _write_type1(path: Path) -> None:
    """A Type 1 font (as CFF) with its glyphs called g33, g34 …: there is nothing to look a letter up by."""
    codes = _codes(keeps_spaces=False)
    program, widths = _cff(codes)

    def add_font(pdf: Pdf) -> None:
        descriptor = Dictionary(
            Type=Name.FontDescriptor,
            FontName=Name("/ABCDEF+Plain"),
            Flags=4,
            FontBBox=Array([-200, -300, 1300, 1000]),
            ItalicAngle=0,
            Ascent=900,
            Descent=-250,
            CapHeight=730,
            StemV=80,
            FontFile3=pdf.make_stream(program, Subtype=Name.Type1C),
        )
        differences = Array()
        for code in codes.values():
            differences.extend([code, Name(f"/g{code}")])
        pdf.pages[0].Resources.Font["/T"] = Dictionary(
            Type=Name.Font,
            Subtype=Name.Type1,
            BaseFont=Name("/ABCDEF+Plain"),
            FirstChar=32,
            LastChar=126,
            Widths=Array([widths.get(code, 0) for code in range(32, 127)]),
            Encoding=Dictionary(Type=Name.Encoding, Differences=differences),
            FontDescriptor=descriptor,
        )

    raw_pdf(path, _lines_in_codes(codes), change=add_font)


def _cff(codes: Mapping[str, int]) -> tuple[bytes, dict[int, int]]:
    face = TTFont(font_path("DejaVuSerif"))
    glyphs, names = face.getGlyphSet(), face.getBestCmap()
    order = [".notdef", *(f"g{code}" for code in codes.values())]
    sources = {
        ".notdef": glyphs[".notdef"],
        **{f"g{code}": glyphs[names[ord(letter)]] for letter, code in codes.items()},
    }
    shapes = {}
    for name, glyph in sources.items():
        pen = T2CharStringPen(glyph.width, glyphs)
        glyph.draw(pen)
        shapes[name] = pen.getCharString()
    builder = FontBuilder(2048, isTTF=False)
    builder.setupGlyphOrder(order)
    builder.setupCFF("Plain", {"FontMatrix": [1 / 2048, 0, 0, 1 / 2048, 0, 0]}, shapes, {})
    buffer = io.BytesIO()
    builder.font["CFF "].cff.compile(buffer, builder.font)
    widths = {code: round(glyphs[names[ord(letter)]].width * 1000 / 2048) for letter, code in codes.items()}
    return buffer.getvalue(), widths
