"""Image files as pages: real decoders, every mode, and what broken ones do."""

import io

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from models.document import MediaType
from models.errors import DocumentCorrupt, PageNotRendered, TooManyPixels
from pipeline.images import count_pages, read_page
from tests.integration.pages import picture

MAX_PIXELS = 25_000_000
ORIENTATION = 0x0112


def page_of(path, media_type, page_number=1, max_page_pixels=MAX_PIXELS):
    return read_page(path, media_type, page_number, max_page_pixels=max_page_pixels)


def is_red(pixel):
    return pixel[0] > 150 and pixel[1] < 90 and pixel[2] < 90


def textured(width_px=160, height_px=200):
    noise = np.random.default_rng(1).integers(0, 255, (height_px, width_px, 3), np.uint8)
    return Image.fromarray(noise)


@pytest.mark.parametrize(
    ("pillow_format", "media_type"),
    [
        ("JPEG", MediaType.JPEG),
        ("PNG", MediaType.PNG),
        ("WEBP", MediaType.WEBP),
        ("TIFF", MediaType.TIFF),
        ("AVIF", MediaType.AVIF),
        ("HEIF", MediaType.HEIC),
    ],
)
@pytest.mark.parametrize("max_page_pixels", [MAX_PIXELS, 12_000])
def test_a_picture_taken_sideways_is_delivered_upright(tmp_path, pillow_format, media_type, max_page_pixels):
    path = tmp_path / "photo"
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    picture(150, 200).transpose(Image.Transpose.ROTATE_90).save(
        path, pillow_format, exif=exif if pillow_format == "TIFF" else exif.tobytes()
    )
    page = page_of(path, media_type, max_page_pixels=max_page_pixels).image
    assert page.width < page.height
    assert is_red(page.getpixel((5, 5)))
    assert not is_red(page.getpixel((page.width - 5, 5)))
    assert not is_red(page.getpixel((5, page.height - 5)))


def test_broken_exif_is_no_orientation(tmp_path):
    path = tmp_path / "photo.jpg"
    picture().save(path, exif=b"Exif\0\0II*\0\x08\0\0\0\xff\xff\x12\x01")
    assert is_red(page_of(path, MediaType.JPEG).image.getpixel((3, 3)))


def test_pages_of_one_tiff_may_differ_in_mode_and_size(tmp_path):
    path = tmp_path / "mixed.tif"
    pages = [
        picture(),
        picture(80, 40, "L"),
        picture(30, 30, "1"),
        picture(50, 60, "CMYK"),
        picture(mode="P"),
    ]
    pages[0].save(path, save_all=True, append_images=pages[1:])
    rasters = [page_of(path, MediaType.TIFF, number) for number in range(1, 6)]
    assert [(raster.image.size, raster.image.mode) for raster in rasters] == [
        ((60, 80), "RGB"),
        ((80, 40), "L"),
        ((30, 30), "L"),
        ((50, 60), "RGB"),
        ((60, 80), "RGB"),
    ]
    assert [raster.page_number for raster in rasters] == [1, 2, 3, 4, 5]
    assert is_red(rasters[4].image.getpixel((3, 3)))


def test_sixteen_bit_min_is_white_is_paper_white(tmp_path):
    path = tmp_path / "a.tif"
    samples = Image.fromarray(np.array([[0, 65_535]] * 4, np.uint16))
    samples.save(path, tiffinfo={262: 0})
    stored = page_of(path, MediaType.TIFF).image
    assert [stored.getpixel((0, 0)), stored.getpixel((1, 0))] == [255, 0]


def test_cmyk_jpeg_is_not_a_negative(tmp_path):
    path = tmp_path / "a.jpg"
    Image.new("CMYK", (32, 32), (0, 0, 0, 0)).save(path)
    assert b"Adobe" in path.read_bytes()
    assert min(page_of(path, MediaType.JPEG).image.getpixel((9, 9))) > 250


