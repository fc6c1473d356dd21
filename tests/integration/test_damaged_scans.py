"""Scans inside PDFs that end early or cannot be decoded: never blank, never passed for whole."""

import io
import struct
import zlib

import numpy as np
import pikepdf
import pytest
from PIL import Image, ImageDraw

from models.document import MediaType
from models.errors import PageNotRendered
from models.page import ReadBy
from pipeline.engines.pdfium import PdfiumEngine
from pipeline.ports import PageRaster
from pipeline.rasterise import rasterise_pages
from pipeline.read import Readers, read_page
from pipeline.settings import RasteriseSettings, ReadSettings
from tests.fakes.engines import FakeOcr, NoSkew, NoTurn
from tests.integration.pages import BLOCK, StoredImage, stored_scan_pdf

SIZE_PX = (600, 800)


def written():
    """Black bars with ragged edges, as lines of text are to a coder, from the first row to the last."""
    image = Image.new("L", SIZE_PX, 255)
    draw = ImageDraw.Draw(image)
    noise = np.random.default_rng(7)
    for top in range(10, 780, 24):
        for left in range(20, 560, 18):
            draw.rectangle(
                (left, top, left + int(noise.integers(4, 14)), top + int(noise.integers(6, 14))), fill=0
            )
    return image


def group4(image):
    buffer = io.BytesIO()
    image.convert("1").save(buffer, "TIFF", compression="group4", tiffinfo={278: image.height, 262: 0})
    with Image.open(buffer) as tiff:
        (start,), (length,) = tiff.tag_v2[273], tiff.tag_v2[279]
    return buffer.getvalue()[start : start + length]


def jbig2(image):
    """A page and one region whose data are Group 4's (ISO 14492, 7.4.6)."""
    page = struct.pack(">IIIIBH", *image.size, 0, 0, 0, 0)
    region = struct.pack(">IIIIBB", *image.size, 0, 0, 0, 1) + group4(image)
    return b"".join(
        struct.pack(">IBBBI", number, kind, 0, 1, len(data)) + data
        for number, kind, data in ((0, 48, page), (1, 38, region))
    )


def encoded(image, pillow_format):
    buffer = io.BytesIO()
    image.save(buffer, pillow_format)
    return buffer.getvalue()


def coded(image, coding):
    bits, parameters = 8, {}
    match coding:
        case "DCTDecode":
            data = encoded(image, "JPEG")
        case "JPXDecode":
            data = encoded(image, "JPEG2000")
        case "CCITTFaxDecode":
            data, bits, parameters = group4(image), 1, {"K": -1, "Columns": image.width, "Rows": image.height}
        case "JBIG2Decode":
            data, bits = jbig2(image), 1
        case "FlateDecode":
            data = zlib.compress(image.tobytes())
        case _:
            data = image.tobytes()
    return StoredImage(
        data=data,
        coding=coding,
        width_px=image.width,
        height_px=image.height,
        bits=bits,
        parameters=parameters,
    )


CODINGS = ["DCTDecode", "JPXDecode", "CCITTFaxDecode", "JBIG2Decode", "FlateDecode"]


def raster_of(path, password=None):
    ((_, page),) = rasterise_pages(
        path, MediaType.PDF, [1], pdf=PdfiumEngine(), settings=RasteriseSettings(dpi=100), password=password
    )
    assert isinstance(page, PageRaster), page
    return page


def reading_of(path, tmp_path):
    readers = Readers(ocr=FakeOcr(folder=tmp_path), orientation=NoTurn(), skew=NoSkew())
    return read_page(raster_of(path), None, readers=readers, settings=ReadSettings())[0]


def damage_signals(reading):
    return [signal.measured for signal in reading.signals if signal.name == "page_image_damaged"]


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("kept", [0, 25])
def test_a_scan_of_which_nothing_is_left_is_not_blank(tmp_path, coding, kept):
    whole = coded(written(), coding)
    path = stored_scan_pdf(tmp_path / "a.pdf", whole.with_data(whole.data[:kept]))
    with pytest.raises(PageNotRendered, match="damaged"):
        reading_of(path, tmp_path)


