"""Searchable PDF: the original to the eye, and every word where its print is, by what poppler and PDFium find."""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Iterable, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pikepdf
import pypdfium2
import pytest
from PIL import Image, ImageChops, ImageCms, ImageDraw, ImageOps

from models.document import MediaType
from models.errors import DocumentEncrypted, WrongPassword
from models.page import ReadBy, Route
from pipeline.exports.document import Json
from pipeline.exports.original import Original
from pipeline.exports.searchable_pdf import write_searchable_pdf
from pipeline.settings import Settings
from tests.integration.test_passwords import SECRET, encrypted_pdf
from tests.kinds.paper import raw_pdf, shown
from tests.unit.exports.documents import failed_page, header, page
from workers.bootstrap import build_pdf_engine

DPI = 100
WITHIN_PT = 2.0
LINES = ("The ferry leaves", "Zürich übermorgen")


def word_lines(texts: Iterable[str], *, left_px: float = 90, top_px: float = 120) -> list[dict[str, Any]]:
    """Lines of words as a reader gives them, letters 12 pixels wide."""
    lines = []
    for row, text in enumerate(texts):
        words, x = [], left_px
        for word in text.split():
            right = x + 12 * len(word)
            top = top_px + 50 * row
            words.append({"text": word, "box": [x, top, right, top + 24], "confidence": 0.9})
            x = right + 12
        box = [left_px, top_px + 50 * row, x - 12, top_px + 50 * row + 24]
        lines.append({"text": text, "box": box, "confidence": 0.9, "words": words})
    return lines


def read_page(size_px: tuple[int, int], texts: Iterable[str] = LINES, **changes: object) -> Json:
    return {**page(width_px=size_px[0], height_px=size_px[1]), "lines": word_lines(texts), **changes}


def original(path: Path, media_type: MediaType = MediaType.PDF, password: str | None = None) -> Original:
    return Original(
        path=path,
        media_type=media_type,
        password=password,
        build_pdf=build_pdf_engine,
        rasterise=Settings().rasterise,
    )


def searchable(source: Original, pages: Sequence[Json], target: Path) -> Path:
    stream = io.BytesIO()
    write_searchable_pdf(stream, header(len(pages), media_type=source.media_type), iter(pages), source)
    target.write_bytes(stream.getvalue())
    return target


