"""Text layers as pdfium gives them, against the page as poppler draws it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pikepdf
import pytest
from pdf2image import convert_from_path
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from models.errors import PageFailed
from models.geometry import Box, enclosing_box
from pipeline.engines.pdfium import PdfiumEngine
from pipeline.engines.pdfium import text as pdfium_text
from pipeline.ports import Glyph, PageRaster, TextLayer
from pipeline.text_layer import judge_text_layer
from tests.kinds.paper import embedded

SIZE_PT = (300.0, 200.0)


def pdf_of(path: Path, draw: Callable[[Canvas], None]) -> Path:
    canvas = Canvas(str(path), pagesize=SIZE_PT, invariant=True)
    canvas.setFont("Helvetica", 12)
    draw(canvas)
    canvas.showPage()
    canvas.save()
    return path


def layer_of(path: Path) -> TextLayer:
    return next(PdfiumEngine().text_layers(path, [1], None))


def text_of(layer: TextLayer) -> str:
    return "".join(glyph.text for glyph in layer.glyphs)


def drawn(layer: TextLayer) -> list[Glyph]:
    return [glyph for glyph in layer.glyphs if not glyph.text.isspace()]


def ink_box_pt(path: Path) -> Box:
    """Around all ink of the page as drawn, in points."""
    image = convert_from_path(str(path), dpi=144, use_cropbox=True)[0].convert("L")
    box = image.point(lambda level: 255 if level < 128 else 0).getbbox()
    assert box is not None
    return Box(*box).scaled(0.5)


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("crop", [None, (20, 30, 280, 190)])
def test_glyphs_stand_where_the_page_shows_them(
    tmp_path: Path, rotate: int, crop: tuple[int, int, int, int] | None
) -> None:
    path = pdf_of(tmp_path / "a.pdf", lambda canvas: canvas.drawString(60, 90, "Harbour gate"))
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        page = pdf.pages[0]
        page.obj["/Rotate"] = rotate
        if crop:
            page.obj["/CropBox"] = pikepdf.Array(crop)
        pdf.save(path)
    layer = layer_of(path)
    found, shown = enclosing_box(glyph.box for glyph in drawn(layer)), ink_box_pt(path)
    for one, two in zip(
        (found.left, found.top, found.right, found.bottom),
        (shown.left, shown.top, shown.right, shown.bottom),
        strict=True,
    ):
        assert one == pytest.approx(two, abs=1.0)
    assert {glyph.angle_deg for glyph in drawn(layer)} == {float(rotate)}
    width, height = (crop[2] - crop[0], crop[3] - crop[1]) if crop else SIZE_PT
    expected = (height, width) if rotate % 180 else (width, height)
    assert (layer.width_pt, layer.height_pt) == pytest.approx(expected)


def test_font_sizes_include_the_matrix_and_angles_are_clockwise(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.scale(2, 2)
        canvas.drawString(10, 80, "large")
        canvas.translate(60, 20)
        canvas.rotate(30)
        canvas.drawString(0, 0, "slant")

    layer = layer_of(pdf_of(tmp_path / "a.pdf", draw))
    assert [glyph.font_size_pt for glyph in drawn(layer)] == pytest.approx([24] * 10)
    assert {glyph.angle_deg for glyph in drawn(layer)} == {0.0, 330.0}


def test_text_beside_the_page_is_left_out(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(60, 90, "inside")
        canvas.drawString(60, -40, "below")
        canvas.drawString(400, 90, "beside")

    assert text_of(layer_of(pdf_of(tmp_path / "a.pdf", draw))).split() == ["inside"]


def test_what_is_painted_and_what_is_not(tmp_path: Path) -> None:
    tile = ImageReader(Image.new("RGB", (8, 8), "white"))

    def draw(canvas: Canvas) -> None:
        canvas.drawString(20, 150, "plain")
        canvas.drawString(20, 110, "under")
        canvas.drawImage(tile, 10, 100, 150, 30)
        canvas.drawString(20, 60, "over")
        text = canvas.beginText(20, 20)
        text.setTextRenderMode(3)
        text.textOut("unseen")
        canvas.drawText(text)

    layer = layer_of(pdf_of(tmp_path / "a.pdf", draw))
    painted = "".join(glyph.text for glyph in drawn(layer) if glyph.is_painted)
    assert painted == "plainover"
    assert [(image.left, image.bottom) for image in layer.images] == [pytest.approx((10, 100))]


def test_images_within_forms_are_found(tmp_path: Path) -> None:
    tile = ImageReader(Image.new("RGB", (8, 8), "grey"))

    def draw(canvas: Canvas) -> None:
        canvas.beginForm("stamp")
        canvas.drawImage(tile, 0, 0, 40, 20)
        canvas.endForm()
        canvas.translate(100, 50)
        canvas.doForm("stamp")

    (image,) = layer_of(pdf_of(tmp_path / "a.pdf", draw)).images
    assert (image.left, image.top, image.right, image.bottom) == pytest.approx((100, 130, 140, 150))


def test_hyphens_at_line_ends_are_hyphens_and_soft_ones_within_words_nothing(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setFont(embedded("DejaVuSans"), 12)
        canvas.drawString(20, 150, "a well-")
        canvas.drawString(20, 134, "known sup\xadply")

    assert text_of(layer_of(pdf_of(tmp_path / "a.pdf", draw))).replace("\n", "") == "a well-known supply"


def test_ticked_boxes_are_characters(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(20, 150, "coffee")
        canvas.acroForm.checkbox(x=80, y=146, size=14, checked=True, name="coffee")
        canvas.drawString(20, 110, "tea")
        canvas.acroForm.checkbox(x=80, y=106, size=14, checked=False, name="tea")

    path = pdf_of(tmp_path / "a.pdf", draw)
    layer = layer_of(path)
    image = convert_from_path(str(path), dpi=200, use_cropbox=True)[0]
    verdict = judge_text_layer(layer, PageRaster(page_number=1, image=image, dpi=200))
    assert verdict.failed == ()
    assert [line.text for line in verdict.lines] == ["coffee ☑", "tea ☐"]


def test_a_page_of_too_many_characters_has_an_empty_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pdf_of(tmp_path / "a.pdf", lambda canvas: canvas.drawString(20, 100, "twelve signs"))
    monkeypatch.setattr(pdfium_text, "MAX_GLYPHS", 11)
    assert layer_of(path).glyphs == ()
    monkeypatch.setattr(pdfium_text, "MAX_GLYPHS", 12)
    assert len(layer_of(path).glyphs) == 12


def test_layers_come_in_the_order_asked_for_and_a_damaged_page_is_its_own_failure(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    canvas = Canvas(str(path), pagesize=SIZE_PT)
    for name in ("first", "second", "third"):
        canvas.drawString(20, 100, name)
        canvas.showPage()
    canvas.save()
    layers = list(PdfiumEngine().text_layers(path, [3, 1], None))
    assert [(layer.page_number, text_of(layer)) for layer in layers] == [(3, "third"), (1, "first")]
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        pages = pdf.Root.Pages.Kids
        pages[1] = pdf.make_indirect(pikepdf.Dictionary(Type=pikepdf.Name("/Nonsense")))
        pdf.save(path)
    with pytest.raises(PageFailed, match="page 2"):
        list(PdfiumEngine().text_layers(path, [2], None))


def test_every_glyph_of_a_font_without_unicode_is_counted(tmp_path: Path) -> None:
    path = pdf_of(tmp_path / "a.pdf", lambda canvas: canvas.drawString(20, 100, "xyz"))
    assert layer_of(path).unmapped_glyph_share == 0
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        square = pdf.make_stream(b"500 0 0 0 500 500 d1 0 0 500 500 re f")
        font = pikepdf.Dictionary(
            Type=pikepdf.Name.Font,
            Subtype=pikepdf.Name.Type3,
            FontBBox=[0, 0, 500, 500],
            FontMatrix=[0.001, 0, 0, 0.001, 0, 0],
            CharProcs=pikepdf.Dictionary({f"/q{code}": square for code in range(120, 123)}),
            Encoding=pikepdf.Dictionary(
                Differences=pikepdf.Array([120, *(pikepdf.Name(f"/q{c}") for c in range(120, 123))])
            ),
            FirstChar=120,
            LastChar=122,
            Widths=[500, 500, 500],
        )
        pdf.pages[0].Resources.Font = pikepdf.Dictionary({"/F1": pdf.make_indirect(font)})
        pdf.save(path)
    assert layer_of(path).unmapped_glyph_share == 1
