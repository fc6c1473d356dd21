"""What pdfium says of pages before they are drawn."""

import pikepdf
import pytest

from models.errors import PageNotRendered
from pipeline.engines.pdfium import PdfiumEngine
from tests.integration.pages import ink_box, pdf_with, picture, scan_pdf


def shape_of(path):
    return PdfiumEngine().page_shapes(path, (1,), None)[0]


def test_a_scan_is_found_on_a_page_of_unusual_size(tmp_path):
    shape = shape_of(scan_pdf(tmp_path / "a.pdf", page_size=(72, 144), image=picture(300, 600)))
    assert shape.scan_dpi == pytest.approx(300)
    assert shape.text_size_pt is None


def test_pages_of_ordinary_size_are_not_parsed(tmp_path):
    shape = shape_of(scan_pdf(tmp_path / "a.pdf", page_size=(595, 842), image=picture(300, 600)))
    assert (shape.scan_dpi, shape.text_size_pt) == (None, None)


def test_a_logo_does_not_make_a_scan(tmp_path):
    path = scan_pdf(tmp_path / "a.pdf", page_size=(72, 144), image=picture(300, 600))
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        pdf.pages[0].obj.MediaBox = pikepdf.Array([0, 0, 300, 300])
        pdf.save(path)
    assert shape_of(path).scan_dpi is None


def test_the_letter_size_counts_the_text_matrix(tmp_path):
    font = pikepdf.Dictionary(
        Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name.Helvetica
    )
    path = pdf_with(
        tmp_path / "a.pdf",
        size=(60, 80),
        keys={"/Resources": pikepdf.Dictionary(Font=pikepdf.Dictionary(F=font))},
        content=b"BT /F 12 Tf 0.1 0 0 0.1 5 40 Tm (small) Tj ET",
    )
    assert shape_of(path).text_size_pt == pytest.approx(1.2)


def test_the_second_renderer_draws_the_page_as_displayed(tmp_path):
    path = pdf_with(tmp_path / "a.pdf", keys={"/Rotate": 90})
    image = PdfiumEngine().render(path, 1, dpi=72, password=None)
    assert (image.size, image.mode) == ((792, 612), "RGB")
    assert ink_box(image) == pytest.approx((110, 110, 160, 210), abs=1)


def test_a_page_that_cannot_be_loaded_is_said_to_be_damaged(tmp_path):
    with pytest.raises(PageNotRendered, match="damaged"):
        PdfiumEngine().render(pdf_with(tmp_path / "a.pdf"), 7, dpi=72, password=None)