def words_in(path: Path, page_number: int = 1) -> dict[str, list[float]]:
    """Boxes in points of the displayed page."""
    number = str(page_number)
    done = subprocess.run(
        ["pdftotext", "-bbox", "-cropbox", "-f", number, "-l", number, path, "-"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.findall(
        r'<word xMin="([-\d.]+)" yMin="([-\d.]+)" xMax="([-\d.]+)" yMax="([-\d.]+)">(.*?)</word>', done.stdout
    )
    return {unescape(word): [float(edge) for edge in edges] for *edges, word in found}


def drawn(path: Path, page_number: int = 1) -> Image.Image:
    document = pypdfium2.PdfDocument(path)
    try:
        return document[page_number - 1].render(scale=1).to_pil().convert("RGB")
    finally:
        document.close()


def text_of(path: Path) -> str:
    document = pypdfium2.PdfDocument(path)
    try:
        return "\f".join(one.get_textpage().get_text_range() for one in document)
    finally:
        document.close()


def painted_pdf(path: Path, **entries: object) -> Path:
    """A page of 595 by 842 points with something on it to look at, whose print moves all that is painted later."""
    content = b"q 0.4 0 0 0.4 100 100 cm 1 0 0 rg 0 0 300 200 re f 0 0 1 rg 400 500 50 90 re f\n"
    raw_pdf(path, content, page=dict(entries))
    return path


@pytest.mark.parametrize("crop", [None, (50, 80, 450, 700)])
@pytest.mark.parametrize("turn_deg", [0, 90, 180, 270, -90, 450])
def test_words_lie_on_their_print_however_a_page_is_displayed(
    turn_deg: int, crop: tuple[int, int, int, int] | None, tmp_path: Path
) -> None:
    entries: dict[str, object] = {"/Rotate": turn_deg}
    if crop is not None:
        entries["/CropBox"] = pikepdf.Array(crop)
    source = painted_pdf(tmp_path / "a.pdf", **entries)
    displayed = drawn(source).size
    size_px = (round(displayed[0] * DPI / 72), round(displayed[1] * DPI / 72))
    read = read_page(size_px)

    target = searchable(original(source), [read], tmp_path / "b.pdf")

    assert ImageChops.difference(drawn(source), drawn(target)).getbbox() is None
    found = words_in(target)
    wanted = {word["text"]: word["box"] for line in read["lines"] for word in line["words"]}
    assert set(found) == set(wanted)
    for word, box in wanted.items():
        assert found[word] == pytest.approx([edge * 72 / DPI for edge in box], abs=WITHIN_PT), word
    assert "The ferry leaves" in text_of(target)


@pytest.mark.parametrize("rotation_deg", [90, 180, 270])
def test_words_of_a_scan_on_its_side_lie_on_their_print(rotation_deg: int, tmp_path: Path) -> None:
    """The print itself is turned; its boxes are those of the page as delivered."""
    source = painted_pdf(tmp_path / "a.pdf")
    box = [100, 200, 130, 420] if rotation_deg != 180 else [100, 200, 320, 230]
    words = [{"text": "Copenhagen", "box": box, "confidence": 0.9}]
    line = {"text": "Copenhagen", "box": box, "confidence": 0.9, "words": words}
    read = read_page((826, 1169), rotation_deg=rotation_deg, lines=[line])

    found = words_in(searchable(original(source), [read], tmp_path / "b.pdf"))

    assert found["Copenhagen"] == pytest.approx([edge * 72 / DPI for edge in box], abs=WITHIN_PT)


SCRIPTS = [
    "שלום לכולם היום",
    "Быстрая коричневая лиса",
    "東京都の人口",
    "η γρήγορη αλεπού",
    "السفينة تغادر الميناء",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 jenseits",
    "naïve œuvre – “quoted”",
]


@pytest.mark.parametrize("text", SCRIPTS)
def test_any_script_is_found(text: str, tmp_path: Path) -> None:
    lines = word_lines([text])
    if text[0] in "שا":  # its first word stands on the right
        shift = lines[0]["box"][2] + lines[0]["box"][0]
        for word in lines[0]["words"]:
            left, top, right, bottom = word["box"]
            word["box"] = [shift - right, top, shift - left, bottom]
    source = painted_pdf(tmp_path / "a.pdf")
    target = searchable(original(source), [read_page((826, 1169), lines=lines)], tmp_path / "b.pdf")
    by_poppler = subprocess.run(["pdftotext", target, "-"], capture_output=True, text=True, check=True).stdout
    assert text in re.sub("[\u202a-\u202e\u200e\u200f]", "", by_poppler)
    assert text in text_of(target)


def test_a_page_with_a_text_layer_of_its_own_gets_no_other(tmp_path: Path) -> None:
    source = tmp_path / "a.pdf"
    raw_pdf(source, shown(["The ferry leaves at nine"]))
    layer = read_page(
        (826, 1169), ["The ferry leaves at nine"], route=Route.TEXT_LAYER, read_by=ReadBy.TEXT_LAYER
    )
    target = searchable(original(source), [layer], tmp_path / "b.pdf")
    assert target.read_bytes() == source.read_bytes()
    by_vlm = {**layer, "route": "vlm"}
    assert text_of(searchable(original(source), [by_vlm], tmp_path / "c.pdf")).count("ferry") == 1


def test_the_invisible_text_of_an_earlier_program_gives_way_to_ours(tmp_path: Path) -> None:
    source = tmp_path / "a.pdf"
    content = (
        b"q 100 0 0 50 300 300 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x80 EI Q\n"
        b"BT /F 14 Tf 70 700 Td 3 Tr (tne) Tj 20 TL (fcrry) ' 0 Tr (seen) ' ET\n"
        b"q 3 Tr BT /F 14 Tf 70 500 Td [(leoves) 20 (ot)] TJ ET Q BT /F 14 Tf 70 400 Td (too) Tj ET\n"
    )
    raw_pdf(source, content)
    assert "fcrry" in text_of(source)
    target = searchable(original(source), [read_page((826, 1169))], tmp_path / "b.pdf")
    assert not re.search("tne|fcrry|leoves|ot ", text_of(target))
    assert all(word in text_of(target) for word in ("seen", "too", "ferry"))
    assert ImageChops.difference(drawn(source), drawn(target)).getbbox() is None


def test_what_belongs_to_the_document_stays(tmp_path: Path) -> None:
    source = painted_pdf(tmp_path / "a.pdf")
    with pikepdf.open(source, allow_overwriting_input=True) as pdf:
        with pdf.open_outline() as outline:
            outline.root.append(pikepdf.OutlineItem("Chapter one", 0))
        pdf.attachments["prices.csv"] = b"a,b\n"
        link = pikepdf.Dictionary(
            Type=pikepdf.Name.Annot,
            Subtype=pikepdf.Name.Link,
            Rect=[10, 10, 90, 40],
            A=pikepdf.Dictionary(S=pikepdf.Name.URI, URI=pikepdf.String("http://harbour.example")),
        )
        pdf.pages[0].Annots = pdf.make_indirect(pikepdf.Array([pdf.make_indirect(link)]))
        pdf.docinfo["/Title"] = "Harbour"
        pdf.save(source)
    with pikepdf.open(searchable(original(source), [read_page((826, 1169))], tmp_path / "b.pdf")) as pdf:
        with pdf.open_outline() as outline:
            assert [item.title for item in outline.root] == ["Chapter one"]
        assert pdf.attachments["prices.csv"].get_file().read_bytes() == b"a,b\n"
        assert str(pdf.pages[0].Annots[0].A.URI) == "http://harbour.example"
        assert str(pdf.docinfo["/Title"]) == "Harbour"
        assert pdf.check_pdf_syntax() == []


def test_pages_that_share_what_they_are_drawn_with_do_not_share_our_text(tmp_path: Path) -> None:
    source = tmp_path / "a.pdf"
    raw_pdf(source, b"0 0 1 rg 20 20 99 99 re f\n")
    with pikepdf.open(source, allow_overwriting_input=True) as pdf:
        pdf.pages.append(pikepdf.Page(pdf.make_indirect(pikepdf.Dictionary(pdf.pages[0].obj))))
        pdf.save(source)
    pages = [read_page((826, 1169), ["first"]), read_page((826, 1169), ["second"], page_number=2)]
    assert text_of(searchable(original(source), pages, tmp_path / "b.pdf")).split() == ["first", "second"]


@pytest.mark.parametrize("password", [None, "wrong"])
def test_an_encrypted_original_asks_for_its_password(password: str | None, tmp_path: Path) -> None:
    source = original(encrypted_pdf(tmp_path / "a.pdf", user=SECRET), password=password)
    with pytest.raises(WrongPassword if password else DocumentEncrypted, match="encrypted"):
        searchable(source, [read_page((850, 1100))], tmp_path / "b.pdf")


@pytest.mark.parametrize("user", ["", SECRET])
def test_an_encrypted_original_that_opens_is_written_open(user: str, tmp_path: Path) -> None:
    source = original(encrypted_pdf(tmp_path / "a.pdf", user=user), password=user or None)
    displayed = (850, 1100) if drawn_size(source) == (612, 792) else (827, 1169)
    target = searchable(source, [read_page(displayed)], tmp_path / "b.pdf")
    assert "The ferry leaves" in text_of(target)
    with pikepdf.open(target) as pdf:
        assert not pdf.is_encrypted


def drawn_size(source: Original) -> tuple[int, int]:
    [shape] = build_pdf_engine().page_shapes(source.path, [1], source.password)
    assert shape is not None
    return round(shape.width_pt), round(shape.height_pt)


@pytest.mark.parametrize("kind", ["pdf", "png"])
def test_the_same_input_gives_the_same_bytes(kind: str, tmp_path: Path) -> None:
    if kind == "pdf":
        source = original(painted_pdf(tmp_path / "a.pdf"))
    else:
        Image.new("L", (826, 1169), 200).save(tmp_path / "a.png")
        source = original(tmp_path / "a.png", MediaType.PNG)
    first, second = (
        searchable(source, [read_page((826, 1169))], tmp_path / name).read_bytes() for name in ("b", "c")
    )
    assert first == second


def test_a_pdf_that_cannot_be_taken_apart_has_its_pages_drawn(tmp_path: Path) -> None:
    """Here it is one whose pages are not as many as were read."""
    source = painted_pdf(tmp_path / "a.pdf")
    with pikepdf.open(source, allow_overwriting_input=True) as pdf:
        pdf.pages.append(pdf.pages[0])
        pdf.save(source)
    read = [read_page((826, 1169), read_by=ReadBy.TEXT_LAYER, route=Route.TEXT_LAYER)]
    target = searchable(original(source), read, tmp_path / "b.pdf")
    assert "The ferry leaves" in text_of(target)
    assert len(pypdfium2.PdfDocument(target)) == 1
    near, far = drawn(source).getpixel((120, 700)), drawn(target).getpixel((120, 700))
    assert near == pytest.approx(far, abs=30)


def test_a_page_of_another_shape_than_was_read_is_drawn(tmp_path: Path) -> None:
    source = painted_pdf(tmp_path / "a.pdf")
    target = searchable(original(source), [read_page((1169, 826))], tmp_path / "b.pdf")
    with pikepdf.open(target) as pdf:
        assert "/Page" in pdf.pages[0].Resources.XObject


def picture() -> Image.Image:
    """Every corner its own, so that no turn goes unseen."""
    image = Image.new("RGB", (300, 200), "white")
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, 90, 60), fill="red")
    pen.rectangle((240, 0, 300, 60), fill="green")
    pen.rectangle((0, 150, 30, 200), fill="blue")
    return image