@pytest.mark.parametrize(
    ("declared", "dpi"), [((300, 300), 300), ((1, 1), 150), ((0, 0), 150), (None, 150), ((9_999, 9_999), 150)]
)
def test_a_declared_resolution_is_kept_when_believable(tmp_path, declared, dpi):
    path = tmp_path / "a.tif"
    Image.new("L", (1240, 1754), 255).save(path, **({"dpi": declared} if declared else {}))
    assert page_of(path, MediaType.TIFF).dpi == dpi


def test_a_resolution_of_nought_by_nought_is_none(tmp_path):
    path = tmp_path / "a.tif"
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[282] = tags[283] = TiffImagePlugin.IFDRational(0, 0)
    tags[296] = 2
    Image.new("L", (1240, 1754), 255).save(path, tiffinfo=tags)
    assert page_of(path, MediaType.TIFF).dpi == 150


def test_fax_pixels_are_made_square(tmp_path):
    path = tmp_path / "fax.tif"
    Image.new("1", (1728, 1078), 1).save(path, dpi=(204, 98), compression="group4")
    raster = page_of(path, MediaType.TIFF)
    assert raster.image.size == (1728, round(1078 * 204 / 98))
    assert raster.dpi == 204


def test_long_strips_pass_untouched(tmp_path):
    path = tmp_path / "receipt.png"
    Image.new("L", (400, 6140), 255).save(path)
    assert page_of(path, MediaType.PNG).image.size == (400, 6140)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_large_image_is_reduced_with_its_resolution(tmp_path, mode):
    path = tmp_path / "a.jpg"
    Image.new(mode, (2400, 3600), "white").save(path, dpi=(300, 300))
    raster = page_of(path, MediaType.JPEG, max_page_pixels=240 * 360)
    assert raster.image.width * raster.image.height <= 240 * 360
    assert raster.image.mode == mode
    assert raster.dpi == pytest.approx(30, rel=0.02)


@pytest.mark.parametrize(
    ("pillow_format", "media_type", "options"),
    [
        ("JPEG", MediaType.JPEG, {}),
        ("JPEG", MediaType.JPEG, {"progressive": True}),
        ("PNG", MediaType.PNG, {}),
        ("WEBP", MediaType.WEBP, {"lossless": True}),
        ("BMP", MediaType.BMP, {}),
        ("GIF", MediaType.GIF, {}),
        ("JPEG2000", MediaType.JPEG2000, {}),
        ("AVIF", MediaType.AVIF, {}),
        ("HEIF", MediaType.HEIC, {}),
        ("TIFF", MediaType.TIFF, {"compression": "raw"}),
        ("TIFF", MediaType.TIFF, {"compression": "tiff_lzw"}),
        ("TIFF", MediaType.TIFF, {"compression": "tiff_jpeg"}),
    ],
)
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_an_image_that_ends_early_is_refused_not_delivered_half(
    tmp_path, pillow_format, media_type, options, share
):
    path = tmp_path / "cut"
    stored = io.BytesIO()
    textured().save(stored, pillow_format, **options)
    path.write_bytes(stored.getvalue()[: int(share * len(stored.getvalue()))])
    with pytest.raises(PageNotRendered, match="incomplete"):
        page_of(path, media_type)


def test_a_jpeg_that_lacks_only_its_end_marker_is_read(tmp_path):
    path = tmp_path / "a.jpg"
    textured().save(path)
    whole = page_of(path, MediaType.JPEG).image
    path.write_bytes(path.read_bytes().removesuffix(b"\xff\xd9"))
    assert page_of(path, MediaType.JPEG).image == whole


