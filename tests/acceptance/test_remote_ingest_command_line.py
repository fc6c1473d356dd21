"""``doctriage ingest --server``: a real server reads, and what is written is what a local run writes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.pool.house import rows_of, write_register
from tests.acceptance.test_command_line import DOCTRIAGE, run_doctriage
from tests.fakes.pages import page_image, write_tiff
from tests.integration.test_passwords import SECRET, encrypted_pdf
from tests.keyed_server import KeyedServer, keyed_server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedServer]:
    with keyed_server(tmp_path_factory.mktemp("house")) as running:
        yield running


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def untimed(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "elapsed_s"}


def tables_of(told: str) -> list[str]:
    """What a run closes with, but for seconds, who pays, and where it was written."""
    told = re.sub(r" +\d+\.\d( s)?( \(.*\))?\s*$|^billed to \w+|^written to .*", "", told, flags=re.MULTILINE)
    return [line.rstrip() for line in told.splitlines() if set(line) != {"─"}]


def test_the_files_are_those_of_a_local_run(house: KeyedServer, tmp_path: Path) -> None:
    inputs = tmp_path / "in"
    write_register(inputs / "register.pdf", 2)
    write_register(inputs / "deep" / "register.pdf", 2)
    write_tiff(inputs / "scan.tif", [page_image("The harbour master")])
    (inputs / "deep" / "notes.pdf").write_text("not a scan", encoding="utf-8")
    formats = "markdown,json,text"
    here = run_doctriage(
        "ingest", inputs, "--out", tmp_path / "here", "--format", formats, home=tmp_path / "home"
    )
    there = house.ingest(inputs, "--out", tmp_path / "there", "--format", formats)
    assert (there.returncode, here.returncode) == (1, 1), there.stderr
    assert files_below(tmp_path / "there") == files_below(tmp_path / "here")
    for rows in ("pages.jsonl", "failures.jsonl"):
        local, remote = (rows_of(tmp_path / place / rows) for place in ("here", "there"))
        assert [untimed(row) for row in remote] == [untimed(row) for row in local]
    for source in ("scan.tif", "deep/register.pdf"):
        local_text, remote_text = (
            (tmp_path / place / f"{source}.md").read_text("utf-8") for place in ("here", "there")
        )
        assert remote_text == local_text
    assert tables_of(there.stdout) == tables_of(here.stdout)
    assert "billed to harbour" in there.stdout
    assert "3 documents" in there.stdout
    assert "same as" in there.stdout
    assert "unsupported_media_type" in there.stdout
    assert "5/5 pages" not in there.stderr, "pages that two documents share are counted once"
    assert "3/3 pages" in there.stderr


def test_the_same_command_fetches_and_pays_nothing(house: KeyedServer, tmp_path: Path) -> None:
    paid = write_register(tmp_path / "paid.pdf", 3)
    first = house.ingest(paid, "--out", tmp_path / "out")
    text = (tmp_path / "out" / "paid.pdf.md").read_text("utf-8")
    (tmp_path / "out" / "paid.pdf.md").unlink()
    again = house.ingest(paid, "--out", tmp_path / "out")
    assert (first.returncode, again.returncode) == (0, 0), again.stderr
    assert "3 pages read" in first.stdout
    assert "0 pages read" in again.stdout
    assert "3 kept from an earlier run" in again.stdout
    assert (tmp_path / "out" / "paid.pdf.md").read_text("utf-8") == text
    assert house.uploads("paid.pdf") == 1
    house.ingest(paid, "--out", tmp_path / "elsewhere")
    house.ingest(paid, "--out", tmp_path / "out", "--priority", "9")
    assert house.uploads("paid.pdf") == 3


def test_what_failed_or_is_erased_is_sent_anew(house: KeyedServer, tmp_path: Path) -> None:
    gone = write_register(tmp_path / "in" / "gone.pdf", 1)
    (tmp_path / "in" / "broken.pdf").write_bytes(b"%PDF-1.4\nbroken")
    first = house.ingest(tmp_path / "in", "--out", tmp_path / "out")
    assert first.returncode == 1
    with house.client() as client:
        [document] = client.documents(name="gone.pdf")
        client.erase(document.id)
        again = house.ingest(tmp_path / "in", "--out", tmp_path / "out")
        assert again.returncode == 1
        [anew] = client.documents(name="gone.pdf")
        assert anew.id != document.id
        assert len(list(client.documents(name="broken.pdf"))) == 2
    assert [row["source"] for row in rows_of(tmp_path / "out" / "pages.jsonl")] == [gone.name]
    assert [row["code"] for row in rows_of(tmp_path / "out" / "failures.jsonl")] == ["document_corrupt"]


def test_ctrl_c_leaves_the_document_with_the_server_and_the_same_command_brings_it(
    house: KeyedServer, tmp_path: Path
) -> None:
    long = write_register(tmp_path / "long.pdf", 40)
    with house.begun_ingest(long, "--out", tmp_path / "out") as begun:
        house.server.wait_until(lambda: house.uploads("long.pdf") == 1)
        begun.send_signal(signal.SIGINT)
        _, told = begun.communicate(timeout=60)
    assert begun.returncode == 130, told
    assert "the same command brings that" in told
    assert "Traceback" not in told
    again = house.ingest(long, "--out", tmp_path / "out")
    assert again.returncode == 0, again.stderr
    assert house.uploads("long.pdf") == 1
    rows = rows_of(tmp_path / "out" / "pages.jsonl")
    assert [row["page_number"] for row in rows] == list(range(1, 41))
    booked = house.server.rows(f"SELECT count(*) FROM ledger WHERE document_id = '{rows[0]['document_id']}'")
    assert booked == [(40,)]


def test_a_server_that_dies_and_comes_back_is_waited_for(house: KeyedServer, tmp_path: Path) -> None:
    long = write_register(tmp_path / "storm.pdf", 30)
    with house.begun_ingest(long, "--out", tmp_path / "out") as begun:
        house.server.wait_until(lambda: house.uploads("storm.pdf") == 1)
        starts = house.server.process.starts
        house.server.process.kill()
        told, said = begun.communicate(timeout=180)
    assert begun.returncode == 0, said
    assert house.server.process.starts == starts + 1
    assert "30/30 pages" in said
    assert house.uploads("storm.pdf") == 1
    assert "register storm" in (tmp_path / "out" / "storm.pdf.md").read_text("utf-8")
    assert "1 document " in told


def test_encrypted_documents_are_opened_by_one_of_the_passwords(house: KeyedServer, tmp_path: Path) -> None:
    secret = encrypted_pdf(tmp_path / "secret.pdf", user=SECRET)
    wrong = house.ingest(secret, "--out", tmp_path / "out", "--password", "sesame")
    assert wrong.returncode == 1
    assert [row["code"] for row in rows_of(tmp_path / "out" / "failures.jsonl")] == ["wrong_password"]
    right = house.ingest(secret, "--out", tmp_path / "out", "--password", "sesame", "--password", SECRET)
    assert right.returncode == 0, right.stderr
    assert "minutes of the harbour board" in (tmp_path / "out" / "secret.pdf.md").read_text("utf-8")
    assert house.uploads("secret.pdf") == 3, "without one, with the wrong one and with the right one"


def test_a_full_server_is_waited_for_and_that_is_said_once(house: KeyedServer, tmp_path: Path) -> None:
    narrow = house.new_key(max_open_documents=1)
    for number in range(2):
        write_register(tmp_path / "in" / f"{number}.pdf", 6)
    done = house.ingest(tmp_path / "in", "--out", tmp_path / "out", DOCTRIAGE_SERVER__KEY=narrow)
    assert done.returncode == 0, done.stderr
    assert "12 pages read" in done.stdout
    assert done.stderr.count("waiting") == 1


def test_a_priority_that_the_key_may_not_name_ends_all_before_anything_is_sent_twice(
    house: KeyedServer, tmp_path: Path
) -> None:
    usual = house.new_key(max_priority=5)
    for number in range(3):
        write_register(tmp_path / "in" / f"urgent_{number}.pdf", 1)
    asked = (tmp_path / "in", "--out", tmp_path / "out", "--priority")
    refused = house.ingest(*asked, "6", DOCTRIAGE_SERVER__KEY=usual)
    assert refused.returncode == 1
    assert "the ceiling of your priorities is 5, and you named 6" in refused.stderr
    assert [house.uploads(f"urgent_{number}.pdf") for number in range(3)] == [0, 0, 0]
    assert house.ingest(*asked, "5", DOCTRIAGE_SERVER__KEY=usual).returncode == 0


def test_a_wrong_key_and_a_server_that_is_not_there_are_said_in_a_line(
    house: KeyedServer, tmp_path: Path
) -> None:
    source = write_register(tmp_path / "a.pdf", 1)
    key_file = tmp_path / "key"
    key_file.write_text("dt_none_such\n", encoding="utf-8")
    file_of = {"DOCTRIAGE_SERVER__KEY_FILE": str(key_file)}
    for settings, url, code, said in (
        (file_of, house.url, 2, "does not take the key"),
        ({}, house.url, 2, "does not take the key"),
        ({}, "http://127.0.0.1:9", 1, "no server answers at http://127.0.0.1:9"),
        ({}, "127.0.0.1:9", 2, "write it like https://"),
    ):
        done = subprocess.run(
            [DOCTRIAGE, "ingest", source, "--out", tmp_path / "out", "--server", url],
            env={**house.keyless_environment, **settings},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == code, done.stderr
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert "none_such" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_key_may_be_in_a_file_and_the_server_in_a_setting(house: KeyedServer, tmp_path: Path) -> None:
    source = write_register(tmp_path / "a.pdf", 1)
    key_file = tmp_path / "key"
    key_file.write_text(house.key + "\n", encoding="utf-8")
    done = subprocess.run(
        [DOCTRIAGE, "ingest", source, "--out", tmp_path / "out", "--format", "json"],
        env={
            **house.keyless_environment,
            "DOCTRIAGE_SERVER__URL": house.url,
            "DOCTRIAGE_SERVER__KEY_FILE": str(key_file),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out" / "a.pdf.json").read_text("utf-8"))["page_count"] == 1