def assert_looks_like(target: Path, image: Image.Image) -> None:
    seen = drawn(target)
    assert seen.size == image.size
    difference = ImageChops.difference(seen, image.convert("RGB")).resize((30, 20), Image.Resampling.BOX)
    assert max(high for _, high in difference.getextrema()) < 40  # type: ignore[misc]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_is_its_own_bytes_upright(orientation: int, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture().save(tmp_path / "a.jpg", exif=exif, quality=95)
    stored = (tmp_path / "a.jpg").read_bytes()
    upright = ImageOps.exif_transpose(Image.open(tmp_path / "a.jpg"))
    read = read_page(upright.size, ["ferry"], dpi=72.0)
    target = searchable(original(tmp_path / "a.jpg", MediaType.JPEG), [read], tmp_path / "b.pdf")
    assert_looks_like(target, upright)
    assert stored in target.read_bytes()
    assert words_in(target)["ferry"] == pytest.approx([90, 120, 150, 144], abs=WITHIN_PT)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_photo_keeps_the_profile_of_its_own_colours(mode: str, tmp_path: Path) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    image = picture().convert(mode)
    image.save(tmp_path / "a.jpg", icc_profile=profile, quality=95)
    read = read_page(image.size, ["ferry"], dpi=72.0)
    target = searchable(original(tmp_path / "a.jpg", MediaType.JPEG), [read], tmp_path / "b.pdf")
    assert_looks_like(target, image)
    with pikepdf.open(target) as pdf:
        colours = pdf.pages[0].Resources.XObject.Page.ColorSpace
        if mode == "RGB":
            assert colours[1].read_bytes() == profile
        else:
            assert colours == "/DeviceGray"
        assert pdf.check_pdf_syntax() == []


