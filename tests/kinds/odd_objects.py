"""PDFs with odd things inside: images of no size, embedded files with hostile names, layered scans."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from pikepdf import Array, Dictionary, Name, Object, Pdf, String
from PIL import Image, ImageOps

from tests.kinds.judging import Cousin, Expected
from tests.kinds.paper import encoded, raw_pdf, shown, written_image

LOANS = (
    "Loans of the instrument library",
    "Two violins and a cello bow, back with new strings",
    "Bass drum, still at the school until Tuesday",
)
CLUB = (
    "Rules of the rowing club",
    "Each boat is washed and dried before it is put away.",
    "Members under twelve wear a vest at all times.",
    "The slipway is closed from December to February.",
)
INSTRUCTIONS = "Enclosed: the plan and the list of prices for the new roof."


def worthless_images() -> Iterator[Cousin]:
    """An image without size or data costs nothing but itself."""
    for width, height in ((0, 0), (1, 1), (0, 5), (1, 4000)):
        yield _with_image(f"image_{width}_by_{height}_no_data", width, height, b"")
    yield _with_image("image_claims_more_than_it_has", 3_000, 3_000, b"\x80" * 50)
    yield _with_image("image_jpeg_without_data", 200, 200, b"", filter_name="/DCTDecode")
    yield _with_image("image_one_pixel_behind_all", 1, 1, b"\xfa", matrix=b"595 0 0 842 0 0")
    yield _with_image("image_drawn_to_nothing", 2, 2, b"\x10\x20\x30\x40", matrix=b"0 0 0 0 300 300")
    yield Cousin(
        name="image_inline_of_no_size",
        suffix=".pdf",
        write=lambda path: raw_pdf(
            path, b"q 9 0 0 9 300 300 cm BI /W 0 /H 0 /BPC 8 /CS /G ID EI Q\n" + shown(LOANS)
        ),
        expected=Expected(must=LOANS),
    )


def _with_image(
    name: str,
    width: int,
    height: int,
    samples: bytes,
    *,
    filter_name: str | None = None,
    matrix: bytes = b"100 0 0 100 300 300",
) -> Cousin:
    def add_image(pdf: Pdf) -> None:
        entries = {"/Filter": Name(filter_name)} if filter_name else {}
        image = pdf.make_stream(
            samples,
            {
                "/Type": Name.XObject,
                "/Subtype": Name.Image,
                "/Width": width,
                "/Height": height,
                "/ColorSpace": Name.DeviceGray,
                "/BitsPerComponent": 8,
                **entries,
            },
        )
        pdf.pages[0].Resources.XObject = Dictionary(I0=image)

    content = b"q " + matrix + b" cm /I0 Do Q\n" + shown(LOANS)
    return Cousin(
        name=name,
        suffix=".pdf",
        write=lambda path: raw_pdf(path, content, change=add_image),
        expected=Expected(must=LOANS),
    )


EVIL_NAMES = (
    "../../up and away.csv",
    "/absolute.csv",
    "..\\..\\windows.bat",
    "C:\\start.cmd",
    "two\nlines.csv",
    "bill\u202efdp.exe",
    "nul",
    "",
    "." * 3,
    "long " * 80 + ".csv",
    "$(touch owned).csv",
)


def portfolios() -> Iterator[Cousin]:
    """The cover is the page; what is embedded is named, and never opened or written."""
    yield _portfolio("portfolio_two_files", ("roof plan.pdf", "prices.csv"))
    yield _portfolio("portfolio_evil_names", EVIL_NAMES)
    yield Cousin(
        name="portfolio_file_as_annotation",
        suffix=".pdf",
        write=lambda path: raw_pdf(
            path, shown(["For the committee", INSTRUCTIONS]), change=_attach_by_annotation
        ),
        expected=Expected(must=(INSTRUCTIONS,), must_not=("tiles;440",)),
    )


def _portfolio(name: str, names: Sequence[str]) -> Cousin:
    def embed(pdf: Pdf) -> None:
        tree = Array()
        for number, file_name in enumerate(names):
            tree.extend([String(f"{number:03}{file_name}"), _embedded_file(pdf, file_name)])
        pdf.Root.Names = Dictionary(EmbeddedFiles=Dictionary(Names=tree))
        pdf.Root.Collection = Dictionary(Type=Name.Collection, View=Name.D)
        pdf.Root.PageMode = Name.UseAttachments

    return Cousin(
        name=name,
        suffix=".pdf",
        write=lambda path: raw_pdf(path, shown(["This is a portfolio", INSTRUCTIONS]), change=embed),
        expected=Expected(must=(INSTRUCTIONS,), must_not=("tiles;440",)),
    )


def _embedded_file(pdf: Pdf, name: str) -> Object:
    stream = pdf.make_stream(b"item;price\ntiles;440\n", Type=Name.EmbeddedFile)
    return pdf.make_indirect(
        Dictionary(Type=Name.Filespec, F=String(name), UF=String(name), EF=Dictionary(F=stream, UF=stream))
    )


def _attach_by_annotation(pdf: Pdf) -> None:
    pin = Dictionary(
        Type=Name.Annot,
        Subtype=Name.FileAttachment,
        Rect=Array([500, 700, 514, 720]),
        FS=_embedded_file(pdf, "../pin.csv"),
    )
    pdf.pages[0].obj["/Annots"] = Array([pdf.make_indirect(pin)])


def layered_scans() -> Iterator[Cousin]:
    """Mixed raster content: the letters are in a mask, the largest image is a plain dark one."""
    for ground in ("jpx", "jpeg", "flate"):
        yield _layered(f"mrc_stencil_over_{ground}", ground, "stencil")
    yield _layered("mrc_mask_inverted", "jpx", "inverted")
    yield _layered("mrc_soft_mask", "jpeg", "soft")
    yield _layered("mrc_painted_stencil", "jpx", "painted")


def _layered(name: str, dark: str, mask_kind: str) -> Cousin:
    """A light ground, then a dark picture seen through the mask that has the letters' shapes."""

    def add_layers(pdf: Pdf) -> None:
        letters = written_image(CLUB, size_px=(1240, 1754), font_px=30).convert("1", dither=Image.Dither.NONE)
        ink = _picture(pdf, Image.new("RGB", (207, 292), (24, 20, 34)), dark)
        if mask_kind == "soft":
            ink.SMask = _soft_mask(pdf, ImageOps.invert(letters.convert("L")))
        elif mask_kind != "painted":
            ink.Mask = _stencil(pdf, letters, is_inverted=mask_kind == "inverted")
        pdf.pages[0].Resources.XObject = Dictionary(
            Ground=_picture(pdf, Image.new("RGB", (149, 211), (246, 240, 224)), "jpx"),
            Ink=ink,
            Letters=_stencil(pdf, letters, is_inverted=False),
        )

    last = b"0.1 0.1 0.2 rg /Letters Do" if mask_kind == "painted" else b"/Ink Do"
    return Cousin(
        name=name,
        suffix=".pdf",
        write=lambda path: raw_pdf(
            path, b"q 595 0 0 842 0 0 cm /Ground Do " + last + b" Q", change=add_layers
        ),
        expected=Expected(must=CLUB, edit_share=0.08, not_routes=frozenset({"blank"})),
    )


