"""PDF pages through real poppler and pdfium."""

import os
from dataclasses import dataclass

import pikepdf
import pytest
from PIL import Image

from models.document import MediaType
from models.errors import EngineUnavailable, PageNotRendered
from pipeline import rasterise
from pipeline.engines.pdfium import PdfiumEngine
from pipeline.ports import PageRaster
from pipeline.rasterise import rasterise_pages
from pipeline.settings import RasteriseSettings
from tests.integration.pages import BLOCK, ink_box, pdf_with, picture, scan_pdf


def pages_of(path, numbers=(1,), password=None, media_type=MediaType.PDF, **settings):
    return list(
        rasterise_pages(
            path,
            media_type,
            numbers,
            pdf=PdfiumEngine(),
            settings=RasteriseSettings(**settings),
            password=password,
        )
    )


def page_of(path, **options):
    ((_, page),) = pages_of(path, **options)
    assert isinstance(page, PageRaster), page
    return page


@dataclass
class Calls:
    """Stands between the stage and poppler and counts."""

    batches: list[tuple[int, int]]

    def __call__(self, path, **options):
        self.batches.append((options["first_page"], options["last_page"]))
        return self.convert(path, **options)


@pytest.fixture
def calls(monkeypatch):
    counted = Calls([])
    counted.convert = rasterise._convert
    monkeypatch.setattr(rasterise, "_convert", counted)
    return counted


def test_a_page_is_drawn_at_the_dpi_asked_for(tmp_path):
    page = page_of(pdf_with(tmp_path / "a.pdf"), dpi=144)
    assert (page.image.size, page.image.mode, page.dpi, page.px_per_pt) == ((1224, 1584), "RGB", 144, 2)
    assert ink_box(page.image) == pytest.approx((220, 1264, 420, 1364), abs=1)


def test_pages_come_in_the_order_asked_for_and_in_batches(tmp_path, calls):
    path = pdf_with(tmp_path / "a.pdf", pages=9, size=(100, 700))
    pages = pages_of(path, (1, 2, 3, 4, 5, 8, 9), pages_per_call=4)
    assert [number for number, _ in pages] == [1, 2, 3, 4, 5, 8, 9]
    assert [page.page_number for _, page in pages] == [1, 2, 3, 4, 5, 8, 9]
    assert calls.batches == [(1, 4), (5, 5), (8, 9)]


def test_a_batch_holds_no_more_pixels_than_one_page_may(tmp_path, calls):
    path = pdf_with(tmp_path / "a.pdf", pages=4, size=(500, 500))
    pages_of(path, (1, 2, 3, 4), dpi=72, max_page_pixels=500_000)
    assert calls.batches == [(1, 2), (3, 4)]


@pytest.mark.parametrize("rotate", [0, 90, 180, 270, -90, 450])
def test_rotation_and_crop_box_are_those_of_the_text_layer(tmp_path, rotate):
    path = pdf_with(
        tmp_path / "a.pdf", keys={"/CropBox": pikepdf.Array([100, 100, 600, 500]), "/Rotate": rotate}
    )
    page = page_of(path, dpi=72)
    shape = PdfiumEngine().page_shapes(path, (1,), None)[0]
    assert page.image.size == (shape.width_pt, shape.height_pt)
    box = {0: (10, 340, 110, 390), 90: (10, 10, 60, 110), 180: (390, 10, 490, 60), 270: (340, 390, 390, 490)}
    assert ink_box(page.image) == pytest.approx(box[rotate % 360], abs=1)


@pytest.mark.parametrize(
    "keys",
    [
        {"/CropBox": [100, 100, 100, 100]},
        {"/MediaBox": [0, 0, 0, 0]},
        {"/MediaBox": [0, 0, 612, 0]},
        {"/MediaBox": [612, 792, 0, 0]},
        {"/CropBox": [-50, -50, 900, 900]},
    ],
)
def test_boxes_that_make_no_sense_still_show_the_page(tmp_path, keys):
    path = pdf_with(tmp_path / "a.pdf", keys={key: pikepdf.Array(box) for key, box in keys.items()})
    page = page_of(path, dpi=72)
    assert page.image.size == (612, 792)
    assert ink_box(page.image) == pytest.approx((110, 632, 210, 682), abs=1)


def test_a_page_without_area_fails_alone(tmp_path):
    path = pdf_with(tmp_path / "a.pdf", pages=3)
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        pdf.pages[1].obj.CropBox = pikepdf.Array([1000, 1000, 1200, 1300])
        pdf.save(path)
    first, second, third = (page for _, page in pages_of(path, (1, 2, 3)))
    assert isinstance(second, PageNotRendered)
    assert isinstance(first, PageRaster)
    assert isinstance(third, PageRaster)