@pytest.mark.parametrize(
    ("suffix", "media_type", "mode"),
    [
        (".png", MediaType.PNG, "RGB"),
        (".png", MediaType.PNG, "L"),
        (".png", MediaType.PNG, "1"),
        (".bmp", MediaType.BMP, "RGB"),
        (".webp", MediaType.WEBP, "RGB"),
        (".heic", MediaType.HEIC, "RGB"),
        (".jpg", MediaType.JPEG, "CMYK"),
    ],
)
def test_an_image_becomes_a_page_of_its_pixels(
    suffix: str, media_type: MediaType, mode: str, tmp_path: Path
) -> None:
    image = picture().convert(mode)
    image.save(tmp_path / f"a{suffix}", quality=95)
    read = read_page(image.size, ["ferry"], dpi=72.0)
    target = searchable(original(tmp_path / f"a{suffix}", media_type), [read], tmp_path / "b.pdf")
    assert_looks_like(target, image)
    assert "ferry" in text_of(target)


def test_every_frame_of_a_tiff_is_a_page_and_a_lost_one_a_note(tmp_path: Path) -> None:
    first, *others = (picture().convert("1") for _ in range(3))
    first.save(tmp_path / "a.tif", save_all=True, append_images=others, compression="group4")
    pages = [
        read_page((300, 200), ["one"], dpi=72.0),
        failed_page(2),
        read_page((300, 200), ["three"], page_number=3, dpi=144.0),
    ]
    target = searchable(original(tmp_path / "a.tif", MediaType.TIFF), pages, tmp_path / "b.pdf")
    texts = text_of(target).split("\f")
    assert [text.strip() for text in (texts[0], texts[2])] == ["one", "three"]
    assert texts[1].startswith("Page 2 could not be read")
    with pikepdf.open(target) as pdf:
        assert [float(edge) for edge in pdf.pages[2].MediaBox] == [0, 0, 150, 100]
        assert int(pdf.pages[0].Resources.XObject.Page.BitsPerComponent) == 1