def _picture(pdf: Pdf, image: Image.Image, kind: str) -> Object:
    entries = {"/Type": Name.XObject, "/Subtype": Name.Image, "/Width": image.width, "/Height": image.height}
    colours = {"/ColorSpace": Name.DeviceRGB, "/BitsPerComponent": 8}
    match kind:
        case "jpx":
            return pdf.make_stream(
                encoded(image, "JPEG2000", no_jp2=False), {**entries, "/Filter": Name.JPXDecode}
            )
        case "jpeg":
            return pdf.make_stream(encoded(image, "JPEG"), {**entries, **colours, "/Filter": Name.DCTDecode})
        case _:
            return pdf.make_stream(image.tobytes(), {**entries, **colours})


def _stencil(pdf: Pdf, letters: Image.Image, *, is_inverted: bool) -> Object:
    """Group 4 of the letters; ``is_inverted`` stores the negative and turns it round with /Decode."""
    drawn = ImageOps.invert(letters.convert("L")).convert("1") if is_inverted else letters
    return pdf.make_stream(
        _group4(drawn),
        {
            "/Type": Name.XObject,
            "/Subtype": Name.Image,
            "/ImageMask": True,
            "/Width": letters.width,
            "/Height": letters.height,
            "/BitsPerComponent": 1,
            "/Decode": Array([1, 0] if is_inverted else [0, 1]),
            "/Filter": Name.CCITTFaxDecode,
            "/DecodeParms": Dictionary(K=-1, Columns=letters.width, Rows=letters.height),
        },
    )


def _group4(image: Image.Image) -> bytes:
    """The one strip of a fax-coded TIFF, black as 0."""
    buffer = io.BytesIO()
    image.save(buffer, "TIFF", compression="group4", tiffinfo={278: image.height, 262: 0})
    with Image.open(buffer) as tiff:
        (start,), (length,) = tiff.tag_v2[273], tiff.tag_v2[279]
    return buffer.getvalue()[start : start + length]


def _soft_mask(pdf: Pdf, grey: Image.Image) -> Object:
    return pdf.make_stream(
        grey.tobytes(),
        {
            "/Type": Name.XObject,
            "/Subtype": Name.Image,
            "/ColorSpace": Name.DeviceGray,
            "/Width": grey.width,
            "/Height": grey.height,
            "/BitsPerComponent": 8,
        },
    )
