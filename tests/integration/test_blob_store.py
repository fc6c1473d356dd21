"""One contract for every place that blobs are kept in."""

from __future__ import annotations

import hashlib
import io
import multiprocessing
from pathlib import Path
from typing import BinaryIO

import pytest

from models.errors import BlobDamaged, BlobMissing, ResultExpired, ResultMissing, StoreUnavailable
from pipeline.blobs import BlobStore, open_blobs, sha256_of
from pipeline.settings import BlobSettings
from tests.integration.blob_places import FolderPlace, Place, blob_name, kept, taken

SEVERAL_PARTS = bytes(range(251)) * 80_000


@pytest.fixture(params=["home", "share", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    match request.param:
        case "home":
            return FolderPlace(tmp_path / "home", BlobSettings())
        case "share":
            share = tmp_path / "a share"
            share.mkdir()
            return FolderPlace(share, BlobSettings(url=share.as_uri()))
        case _:
            found: Place = request.getfixturevalue("s3_place")
            return found


@pytest.fixture
def blobs(place: Place, tmp_path: Path) -> BlobStore:
    return open_blobs(tmp_path / "home", place.settings)


@pytest.fixture
def elsewhere(place: Place, tmp_path: Path) -> BlobStore:
    """The same store as another process has it; where machines share it, as another machine has it."""
    home = "home" if place.settings.url is None else "home of another machine"
    return open_blobs(tmp_path / home, place.settings)


@pytest.mark.parametrize("content", [b"", b"one page", SEVERAL_PARTS], ids=["empty", "short", "long"])
def test_what_was_kept_is_there_for_every_machine_under_its_checksum(
    blobs: BlobStore, elsewhere: BlobStore, place: Place, tmp_path: Path, content: bytes
) -> None:
    document_id = kept(blobs, tmp_path, content)
    assert document_id == hashlib.sha256(content).hexdigest()
    assert place.names() == {blob_name(document_id)}
    for store in (blobs, elsewhere):
        with store.lent(document_id) as path:
            assert path.read_bytes() == content


def test_equal_bytes_are_kept_once_and_a_discarded_copy_leaves_nothing(
    blobs: BlobStore, place: Place, tmp_path: Path
) -> None:
    first = kept(blobs, tmp_path, b"same")
    blobs.discard(taken(blobs, tmp_path, b"refused"))
    assert kept(blobs, tmp_path, b"same") == first
    assert place.names() == {blob_name(first)}
    assert not list((tmp_path / "home" / "incoming").glob("*"))


def test_a_place_that_is_there_can_be_required_and_nothing_is_left_there(
    blobs: BlobStore, place: Place
) -> None:
    blobs.require()
    assert place.names() == set()


def test_a_share_that_is_not_mounted_cannot_be_required(tmp_path: Path) -> None:
    blobs = open_blobs(tmp_path / "home", BlobSettings(url=(tmp_path / "not mounted").as_uri()))
    with pytest.raises(StoreUnavailable, match="mount or make the folder that DOCTRIAGE_BLOBS__URL names"):
        blobs.require()


def test_a_document_that_is_not_there_is_to_be_submitted_again(blobs: BlobStore, tmp_path: Path) -> None:
    kept(blobs, tmp_path, b"another")
    with pytest.raises(
        BlobMissing, match=r"submit the file again; .* DOCTRIAGE_BLOBS__URL names the same place"
    ):
        blobs.local_path("ab" * 32)


@pytest.mark.parametrize("damage", [b"not what it was", b"", b"one pagE"], ids=["longer", "empty", "as long"])
def test_a_damaged_blob_is_never_lent_and_mended_by_the_next_submission(
    blobs: BlobStore, elsewhere: BlobStore, place: Place, tmp_path: Path, damage: bytes
) -> None:
    document_id = kept(blobs, tmp_path, b"one page")
    place.overwrite(blob_name(document_id), damage)
    with pytest.raises(BlobDamaged, match="submit the file again"):
        elsewhere.local_path(document_id)
    assert kept(blobs, tmp_path, b"one page") == document_id
    assert sha256_of(elsewhere.local_path(document_id)) == document_id


def test_outputs_are_kept_for_their_source_until_they_are_deleted(
    blobs: BlobStore, elsewhere: BlobStore, place: Place
) -> None:
    blobs.write_result(7, ".md", "# Überschrift\n".encode())
    blobs.write_result(7, ".json", io.BytesIO(SEVERAL_PARTS))
    blobs.write_result(71, ".md", lambda stream: stream.write(b"# another's\n"))
    assert elsewhere.results(7) == (".json", ".md")
    with elsewhere.open_result(7, ".md") as stream:
        assert stream.read() == "# Überschrift\n".encode()
    with elsewhere.open_result(7, ".json") as stream:
        assert stream.read(10) == SEVERAL_PARTS[:10]
        assert stream.read() == SEVERAL_PARTS[10:]
    with elsewhere.open_result(71, ".md") as stream:
        assert io.TextIOWrapper(stream, "utf-8").read() == "# another's\n"
    assert blobs.delete_results(7) == 2
    assert (blobs.results(7), elsewhere.results(71)) == ((), (".md",))
    assert place.names() == {"results/71/document.md"}
    assert blobs.delete_results(7) == 0


def test_an_output_that_is_written_again_takes_the_place_of_the_old_one(blobs: BlobStore) -> None:
    blobs.write_result(1, ".md", b"a long first text")
    blobs.write_result(1, ".md", b"the second")
    with blobs.open_result(1, ".md") as stream:
        assert stream.read() == b"the second"


def test_an_output_that_breaks_off_leaves_the_old_one_and_nothing_else(
    blobs: BlobStore, place: Place, tmp_path: Path
) -> None:
    blobs.write_result(1, ".md", b"whole")

    def break_off(stream: BinaryIO) -> None:
        stream.write(b"half of" * 100_000)
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        blobs.write_result(1, ".md", break_off)
    with blobs.open_result(1, ".md") as stream:
        assert stream.read() == b"whole"
    assert place.names() == {"results/1/document.md"}
    assert not list((tmp_path / "home" / "incoming").glob("*"))


def test_an_output_that_is_not_there_says_why(place: Place, tmp_path: Path) -> None:
    lasting = open_blobs(tmp_path / "home", place.settings)
    with pytest.raises(ResultMissing, match="not written yet"), lasting.open_result(1, ".md"):
        pass
    fleeting = open_blobs(
        tmp_path / "home", place.settings.model_copy(update={"results_kept_s": 30 * 86_400.0})
    )
    with pytest.raises(ResultExpired, match="kept 30 days; ingest it again"), fleeting.open_result(1, ".md"):
        pass


def test_an_erased_document_is_gone_everywhere_on_this_machine(
    blobs: BlobStore, place: Place, tmp_path: Path
) -> None:
    document_id = kept(blobs, tmp_path, b"a secret nobody may keep")
    other_id = kept(blobs, tmp_path, b"another document")
    left_by_a_killed_run = taken(blobs, tmp_path, b"a secret nobody may keep")
    assert blobs.erase(document_id)
    assert not left_by_a_killed_run.path.exists()
    assert place.names() == {blob_name(other_id)}
    assert not any(
        b"a secret" in path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()
    )
    with pytest.raises(BlobMissing):
        blobs.local_path(document_id)
    assert not blobs.erase(document_id)


def test_processes_that_want_the_same_document_at_once_all_get_it(
    blobs: BlobStore, place: Place, tmp_path: Path
) -> None:
    document_id = kept(blobs, tmp_path, SEVERAL_PARTS)
    home = tmp_path / "home" if place.settings.url is None else tmp_path / "another machine"
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        found = pool.starmap(_checksum, [(home, place.settings, document_id)] * 6)
    assert found == [document_id] * 6


def test_a_process_that_is_forked_from_one_that_used_it_can_use_it(
    blobs: BlobStore, elsewhere: BlobStore, tmp_path: Path
) -> None:
    document_id = kept(blobs, tmp_path, b"one page")
    other_id = kept(blobs, tmp_path, b"another page")
    assert elsewhere.local_path(document_id).read_bytes() == b"one page"
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(
        target=lambda: theirs.send(elsewhere.local_path(other_id).read_bytes())
    )
    child.start()
    assert ours.poll(60)
    assert ours.recv() == b"another page"
    child.join()


def _checksum(home: Path, settings: BlobSettings, document_id: str) -> str:
    with open_blobs(home, settings).lent(document_id) as path:
        return sha256_of(path)