def test_the_invisible_font_takes_no_more_than_a_letter_of_every_kind(tmp_path: Path) -> None:
    """A document of one script is not burdened with a table of all of Unicode."""
    source = painted_pdf(tmp_path / "a.pdf")
    target = searchable(original(source), [read_page((826, 1169))], tmp_path / "b.pdf")
    assert target.stat().st_size - source.stat().st_size < 6_000


HOSTILE = [
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj"
    b" 3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 9 0 R/Resources 9 0 R>>endobj"
    b" trailer<</Root 1 0 R>>",
    b"junk before\n%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>"
    b"endobj 3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]>>endobj trailer<</Root 1 0 R>>",
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1/Parent 2 0 R>>"
    b"endobj 3 0 obj<</Type/Page/Parent 3 0 R/MediaBox[0 0 200 100]/Contents[3 0 R 3 0 R]>>endobj"
    b" trailer<</Root 1 0 R>>",
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R/Names 1 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>"
    b"endobj 3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 (x) 100]/Rotate(a)>>endobj trailer<</Root 1 0 R>>",
]


@pytest.mark.parametrize("stored", HOSTILE)
def test_a_hostile_pdf_is_written_or_drawn(stored: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(stored)
    source = original(tmp_path / "a.pdf")
    [shape] = build_pdf_engine().page_shapes(source.path, [1], None)
    assert shape is not None
    size_px = (round(shape.width_pt * DPI / 72), round(shape.height_pt * DPI / 72))
    target = searchable(
        source, [read_page(size_px, ["ferry"], lines=word_lines(["ferry"], top_px=20))], tmp_path / "b.pdf"
    )
    assert re.search("ferry|could not be drawn again", text_of(target))
