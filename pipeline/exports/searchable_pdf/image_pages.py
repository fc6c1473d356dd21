"""Pages of a PDF that consist of one picture each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Final

from PIL import ExifTags, Image
from pypdf import PageObject, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    NumberObject,
    StreamObject,
)

from pipeline.exports.document import Json
from pipeline.resolution import POINTS_PER_INCH

MOST_PT: Final = 14_400.0
LEAST_PT: Final = 3.0
"""What PDF viewers show."""

JPEG_QUALITY: Final = 90
BILEVEL_COLOURS: Final = 2
_BLACK_OR_WHITE: Final = frozenset({0, 255})

_ORIENTED: Final[Mapping[int, tuple[int, int, int, int, int, int]]] = {
    1: (1, 0, 0, 1, 0, 0),
    2: (-1, 0, 0, 1, 1, 0),
    3: (-1, 0, 0, -1, 1, 1),
    4: (1, 0, 0, -1, 0, 1),
    5: (0, -1, -1, 0, 1, 1),
    6: (0, -1, 1, 0, 0, 1),
    7: (0, 1, 1, 0, 0, 0),
    8: (0, 1, -1, 0, 1, 0),
}
"""By EXIF orientation: the unit square that a PDF paints a picture on, turned to be displayed, on a page of 1 by 1."""

PROFILE_COLOURS: Final = slice(16, 20)
_PROFILED: Final = {"L": b"GRAY", "RGB": b"RGB "}
_A4_PT: Final = (595.0, 842.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """``entries`` are those of its image dictionary. ``orientation`` is EXIF's, ``colour_profile`` ICC's."""

    stored: bytes
    entries: Mapping[str, object]
    orientation: int = 1
    colour_profile: bytes | None = None


def stored_jpeg(stored: bytes) -> Picture | None:
    """The bytes of a JPEG as they are; None for one that a PDF would show otherwise, as in CMYK."""
    try:
        with Image.open(BytesIO(stored), formats=("JPEG", "MPO")) as image:
            if image.mode not in ("L", "RGB"):
                return None
            orientation = image.getexif().get(ExifTags.Base.Orientation, 1)
            profile = _fitting_profile(image)
            entries = _image_entries(image, bits=8) | {"/Filter": NameObject("/DCTDecode")}
    except (OSError, SyntaxError, ValueError):
        return None
    return Picture(
        stored=stored,
        entries=entries,
        orientation=orientation if orientation in _ORIENTED else 1,
        colour_profile=profile,
    )


def _fitting_profile(image: Image.Image) -> bytes | None:
    """None where there is none, or it is one of other colours than the image has."""
    profile = image.info.get("icc_profile")
    fits = isinstance(profile, bytes) and profile[PROFILE_COLOURS] == _PROFILED[image.mode]
    return profile if fits else None


def drawn_picture(image: Image.Image, *, is_lossless: bool) -> Picture:
    """Pixels ("L" or "RGB"), those in black and white alone as one bit each."""
    if image.mode == "L":
        colours = image.getcolors(BILEVEL_COLOURS)
        if colours is not None and {value for _, value in colours} <= _BLACK_OR_WHITE:
            return _flate_picture(image.convert("1", dither=Image.Dither.NONE))
    if is_lossless:
        return _flate_picture(image)
    stored = BytesIO()
    image.save(stored, format="JPEG", quality=JPEG_QUALITY)
    entries = _image_entries(image, bits=8) | {"/Filter": NameObject("/DCTDecode")}
    return Picture(stored=stored.getvalue(), entries=entries)


def _flate_picture(image: Image.Image) -> Picture:
    """As PNG compresses it, which PDF can read: each row by its difference from the one before."""
    stored = BytesIO()
    image.save(stored, format="PNG")
    bits = 1 if image.mode == "1" else 8
    parameters = {
        "/Predictor": NumberObject(15),
        "/Colors": NumberObject(3 if image.mode == "RGB" else 1),
        "/BitsPerComponent": NumberObject(bits),
        "/Columns": NumberObject(image.width),
    }
    entries = _image_entries(image, bits=bits) | {
        "/Filter": NameObject("/FlateDecode"),
        "/DecodeParms": _named(parameters),
    }
    return Picture(stored=_png_pixels(stored.getvalue()), entries=entries)


def _png_pixels(png: bytes) -> bytes:
    """The contents of the IDAT chunks."""
    pixels, position = bytearray(), 8
    while position < len(png):
        length = int.from_bytes(png[position : position + 4])
        if png[position + 4 : position + 8] == b"IDAT":
            pixels += png[position + 8 : position + 8 + length]
        position += 12 + length
    return bytes(pixels)


def _image_entries(image: Image.Image, *, bits: int) -> dict[str, object]:
    return {
        "/Type": NameObject("/XObject"),
        "/Subtype": NameObject("/Image"),
        "/Width": NumberObject(image.width),
        "/Height": NumberObject(image.height),
        "/ColorSpace": NameObject("/DeviceRGB" if image.mode == "RGB" else "/DeviceGray"),
        "/BitsPerComponent": NumberObject(bits),
    }


def add_picture_page(writer: PdfWriter, picture: Picture, page: Json) -> PageObject:
    """The whole page is the picture, in the size that its resolution gives it."""
    width, height = _size_pt(page)
    added = writer.add_blank_page(width, height)
    stream = StreamObject()
    stream.update(_named(picture.entries))
    stream.set_data(picture.stored)
    if picture.colour_profile is not None:
        stream[NameObject("/ColorSpace")] = _profiled(stream, picture.colour_profile, writer)
    resources = _named({"/XObject": _named({"/Page": writer._add_object(stream)})})
    added[NameObject("/Resources")] = resources
    x_by_u, y_by_u, x_by_v, y_by_v, x, y = _ORIENTED[picture.orientation]
    matrix = (x_by_u * width, y_by_u * height, x_by_v * width, y_by_v * height, x * width, y * height)
    numbers = " ".join(str(FloatObject(round(number, 4))) for number in matrix)
    _set_content(added, f"q {numbers} cm /Page Do Q\n", writer)
    return added


def _profiled(image: StreamObject, profile: bytes, writer: PdfWriter) -> ArrayObject:
    alternate = image["/ColorSpace"]
    stream = StreamObject()
    stream.set_data(profile)
    stream[NameObject("/N")] = NumberObject(3 if str(alternate) == "/DeviceRGB" else 1)
    stream[NameObject("/Alternate")] = alternate
    return ArrayObject([NameObject("/ICCBased"), writer._add_object(stream.flate_encode())])


def add_note_page(writer: PdfWriter, note: str) -> None:
    """In the place of a page that cannot be shown."""
    added = writer.add_blank_page(*_A4_PT)
    font = {
        "/Type": NameObject("/Font"),
        "/Subtype": NameObject("/Type1"),
        "/BaseFont": NameObject("/Helvetica"),
    }
    added[NameObject("/Resources")] = _named({"/Font": _named({"/Note": _named(font)})})
    _set_content(
        added, f"BT /Note 12 Tf 56 770 Td <{note.encode('latin-1', 'replace').hex()}> Tj ET\n", writer
    )


def _set_content(page: PageObject, content: str, writer: PdfWriter) -> None:
    stream = StreamObject()
    stream.set_data(content.encode("ascii"))
    page[NameObject("/Contents")] = writer._add_object(stream)


def _size_pt(page: Json) -> tuple[float, float]:
    """As large as its pixels make it, within what viewers show."""
    sides_px = page["width_px"], page["height_px"]
    scale = POINTS_PER_INCH / page["dpi"]
    scale = min(scale, MOST_PT / max(sides_px))
    width, height = (max(round(scale * side_px, 3), LEAST_PT) for side_px in sides_px)
    return width, height


def _named(entries: Mapping[str, object]) -> DictionaryObject:
    return DictionaryObject({NameObject(name): value for name, value in entries.items()})
