"""``doctriage reviews`` as a user starts it: what was said of pages becomes a corpus that ``calibrate`` takes."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.blobs import BlobStore
from pipeline.store.review_records import new_review
from tests.acceptance.pool_commands import Commands
from tests.integration.blob_places import kept
from tests.unit.store.pool_parts import Submitted
from workers.labelled import MANIFEST, read_corpora, source_groups


def read(commands: Commands, blobs: BlobStore, folder: Path, name: str) -> Submitted:
    return commands.read_document(kept(blobs, folder, f"the bytes of {name}".encode()), name)


def review(
    commands: Commands,
    of: Submitted,
    page_number: int,
    *,
    needs_vlm: bool,
    reviewer: str = "ada",
    classes: tuple[str, ...] = (),
) -> None:
    said = new_review(
        reviewer=reviewer,
        needs_vlm=needs_vlm,
        classes=classes,
        remark="süß\n=1",
        cost_centre="harbour",
    )
    assert commands.store.reviews.put(of.reading_id, page_number, said)


def test_reviewed_pages_become_a_corpus_that_calibrate_reads(
    commands: Commands, blobs: BlobStore, tmp_path: Path
) -> None:
    first = read(commands, blobs, tmp_path, "scan1.pdf")
    second = read(commands, blobs, tmp_path, "scan2.pdf")
    review(commands, first, 1, needs_vlm=True, classes=("table", "stamp"))
    review(commands, first, 2, needs_vlm=True)
    review(commands, first, 2, needs_vlm=False, reviewer="bob")
    review(commands, second, 1, needs_vlm=False)
    corpus = tmp_path / "corpus"
    done = commands.run("reviews", "export", "--out", str(corpus))
    assert done.exit_code == 0, done.stderr
    assert "3 pages of 2 documents" in done.stdout
    pages = {(page.row.source_path, page.row.page_number): page for page in read_corpora([corpus])}
    table = pages["scan1.pdf", 1]
    assert (table.row.needs_vlm, table.is_clear, table.class_name) == (True, True, "table")
    assert table.path.read_bytes() == b"the bytes of scan1.pdf"
    differing = pages["scan1.pdf", 2]
    assert (differing.row.needs_vlm, differing.is_clear, differing.class_name) == (False, False, "page")
    assert not pages["scan2.pdf", 1].row.needs_vlm
    assert set(source_groups(list(pages.values()))) == {"scan#.pdf"}


def test_an_export_again_has_the_newest_words_and_no_unfinished_file(
    commands: Commands, blobs: BlobStore, tmp_path: Path
) -> None:
    one = read(commands, blobs, tmp_path, "a.pdf")
    corpus = tmp_path / "corpus"
    for needs_vlm in (True, False):
        review(commands, one, 1, needs_vlm=needs_vlm)
        assert commands.run("reviews", "export", "--out", str(corpus)).exit_code == 0
        [page] = read_corpora([corpus])
        assert page.row.needs_vlm is needs_vlm
    assert not [path for path in corpus.rglob("*") if path.name.endswith(".part")]


def test_a_document_whose_bytes_are_gone_is_named_and_left_out(
    commands: Commands, blobs: BlobStore, tmp_path: Path
) -> None:
    kept_one, gone = read(commands, blobs, tmp_path, "a.pdf"), read(commands, blobs, tmp_path, "b.pdf")
    for one in (kept_one, gone):
        review(commands, one, 1, needs_vlm=True)
    blobs.erase(gone.document.document_id)
    done = commands.run("reviews", "export", "--out", str(tmp_path / "corpus"))
    assert done.exit_code == 1
    assert gone.document.document_id[:12] in done.stderr
    lines = (tmp_path / "corpus" / MANIFEST).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["source_path"] for line in lines] == ["a.pdf"]


def test_reviewed_pages_are_listed(commands: Commands, blobs: BlobStore, tmp_path: Path) -> None:
    assert "no page was reviewed" in commands.run("reviews", "list").stdout
    one = read(commands, blobs, tmp_path, "a.pdf")
    review(commands, one, 2, needs_vlm=True, classes=("stamp",))
    review(commands, one, 2, needs_vlm=False, reviewer="bob", classes=("stamp",))
    listed = commands.run("reviews", "list").stdout
    assert "a.pdf" in listed
    assert "reviewers" in listed
    assert "no page was reviewed" in commands.run("reviews", "list", "--cost-centre", "market").stdout