def test_a_checksum_that_fails_is_refused(tmp_path):
    path = tmp_path / "a.png"
    textured().save(path)
    stored = bytearray(path.read_bytes())
    stored[len(stored) // 2] ^= 0xFF
    path.write_bytes(stored)
    with pytest.raises(PageNotRendered):
        page_of(path, MediaType.PNG)


def test_a_broken_page_in_a_tiff_costs_only_itself(tmp_path):
    path = tmp_path / "a.tif"
    pages = [picture(), picture(), picture()]
    pages[0].save(path, save_all=True, append_images=pages[1:])
    stored = bytearray(path.read_bytes())
    with Image.open(path) as image:
        image.seek(1)
        directory = image._frame_pos[1]
    for entry in range(int.from_bytes(stored[directory : directory + 2], "little")):
        at = directory + 2 + 12 * entry
        if int.from_bytes(stored[at : at + 2], "little") == 262:
            stored[at + 8 : at + 10] = (99).to_bytes(2, "little")
    path.write_bytes(stored)
    assert count_pages(path, MediaType.TIFF, max_pages=10, max_pixels=10_000) == 3
    assert page_of(path, MediaType.TIFF, 1).image.size == (60, 80)
    with pytest.raises(PageNotRendered):
        page_of(path, MediaType.TIFF, 2)
    assert page_of(path, MediaType.TIFF, 3).image.size == (60, 80)


def test_what_is_no_image_at_all_is_corrupt(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(30))
    with pytest.raises(DocumentCorrupt):
        count_pages(path, MediaType.PNG, max_pages=1, max_pixels=1)


def test_every_page_of_a_tiff_is_held_to_the_pixel_limit(tmp_path):
    path = tmp_path / "a.tif"
    picture().save(path, save_all=True, append_images=[picture(600, 800)])
    with pytest.raises(TooManyPixels, match="page 2"):
        count_pages(path, MediaType.TIFF, max_pages=9, max_pixels=10_000)


def test_pillows_own_limit_never_speaks(tmp_path):
    path = tmp_path / "a.png"
    Image.new("1", (16_000, 12_000), 1).save(path)
    assert count_pages(path, MediaType.PNG, max_pages=1, max_pixels=250_000_000) == 1
    assert page_of(path, MediaType.PNG, max_page_pixels=1_000_000).image.getextrema() == (255, 255)


def _emptied(path, tags, pieces):
    """The numbers at ``pieces`` of a TIFF's entries ``tags`` (of more than four bytes each) set to 0."""
    stored = bytearray(path.read_bytes())
    directory = int.from_bytes(stored[4:8], "little")
    for entry in range(int.from_bytes(stored[directory : directory + 2], "little")):
        at = directory + 2 + 12 * entry
        tag, kind = (int.from_bytes(stored[place : place + 2], "little") for place in (at, at + 2))
        if tag in tags:
            size = {3: 2, 4: 4}[kind]
            values = int.from_bytes(stored[at + 8 : at + 12], "little")
            for piece in pieces:
                stored[values + piece * size : values + (piece + 1) * size] = bytes(size)
    path.write_bytes(stored)


@pytest.mark.parametrize("compression", ["raw", "group4"])
@pytest.mark.parametrize("tags", [(273,), (273, 279), (279,)])
def test_a_tiff_without_one_of_its_strips_is_refused(tmp_path, compression, tags):
    path = tmp_path / "a.tif"
    mode = "1" if compression == "group4" else "L"
    textured().convert(mode).save(path, compression=compression, tiffinfo={278: 20}, strip_size=20 * 160)
    assert page_of(path, MediaType.TIFF).image.size == (160, 200)
    _emptied(path, tags, [4])
    with pytest.raises(PageNotRendered, match="incomplete"):
        page_of(path, MediaType.TIFF)


def test_a_tiff_that_counts_no_bytes_at_all_lacks_nothing(tmp_path):
    path = tmp_path / "a.tif"
    textured().convert("L").save(path, compression="raw", tiffinfo={278: 20}, strip_size=20 * 160)
    whole = page_of(path, MediaType.TIFF).image
    _emptied(path, (279,), range(10))
    assert page_of(path, MediaType.TIFF).image == whole
