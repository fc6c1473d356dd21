import hashlib
import io
import os
import socket
import zipfile

import pikepdf
import pytest
from PIL import Image

from models.document import MediaType
from models.errors import (
    DocumentCorrupt,
    DocumentEncrypted,
    EmptyFile,
    SourceUnreadable,
    TooManyBytes,
    TooManyPages,
    TooManyPixels,
    UnsupportedMediaType,
    WrongPassword,
)
from pipeline.engines.pdfium import PdfiumEngine
from pipeline.intake import inspect_source
from pipeline.settings import IntakeSettings
from tests.integration.pages import pdf_with, picture


def inspect(path, password=None, **limits):
    return inspect_source(path, pdf=PdfiumEngine(), limits=IntakeSettings(**limits), password=password)


def test_a_document_is_named_by_its_bytes(tmp_path):
    path = pdf_with(tmp_path / "a.pdf", pages=3)
    document = inspect(path)
    assert document.document_id == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (document.byte_count, document.page_count) == (path.stat().st_size, 3)


@pytest.mark.parametrize(
    ("pillow_format", "media_type"),
    [
        ("PNG", MediaType.PNG),
        ("JPEG", MediaType.JPEG),
        ("TIFF", MediaType.TIFF),
        ("WEBP", MediaType.WEBP),
        ("BMP", MediaType.BMP),
        ("GIF", MediaType.GIF),
        ("JPEG2000", MediaType.JPEG2000),
        ("AVIF", MediaType.AVIF),
        ("HEIF", MediaType.HEIC),
    ],
)
def test_images_are_known_by_content_whatever_their_name(tmp_path, pillow_format, media_type):
    path = tmp_path / "scan.pdf"
    picture().save(path, pillow_format)
    document = inspect(path)
    assert (document.media_type, document.page_count) == (media_type, 1)


def test_a_bare_jpeg_2000_codestream_is_known(tmp_path):
    path = tmp_path / "scan.jp2"
    picture().save(path, "JPEG2000", no_jp2=True)
    assert inspect(path).media_type is MediaType.JPEG2000


@pytest.mark.parametrize(
    "junk",
    [
        b"\n\xa0\x03",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"<br /><b>Warning</b>: headers\n",
        b"\x1b%-12345X@PJL\n",
        b"x" * 900,
    ],
)
def test_a_pdf_is_found_behind_leading_junk(tmp_path, junk):
    path = tmp_path / "scan.jpg"
    path.write_bytes(junk + pdf_with(tmp_path / "a.pdf").read_bytes())
    assert inspect(path).media_type is MediaType.PDF


def test_a_pdf_stored_in_an_archive_is_not_the_document(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.write(pdf_with(tmp_path / "a.pdf"), "a.pdf")
    with pytest.raises(UnsupportedMediaType, match="unpack it"):
        inspect(path)


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "convert it to PDF or PNG"),
        (b"<!DOCTYPE html><html><body>page</body></html>", "print it to PDF"),
        (
            b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
            "convert it",
        ),
        (b"plain words, nothing else\n" * 10, "convert it to PDF"),
        (b"{\\rtf1\\ansi words}", "export it as PDF"),
        (b"%!PS-Adobe-3.0\n", "convert it to PDF"),
        (b"".join(hashlib.sha256(bytes([n])).digest() for n in range(200)), "get it again"),
        (b"\x80\x0b\x60\x50\x22\x0c\x0c\x85\x01", "get it again"),
    ],
)
def test_what_is_not_read_is_refused_with_advice(tmp_path, content, advice):
    path = tmp_path / "invoice.pdf"
    path.write_bytes(content)
    with pytest.raises(UnsupportedMediaType, match=advice):
        inspect(path)


def test_an_office_file_is_told_to_become_a_pdf(tmp_path):
    path = tmp_path / "contract.pdf"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("_rels/.rels", "<Relationships/>")
        archive.writestr("word/document.xml", "<w:document/>")
    with pytest.raises(UnsupportedMediaType, match="export it as PDF"):
        inspect(path)


