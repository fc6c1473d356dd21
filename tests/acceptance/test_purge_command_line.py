"""``doctriage purge`` as a user starts it: what it finds, asks, erases and leaves."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from models.errors import BlobMissing, DocumentInUse, PageNotFound, ResultExpired, SettingsError
from models.pool import SubmissionState
from pipeline.blobs import BlobStore, open_blobs
from pipeline.settings import BlobSettings
from tests.acceptance.pool_commands import Commands
from tests.acceptance.test_command_line import run_doctriage
from tests.integration.blob_places import S3Place, kept
from tests.integration.pool.traced_worker import wait_until
from tests.unit.store.pool_parts import Submitted, new_document
from workers.cli import purge as purge_command
from workers.cluster.purged_copies import PurgedCopies
from workers.purging import FRESH_COPY_S
from workers.result_lifetimes import ResultExpiry, expire_results

MARKER = "Zwiebelfisch"


def read(commands: Commands, blobs: BlobStore, folder: Path, name: str) -> Submitted:
    """A document of two pages, with its bytes, pages and outputs."""
    document_id = kept(blobs, folder, f"the bytes of {MARKER} in {name}".encode())
    submitted = commands.read_document(document_id, name)
    commands.write_up()
    for suffix in (".md", ".json"):
        blobs.write_result(submitted.source_id, suffix, MARKER.encode())
    return submitted


def words(output: str, first: str) -> list[str]:
    [line] = [line for line in output.splitlines() if line.strip().startswith(first)]
    return line.split()


def holds_marker(home: Path) -> bool:
    return any(MARKER.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_everything_of_it_is_erased_and_counted(commands: Commands, blobs: BlobStore, tmp_path: Path) -> None:
    other = read(commands, blobs, tmp_path, "other.pdf")
    submitted = read(commands, blobs, tmp_path, f"{MARKER}.pdf")
    document_id = submitted.document.document_id
    before = commands.printed("purge", f"{MARKER}.pdf", "--dry-run")
    assert "Would be erased" in before
    assert blobs.local_path(document_id).is_file()
    output = commands.printed("purge", f"{MARKER}.pdf", "--yes")
    size = str(len(f"the bytes of {MARKER} in {MARKER}.pdf"))
    row = [f"{MARKER}.pdf", document_id[:12], size, "1", "2", "2", "-", "2"]
    assert words(output, f"{MARKER}.pdf") == words(before, f"{MARKER}.pdf") == row
    with pytest.raises(BlobMissing):
        blobs.local_path(document_id)
    assert blobs.results(submitted.source_id) == ()
    assert commands.store.pages.document(document_id) is None
    assert blobs.results(other.source_id) == (".json", ".md")
    assert blobs.local_path(other.document.document_id).is_file()
    with pytest.raises(PageNotFound, match="no such document"):
        raise commands.run("purge", document_id, "--yes").exception  # type: ignore[misc]


def test_it_is_found_by_its_name_its_bytes_and_its_id(
    commands: Commands, blobs: BlobStore, tmp_path: Path
) -> None:
    submitted = read(commands, blobs, tmp_path, "a.pdf")
    document_id = submitted.document.document_id
    file = tmp_path / "the same under another name"
    file.write_bytes(blobs.local_path(document_id).read_bytes())
    for reference in ("a.pdf", file, document_id, document_id[:8]):
        output = commands.printed("purge", reference, "a.pdf", "--dry-run")
        assert output.count(document_id[:12]) == 1
    for reference in ("b.pdf", document_id[:7], "purged-1", "%", ""):
        with pytest.raises(PageNotFound):
            raise commands.run("purge", reference, "--yes").exception  # type: ignore[misc]


def test_a_name_that_two_documents_had_is_neither(
    commands: Commands, blobs: BlobStore, tmp_path: Path
) -> None:
    first = read(commands, blobs, tmp_path, "a.pdf")
    document_id = kept(blobs, tmp_path, b"other bytes")
    commands.pool.add(commands.pool.open(), "a.pdf", blob_id=document_id)
    result = commands.run("purge", "a.pdf", "--yes")
    assert isinstance(result.exception, PageNotFound)
    assert first.document.document_id[:12] in str(result.exception)
    assert document_id[:12] in str(result.exception)
    commands.printed("purge", document_id, "--yes")
    assert blobs.local_path(first.document.document_id).is_file()


def test_nobody_is_asked_where_nobody_can_answer(
    commands: Commands, blobs: BlobStore, tmp_path: Path
) -> None:
    submitted = read(commands, blobs, tmp_path, "a.pdf")
    result = commands.run("purge", "a.pdf", answer="y\n")
    assert isinstance(result.exception, SettingsError)
    assert "say --yes" in str(result.exception)
    assert blobs.local_path(submitted.document.document_id).is_file()


@pytest.mark.parametrize(("answer", "is_erased"), [("y", True), ("n", False), ("", False)])
def test_on_a_terminal_it_is_asked_what_would_be_erased(
    commands: Commands,
    blobs: BlobStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    is_erased: bool,
) -> None:
    submitted = read(commands, blobs, tmp_path, "a.pdf")
    monkeypatch.setattr(purge_command, "can_be_asked", lambda: True)
    result = commands.run("purge", "a.pdf", answer=f"{answer}\n")
    assert "Would be erased" in result.output
    assert "erase a.pdf for ever?" in result.output
    assert (result.exit_code == 0) is is_erased
    assert (blobs.byte_count(submitted.document.document_id) is None) is is_erased


def test_one_that_is_being_read_is_refused_until_it_is_cancelled(
    commands: Commands, blobs: BlobStore, tmp_path: Path
) -> None:
    document_id = kept(blobs, tmp_path, MARKER.encode())
    document = replace(new_document(2), document_id=document_id)
    submission_id = commands.pool.open()
    commands.pool.add(submission_id, "a.pdf", blob_id=document_id)
    commands.pool.take_in(document)
    assert commands.pool.claim("elsewhere/boot/1/2")
    result = commands.run("purge", "a.pdf", "--yes")
    assert isinstance(result.exception, DocumentInUse)
    assert f"cancel submission {submission_id} first" in str(result.exception)
    assert blobs.local_path(document_id).is_file()
    commands.printed("submissions", "cancel", submission_id)
    commands.store.pool.give_back("elsewhere/boot/1/2")
    commands.printed("purge", "a.pdf", "--yes")
    assert commands.store.pool.progress(submission_id).state is SubmissionState.CANCELLED


def test_one_that_only_the_blob_store_has_is_erased_by_its_bytes(
    commands: Commands, blobs: BlobStore, tmp_path: Path
) -> None:
    document_id = kept(blobs, tmp_path, MARKER.encode())
    commands.printed("purge", tmp_path / "source", "--yes")
    assert blobs.byte_count(document_id) is None


def test_copies_on_other_machines_go_while_workers_run_there(
    commands: Commands, s3_place: S3Place, tmp_path: Path
) -> None:
    blobs = open_blobs(commands.home, s3_place.settings)
    erased = read(commands, blobs, tmp_path, "a.pdf")
    other = read(commands, blobs, tmp_path, "b.pdf")
    elsewhere = open_blobs(tmp_path / "another machine", s3_place.settings)
    copies = [elsewhere.local_path(one.document.document_id) for one in (erased, other)]
    endpoint = s3_place.settings
    assert endpoint.secret is not None
    result = commands.run(
        *("purge", "a.pdf", "--yes"),
        DOCTRIAGE_BLOBS__URL=endpoint.url or "",
        DOCTRIAGE_BLOBS__ENDPOINT_URL=endpoint.endpoint_url or "",
        DOCTRIAGE_BLOBS__KEY=endpoint.key or "",
        DOCTRIAGE_BLOBS__SECRET=endpoint.secret.get_secret_value(),
    )
    assert result.exit_code == 0
    assert {name.split("/")[0] for name in s3_place.names()} == {"blobs", "results"}
    assert not any(erased.document.document_id in name for name in s3_place.names())
    looking = PurgedCopies(commands.store, elsewhere, every_s=0.05)
    looking.start()
    time.sleep(0.3)
    assert [copy.exists() for copy in copies] == [True, True], "one that has just come may be on its way"
    for copy in copies:
        _age(copy, FRESH_COPY_S + 1)
    wait_until(lambda: not copies[0].exists())
    looking.stop()
    assert copies[1].exists()


def _age(path: Path, seconds: float) -> None:
    import os

    status = path.stat()
    os.utime(path, (status.st_atime, status.st_mtime - seconds))


def test_outputs_are_kept_for_their_time_and_no_longer(
    commands: Commands, blobs: BlobStore, tmp_path: Path
) -> None:
    old, new = read(commands, blobs, tmp_path, "old.pdf"), read(commands, blobs, tmp_path, "new.pdf")
    now_s = time.time()
    assert expire_results(commands.store, blobs, kept_s=3_600, now_s=now_s) == 0
    assert expire_results(commands.store, blobs, kept_s=3_600, now_s=now_s + 3_700) == 2
    assert (blobs.results(old.source_id), blobs.results(new.source_id)) == ((), ())
    assert expire_results(commands.store, blobs, kept_s=3_600, now_s=now_s + 3_700) == 0
    keeping = open_blobs(commands.home, BlobSettings(results_kept_s=3_600))
    with pytest.raises(ResultExpired, match="ingest it again"), keeping.open_result(old.source_id, ".md"):
        pass
    assert commands.store.submissions.newest_page(old.document.document_id, 1)


def test_who_looks_after_the_pool_looks_for_old_outputs_now_and_then(
    commands: Commands, blobs: BlobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(commands, blobs, tmp_path, "a.pdf")
    expiry = ResultExpiry(commands.store, blobs, 3_600.0)
    assert expiry.look() == 0
    monkeypatch.setattr("time.time", lambda: now_s)
    now_s = expiry._next_at_s - 1
    assert expiry.look() == 0
    now_s += 7_200
    assert expiry.look() == 1
    assert ResultExpiry(commands.store, blobs, None).look() == 0


def test_a_document_of_an_embedded_run_leaves_nothing_in_the_state_folder(tmp_path: Path) -> None:
    source = tmp_path / "in" / f"{MARKER}.pdf"
    source.parent.mkdir()
    canvas = Canvas(str(source))
    for line in range(30):
        canvas.drawString(60, 760 - 20 * line, f"{MARKER} is in line {line} of this letter to the harbour")
    canvas.save()
    home, out_dir = tmp_path / "home", tmp_path / "out"
    answer = run_doctriage("ingest", source, "--out", out_dir, home=home)
    assert answer.returncode == 0, answer.stderr
    assert holds_marker(home)
    answer = run_doctriage("purge", source, "--yes", home=home)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert str(out_dir) in answer.stdout.partition("yours to delete")[2]
    assert not holds_marker(home)
    assert not list((home / "blobs").rglob("*.*"))
    answer = run_doctriage("explain", source, "1", home=home)
    assert (answer.returncode, "not ingested yet" in answer.stderr) == (1, True)
    answer = run_doctriage("ingest", source, "--out", out_dir, home=home)
    assert answer.returncode == 0, answer.stderr
    assert holds_marker(home)