@pytest.mark.parametrize("size", [(0.5, 0.5), (1, 1), (14_400, 14_400), (1e6, 1e6), (1e6, 10), (3, 8_000)])
@pytest.mark.timeout(60)
def test_absurd_page_sizes_are_bounded(tmp_path, size):
    path = pdf_with(tmp_path / "a.pdf")
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        pdf.pages[0].obj.MediaBox = pikepdf.Object.parse(f"[0 0 {size[0]:.1f} {size[1]:.1f}]".encode())
        pdf.save(path)
    page = page_of(path, max_page_pixels=4_000_000)
    assert page.image.width * page.image.height <= 4_100_000
    assert max(page.image.size) <= 32_001


def test_user_units_do_not_shrink_a_scan(tmp_path):
    path = scan_pdf(tmp_path / "a.pdf", page_size=(61.2, 79.2), image=picture(1445, 1870), user_unit=10)
    page = page_of(path)
    assert page.image.size == pytest.approx((1445, 1870), abs=2)
    assert page.px_per_pt == pytest.approx(page.image.width / 61.2, rel=0.01)
    assert 70 <= page.dpi <= 200


def test_pages_of_different_resolution_are_drawn_apart(tmp_path, calls):
    path = pdf_with(tmp_path / "a.pdf", pages=3)
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        pdf.pages[1].obj.MediaBox = pikepdf.Array([0, 0, 7200, 7200])
        pdf.save(path)
    pages = [page for _, page in pages_of(path, (1, 2, 3), max_page_pixels=4_000_000)]
    assert [page.dpi for page in pages] == [200, 20, 200]
    assert calls.batches == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("revision", [3, 4, 6])
@pytest.mark.parametrize("password", ["geheim", "gehéim ü", "own"])
def test_poppler_gets_the_password(tmp_path, revision, password, calls):
    user = password if password != "own" else "user"
    encryption = pikepdf.Encryption(
        owner="own", user=user, R=revision, aes=revision > 3, metadata=revision > 3
    )
    path = pdf_with(tmp_path / "a.pdf", encryption=encryption)
    assert ink_box(page_of(path, password=password, dpi=72).image) is not None
    assert calls.batches == [(1, 1)]


def test_an_owner_password_needs_none(tmp_path):
    path = pdf_with(tmp_path / "a.pdf", encryption=pikepdf.Encryption(owner="own", user=""))
    assert ink_box(page_of(path).image) is not None
    assert ink_box(page_of(path, password="meant for another file").image) is not None


def test_a_failed_batch_is_drawn_again_page_by_page(tmp_path, monkeypatch, calls):
    path = pdf_with(tmp_path / "a.pdf", pages=3, size=(300, 500))
    convert = calls.convert

    def one_page_stalls(path, **options):
        if options["first_page"] <= 2 <= options["last_page"]:
            raise rasterise.PDFPopplerTimeoutError("stalled")
        return convert(path, **options)

    monkeypatch.setattr(calls, "convert", one_page_stalls, raising=False)
    pages = [page for _, page in pages_of(path, (1, 2, 3), dpi=72)]
    assert calls.batches == [(1, 3), (1, 1), (2, 2), (3, 3)]
    assert [page.image.size for page in (pages[0], pages[2])] == [(300, 500)] * 2
    assert isinstance(pages[1], PageNotRendered)


@pytest.mark.parametrize("given", [0, 1, 3])
def test_other_than_the_pages_asked_for_is_not_believed(tmp_path, monkeypatch, given):
    path = pdf_with(tmp_path / "a.pdf", pages=2, size=(300, 500))
    monkeypatch.setattr(
        rasterise, "_convert", lambda *_args, **_options: [Image.new("RGB", (300, 500))] * given
    )
    for _, page in pages_of(path, (1, 2), dpi=72):
        assert page.image.size == (300, 500)
        if given != 1:
            assert page.image.getpixel((0, 0)) == (255, 255, 255)


def test_an_image_of_another_size_is_not_believed(tmp_path, monkeypatch):
    monkeypatch.setattr(rasterise, "_convert", lambda *_args, **_options: [Image.new("RGB", (17, 17))])
    assert page_of(pdf_with(tmp_path / "a.pdf"), dpi=72).image.size == (612, 792)