def test_an_empty_file_is_named_so(tmp_path):
    path = tmp_path / "a.pdf"
    path.touch()
    with pytest.raises(EmptyFile):
        inspect(path)


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.mkdir(), lambda path: path.symlink_to("/dev/zero")]
)
@pytest.mark.timeout(10)
def test_pipes_folders_and_devices_are_refused_without_waiting(tmp_path, make):
    path = tmp_path / "a.pdf"
    make(path)
    with pytest.raises(SourceUnreadable, match="ordinary file"):
        inspect(path)


def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("a.pdf")
        with pytest.raises(SourceUnreadable, match="ordinary file"):
            inspect(tmp_path / "a.pdf")


def test_a_link_to_itself_is_refused(tmp_path):
    path = tmp_path / "a.pdf"
    path.symlink_to(path)
    with pytest.raises(SourceUnreadable, match="copy it"):
        inspect(path)


def test_a_missing_file_and_an_impossible_path_are_refused(tmp_path):
    for path in (tmp_path / "gone.pdf", tmp_path / "nul\0.pdf", tmp_path / ("n" * 300)):
        with pytest.raises(SourceUnreadable):
            inspect(path)


def test_a_file_without_permission_is_refused(tmp_path, monkeypatch):
    path = pdf_with(tmp_path / "a.pdf")

    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SourceUnreadable, match="permissions"):
        inspect(path)


def test_too_many_bytes_are_refused_before_reading(tmp_path):
    path = tmp_path / "sparse.pdf"
    with path.open("wb") as sparse:
        sparse.truncate(2**40)
    with pytest.raises(TooManyBytes):
        inspect(path)


def test_too_many_pages_are_refused(tmp_path):
    with pytest.raises(TooManyPages, match="split"):
        inspect(pdf_with(tmp_path / "a.pdf", pages=6), max_pages=5)
    path = tmp_path / "a.tif"
    picture().save(path, save_all=True, append_images=[picture()] * 5)
    with pytest.raises(TooManyPages, match="split"):
        inspect(path, max_pages=5)
    assert inspect(path, max_pages=6).page_count == 6


@pytest.mark.parametrize(
    "pillow_format", ["PNG", "TIFF", "BMP", "GIF", "WEBP", "JPEG", "JPEG2000", "AVIF", "HEIF"]
)
def test_too_many_pixels_are_refused_by_the_header(tmp_path, pillow_format):
    path = tmp_path / "a"
    Image.new("RGB", (200, 200)).save(path, pillow_format)
    with pytest.raises(TooManyPixels, match="lower resolution"):
        inspect(path, max_image_pixels=39_999)


def test_a_header_that_claims_a_billion_pixels_costs_nothing(tmp_path):
    path = tmp_path / "bomb.png"
    Image.new("1", (40_000, 30_000)).save(path)
    with pytest.raises(TooManyPixels):
        inspect(path)


@pytest.mark.parametrize("revision", [3, 4, 6])
def test_an_owner_password_alone_opens(tmp_path, revision):
    path = pdf_with(
        tmp_path / "a.pdf",
        encryption=pikepdf.Encryption(
            owner="own", user="", R=revision, aes=revision > 3, metadata=revision > 3
        ),
    )
    assert inspect(path).page_count == 1
    assert inspect(path, password="meant for another file").page_count == 1


@pytest.mark.parametrize("revision", [3, 4, 6])
def test_a_user_password_is_asked_for_and_taken(tmp_path, revision):
    path = pdf_with(
        tmp_path / "a.pdf",
        encryption=pikepdf.Encryption(
            owner="own", user="geheim ü", R=revision, aes=revision > 3, metadata=revision > 3
        ),
    )
    with pytest.raises(DocumentEncrypted, match="--password") as missing:
        inspect(path)
    assert not isinstance(missing.value, WrongPassword)
    with pytest.raises(WrongPassword, match="--password"):
        inspect(path, password="wrong")
    assert inspect(path, password="geheim ü").page_count == 1
    assert inspect(path, password="own").page_count == 1