@pytest.mark.parametrize("coding", CODINGS)
def test_a_scan_of_foreign_bytes_is_damaged(tmp_path, coding):
    path = stored_scan_pdf(
        tmp_path / "a.pdf", coded(written(), coding).with_data(b"\x55\xaa\x13 no image " * 50)
    )
    assert raster_of(path).is_damaged


@pytest.mark.parametrize("coding", [*CODINGS, None])
def test_a_white_scan_is_blank(tmp_path, coding):
    path = stored_scan_pdf(tmp_path / "a.pdf", coded(Image.new("L", SIZE_PX, 255), coding))
    assert reading_of(path, tmp_path).read_by is ReadBy.NOTHING


@pytest.mark.parametrize("coding", ["DCTDecode", "CCITTFaxDecode", "JBIG2Decode", "FlateDecode"])
@pytest.mark.parametrize("share", [0.4, 0.9])
def test_a_scan_that_ends_early_is_read_and_said_to_be_damaged(tmp_path, coding, share):
    whole = coded(written(), coding)
    path = stored_scan_pdf(tmp_path / "a.pdf", whole.with_data(whole.data[: int(share * len(whole.data))]))
    reading = reading_of(path, tmp_path)
    assert reading.read_by is not ReadBy.NOTHING
    assert damage_signals(reading) == [1.0]


@pytest.mark.parametrize("coding", [*CODINGS, None])
def test_a_whole_scan_is_not_said_to_be_damaged(tmp_path, coding):
    path = stored_scan_pdf(tmp_path / "a.pdf", coded(written(), coding))
    assert damage_signals(reading_of(path, tmp_path)) == []


def test_missing_rows_are_paper_not_ink(tmp_path):
    whole = coded(written(), "CCITTFaxDecode")
    path = stored_scan_pdf(tmp_path / "a.pdf", whole.with_data(whole.data[: len(whole.data) // 2]))
    image = raster_of(path).image.convert("L")
    assert image.crop((0, image.height - 100, image.width, image.height)).getextrema() == (255, 255)


@pytest.mark.parametrize("end", [b"", b"\xff\xd9\0\0\r\n"])
def test_a_jpeg_that_lacks_only_its_end_marker_or_has_padding_is_whole(tmp_path, end):
    whole = coded(written(), "DCTDecode")
    path = stored_scan_pdf(tmp_path / "a.pdf", whole.with_data(whole.data.removesuffix(b"\xff\xd9") + end))
    assert not raster_of(path).is_damaged


def test_a_jpeg_whose_end_is_zeros_is_damaged(tmp_path):
    """What a download leaves that reserved the file's length and stopped."""
    whole = coded(written(), "DCTDecode")
    half = len(whole.data) // 2
    path = stored_scan_pdf(tmp_path / "a.pdf", whole.with_data(whole.data[:half] + bytes(half)))
    assert raster_of(path).is_damaged


def test_an_encrypted_scan_is_looked_at_as_well(tmp_path):
    whole = coded(written(), "DCTDecode")
    for data, is_damaged in ((whole.data, False), (whole.data[: len(whole.data) // 2], True)):
        path = stored_scan_pdf(
            tmp_path / "a.pdf", whole.with_data(data), encryption=pikepdf.Encryption(owner="key", user="key")
        )
        assert raster_of(path, password="key").is_damaged is is_damaged


def test_a_damaged_picture_on_a_written_page_is_no_damaged_scan(tmp_path):
    whole = coded(written(), "DCTDecode")
    path = stored_scan_pdf(
        tmp_path / "a.pdf", whole.with_data(whole.data[: len(whole.data) // 2]), share=0.3, content=BLOCK
    )
    assert not raster_of(path).is_damaged


def test_a_pdf_that_is_repaired_does_not_make_its_scan_a_damaged_one(tmp_path):
    path = stored_scan_pdf(tmp_path / "a.pdf", coded(written(), "CCITTFaxDecode"))
    stored = path.read_bytes()
    path.write_bytes(stored[: stored.rindex(b"startxref")].replace(b"xref", b"ferx"))
    assert not raster_of(path).is_damaged