def test_a_stalled_poppler_is_killed_and_pdfium_which_cannot_be_is_not_asked(tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("pdftoppm", "pdfinfo"):
        tool = tools / name
        tool.write_text(
            f'#!/bin/sh\n[ "$1" = -v ] || [ {name} = pdfinfo ] || exec sleep 60\nexec /usr/bin/{name} "$@"\n'
        )
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setattr(PdfiumEngine, "render", None)
    ((_, page),) = pages_of(pdf_with(tmp_path / "a.pdf"), timeout_s=1)
    assert isinstance(page, PageNotRendered)
    assert "longer than 1 s" in str(page)
    assert not page.retryable


def test_poppler_runs_with_bounded_memory(tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("pdftoppm", "pdfinfo"):
        tool = tools / name
        tool.write_text(f"#!/bin/sh\nulimit -v >> {tmp_path}/limits\nulimit -t >> {tmp_path}/limits\n")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    page_of(pdf_with(tmp_path / "a.pdf"))
    assert "unlimited" not in (tmp_path / "limits").read_text()


def test_without_poppler_the_message_names_the_package(tmp_path, monkeypatch):
    path = pdf_with(tmp_path / "a.pdf")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineUnavailable, match="poppler-utils"):
        pages_of(path)


@pytest.mark.parametrize(
    "name", [b"-rf A.pdf", b"facture_\xe9t\xe9.pdf", b"new\nline.pdf", b"$(touch x).pdf", b"-"]
)
def test_odd_names_are_names_not_options(tmp_path, monkeypatch, name, calls):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / os.fsdecode(name)
    pdf_with(tmp_path / "plain.pdf").rename(path)
    assert ink_box(page_of(path.relative_to(tmp_path)).image) is not None
    assert [entry.name for entry in tmp_path.iterdir()] == [os.fsdecode(name)]


def test_a_page_tree_that_is_broken_half_way_gives_the_other_pages(tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(
        b"%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[3 0 R 2 0 R]/Count 2>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 400]/Contents 4 0 R>>endobj\n"
        b"4 0 obj<</Length %d>>stream\n%s\nendstream endobj\ntrailer<</Root 1 0 R/Size 5>>\n%%%%EOF\n"
        % (len(BLOCK), BLOCK)
    )
    (_, first), (_, second) = pages_of(path, (1, 2))
    assert isinstance(first, PageRaster)
    assert isinstance(second, PageNotRendered)


def test_image_files_are_pages_too(tmp_path):
    path = tmp_path / "a.tif"
    picture().save(path, save_all=True, append_images=[picture(90, 70)])
    stored = path.read_bytes()
    pages = pages_of(path, (2, 1, 3), media_type=MediaType.TIFF)
    assert [number for number, _ in pages] == [2, 1, 3]
    assert pages[0][1].image.size == (90, 70)
    assert pages[0][1].px_per_pt is None
    assert isinstance(pages[2][1], PageNotRendered)
    assert path.read_bytes() == stored


def _with_content(path, content, *, damage=None):
    """Three pages of a block each; the second one's content stream is replaced and, where asked for, damaged."""
    with pikepdf.open(pdf_with(path, pages=3), allow_overwriting_input=True) as pdf:
        stream = pdf.make_stream(content)
        pdf.pages[1].Contents = stream
        if damage is not None:
            stream.write(content, filter=pikepdf.Name(damage))
        pdf.save(path, compress_streams=False)
    return path


def test_a_damaged_page_is_not_taken_for_a_blank_one(tmp_path):
    """The stream claims a filter that its bytes are not in, so neither program can draw anything."""
    path = _with_content(tmp_path / "a.pdf", b"this is no deflated stream " * 20, damage="/FlateDecode")
    first, second, third = (page for _, page in pages_of(path, (1, 2, 3)))
    assert isinstance(second, PageNotRendered)
    assert "damaged" in str(second)
    assert ink_box(first.image) == ink_box(third.image)


def test_a_page_that_poppler_leaves_empty_is_drawn_by_pdfium(tmp_path):
    """Unbalanced operators make poppler drop all that follows; pdfium draws it."""
    path = _with_content(tmp_path / "a.pdf", b"Q Q Q ET ) " + BLOCK)
    pages = [page for _, page in pages_of(path, (1, 2, 3))]
    assert all(isinstance(page, PageRaster) for page in pages)
    assert ink_box(pages[1].image) == pytest.approx(ink_box(pages[0].image), abs=2)


def test_an_empty_page_stays_empty(tmp_path):
    path = _with_content(tmp_path / "a.pdf", b"")
    _, second, _ = (page for _, page in pages_of(path, (1, 2, 3)))
    assert isinstance(second, PageRaster)
    assert second.image.convert("L").getextrema() == (255, 255)