def test_a_password_that_is_not_needed_is_ignored(tmp_path):
    assert inspect(pdf_with(tmp_path / "a.pdf"), password="spare").page_count == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda stored: stored[:40],
        lambda stored: b"%PDF-1.7\n" + bytes(500),
        lambda stored: stored.replace(b"/Pages", b"/Pagez"),
    ],
)
def test_a_pdf_that_cannot_be_opened_is_corrupt(tmp_path, damage):
    path = tmp_path / "a.pdf"
    stored = pdf_with(path, object_stream_mode=pikepdf.ObjectStreamMode.disable).read_bytes()
    path.write_bytes(damage(stored))
    with pytest.raises(DocumentCorrupt, match="submit again"):
        inspect(path)


def test_a_pdf_without_pages_is_corrupt(tmp_path):
    path = pdf_with(tmp_path / "a.pdf", pages=0)
    with pytest.raises(DocumentCorrupt):
        inspect(path)


def test_a_page_tree_that_is_its_own_child_is_corrupt(tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[2 0 R]/Count 1>>endobj\ntrailer<</Root 1 0 R/Size 3>>\n%%EOF\n"
    )
    with pytest.raises(DocumentCorrupt, match="none of its pages"):
        inspect(path)


def test_embedded_files_are_named_and_never_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = pdf_with(tmp_path / "a.pdf")
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        for name in ("../../escape.csv", "bid form.pdf", "C:\\evil\\x\u202egpj.exe", "new\nline", ".."):
            pdf.attachments[name] = pikepdf.AttachedFileSpec(pdf, b"rows", filename=name)
        pdf.save(path)
    attachments = inspect(path).attachments
    assert sorted(attachments) == sorted(
        ("escape.csv", "bid form.pdf", "x\ufffdgpj.exe", "new\ufffdline", "unnamed")
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.pdf"]


@pytest.mark.parametrize(
    "name", [b"-rf A.pdf", b"facture_\xe9t\xe9.pdf", b"new\nline.pdf", b"$(touch x).pdf", b"a#b.pdf"]
)
def test_odd_names_change_nothing(tmp_path, name):
    path = tmp_path / os.fsdecode(name)
    pdf_with(tmp_path / "plain.pdf").rename(path)
    assert inspect(path).page_count == 1


def test_animations_are_one_page_and_a_tiff_has_many(tmp_path):
    for pillow_format in ("GIF", "WEBP", "PNG", "AVIF"):
        frames = [picture(), picture().rotate(90)]
        frames[0].save(tmp_path / "a", pillow_format, save_all=True, append_images=frames[1:])
        assert inspect(tmp_path / "a").page_count == 1
    picture().save(
        tmp_path / "a", "TIFF", save_all=True, append_images=[picture(mode="1"), picture(mode="CMYK")]
    )
    assert inspect(tmp_path / "a").page_count == 3


def test_reduced_copies_in_a_tiff_are_no_pages(tmp_path):
    path = tmp_path / "a.tif"
    page, preview = io.BytesIO(), picture(15, 20)
    page_image = picture()
    preview.encoderinfo = {"tiffinfo": {254: 1}}
    page_image.save(page, "TIFF", save_all=True, append_images=[preview, picture()])
    path.write_bytes(page.getvalue())
    assert inspect(path).page_count == 2


def test_a_loop_of_tiff_pages_ends(tmp_path):
    path = tmp_path / "a.tif"
    picture(4, 4, "L").save(path)
    stored = bytearray(path.read_bytes())
    first = int.from_bytes(stored[4:8], "little")
    entries = int.from_bytes(stored[first : first + 2], "little")
    stored[first + 2 + 12 * entries : first + 6 + 12 * entries] = first.to_bytes(4, "little")
    path.write_bytes(stored)
    assert inspect(path).page_count == 1
