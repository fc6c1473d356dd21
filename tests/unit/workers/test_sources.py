"""Which files a run reads and what they are called: any name a file system allows, no results of ours."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from workers.sources import MAX_SOURCE_BYTES, OVERLAY_SOFTWARE, Source, find_sources


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return path


def found(*paths: Path, left_out: tuple[Path, ...] = ()) -> list[Source]:
    return list(find_sources(paths, left_out=left_out))


def names(*paths: Path, left_out: tuple[Path, ...] = ()) -> list[str]:
    return [source.name for source in found(*paths, left_out=left_out)]


def test_a_folder_is_walked_in_order_and_a_file_is_called_by_its_name(tmp_path: Path) -> None:
    for name in ("b.pdf", "a/inv.pdf", "a/deep/er/x.tif"):
        put(tmp_path / "in" / name)
    assert names(tmp_path / "in") == ["a/deep/er/x.tif", "a/inv.pdf", "b.pdf"]
    assert names(tmp_path / "in" / "a" / ".." / "b.pdf") == ["b.pdf"]


def test_hidden_files_are_left_out_unless_named(tmp_path: Path) -> None:
    hidden = put(tmp_path / ".hidden.pdf")
    put(tmp_path / ".git" / "x.pdf")
    assert names(tmp_path) == []
    assert names(hidden) == [".hidden.pdf"]


def test_links_to_files_are_followed_and_links_to_folders_are_not(tmp_path: Path) -> None:
    put(tmp_path / "in" / "a.pdf")
    (tmp_path / "in" / "link.pdf").symlink_to(tmp_path / "in" / "a.pdf")
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "broken.pdf").symlink_to(tmp_path / "nowhere")
    assert names(tmp_path / "in") == ["a.pdf", "broken.pdf", "link.pdf"]


def test_a_file_reached_twice_is_taken_once(tmp_path: Path) -> None:
    file = put(tmp_path / "in" / "a" / "x.pdf")
    assert names(tmp_path / "in", tmp_path / "in" / "a", file) == ["a/x.pdf"]


def test_two_files_that_want_one_name_get_two_and_say_so(tmp_path: Path) -> None:
    first, second, third = (put(tmp_path / folder / "x.tar.pdf") for folder in "abc")
    sources = found(first, second, third)
    assert [source.name for source in sources] == ["x.tar.pdf", "x.tar (2).pdf", "x.tar (3).pdf"]
    assert {source.wanted for source in sources} == {"x.tar.pdf"}


def test_names_that_would_meet_in_the_output_folder_are_kept_apart(tmp_path: Path) -> None:
    put(tmp_path / "in" / "pages.jsonl" / "x.pdf")
    put(tmp_path / "in" / "report")
    put(tmp_path / "in" / "report.json" / "y.pdf")
    put(tmp_path / "in" / "report.md" / "z.pdf")
    sources = found(tmp_path / "in")
    files = {f"{source.output_stem}{suffix}" for source in sources for suffix in (".md", ".json")}
    files |= {"pages.jsonl", "failures.jsonl"}
    out = tmp_path / "out"
    for file in sorted(files, key=len):
        put(out / file)
    assert len(sources) == 4


@pytest.mark.parametrize(
    "name",
    ["line\nbreak.pdf", "tab\there.pdf", "-rf", "a;b|c&d.pdf", " ", "ünïcödé.pdf", "e\u0301.pdf", "...pdf.x"],
)
def test_odd_names_are_kept(tmp_path: Path, name: str) -> None:
    put(tmp_path / "in" / name)
    expected = [] if name.startswith(".") else [name]
    assert names(tmp_path / "in") == expected


def test_bytes_that_are_no_unicode_are_spelled_out(tmp_path: Path) -> None:
    put(Path(os.fsdecode(os.fsencode(tmp_path) + b"/in/caf\xe9.pdf")))
    [source] = found(tmp_path / "in")
    assert source.name == source.output_stem == r"caf\xe9.pdf"
    assert source.path.is_file()


@pytest.mark.parametrize("letter", ["a", "é", "\N{SNOWMAN}"])
def test_names_of_every_length_leave_room_for_the_suffix(tmp_path: Path, letter: str) -> None:
    longest = letter * (251 // len(letter.encode()))
    put(tmp_path / "in" / f"{longest}.pdf")
    put(tmp_path / "in" / f"{longest}.png")
    sources = found(tmp_path / "in")
    assert [source.name for source in sources] == [f"{longest}.pdf", f"{longest}.png"]
    assert len({source.output_stem for source in sources}) == 2
    for source in sources:
        put(tmp_path / "out" / f"{source.output_stem}.json")


def test_a_path_too_long_for_an_index_of_the_database_is_cut_and_told_apart(tmp_path: Path) -> None:
    folder = "/".join(["f" * 200] * 14)
    for name in ("first.pdf", "second.pdf"):
        put(tmp_path / "in" / folder / name)
    sources = found(tmp_path / "in")
    assert all(len(source.name.encode()) <= MAX_SOURCE_BYTES < len(source.wanted) for source in sources)
    assert len({source.name for source in sources}) == 2


def test_the_output_and_state_folders_below_a_walked_folder_are_left_out(tmp_path: Path) -> None:
    put(tmp_path / "a.pdf")
    put(tmp_path / "out" / "a.pdf.json")
    put(tmp_path / "state" / "blobs" / "ab" / "abcd")
    assert names(tmp_path, left_out=(tmp_path / "out", tmp_path / "state")) == ["a.pdf"]


def test_results_of_earlier_runs_are_never_read(tmp_path: Path) -> None:
    put(tmp_path / "a.pdf")
    for name in ("pages.jsonl", "failures.jsonl", "a.pdf.json", "a.pdf.md", "sub/b.pdf.md", "sub/b.pdf"):
        put(tmp_path / "earlier" / name)
    assert names(tmp_path, left_out=(tmp_path / "now",)) == ["a.pdf", "earlier/sub/b.pdf"]
    assert names(tmp_path / "earlier" / "sub") == ["b.pdf"]


def test_results_beside_their_sources_are_not_read(tmp_path: Path) -> None:
    for name in ("a.pdf", "a.pdf.json", "a.pdf.md", "pages.jsonl", "failures.jsonl"):
        put(tmp_path / name)
    assert names(tmp_path, left_out=(tmp_path,)) == ["a.pdf"]


@pytest.mark.parametrize("database", ["state/doctriage.sqlite3", "sub/state/doctriage.sqlite3"])
def test_the_state_folder_of_another_run_is_left_out(tmp_path: Path, database: str) -> None:
    put(tmp_path / "in" / "a.pdf")
    put((tmp_path / "in" / database).parent / "blobs" / "ab" / "abcd")
    put(tmp_path / "in" / database)
    assert names(tmp_path / "in") == ["a.pdf"]


def test_pictures_that_explain_drew_are_left_out_and_other_pictures_are_not(tmp_path: Path) -> None:
    text = PngInfo()
    text.add_text("Software", OVERLAY_SOFTWARE)
    for name in ("drawn.png", "DRAWN.PNG", "scan.page-1.png"):
        Image.new("L", (9, 9)).save(
            tmp_path / name, format="PNG", pnginfo=text if name.lower() == "drawn.png" else None
        )
    os.mkfifo(tmp_path / "pipe.png")
    assert names(tmp_path) == ["pipe.png", "scan.page-1.png"]
    assert names(tmp_path / "drawn.png") == ["drawn.png"]


@contextmanager
def nested(root: Path, depth: int, name: str) -> Iterator[None]:
    """``depth`` folders called ``name``, each in the one before, the last with a file ``x.pdf``."""
    root.mkdir()
    place = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=place)  # the path may be longer than a path can be
        inner = os.open(name, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(os.open("x.pdf", os.O_CREAT | os.O_WRONLY, dir_fd=place))
    os.close(place)
    try:
        yield
    finally:
        subprocess.run(["rm", "-rf", root], check=True)  # pytest's own way stops at a thousand folders


def test_folders_may_be_nested_deeper_than_functions(tmp_path: Path) -> None:
    with nested(tmp_path / "in", 1_100, "d"):
        put(tmp_path / "in" / "e.pdf")
        assert names(tmp_path / "in") == ["d/" * 1_100 + "x.pdf", "e.pdf"]


def test_a_folder_nested_deeper_than_a_path_may_be_is_a_problem_of_its_own(tmp_path: Path) -> None:
    with nested(tmp_path / "in", 20, "n" * 250):
        put(tmp_path / "in" / "z.pdf")
        first, second = found(tmp_path / "in")
        assert "too deep" in str(first.problem)
        assert (second.name, second.problem) == ("z.pdf", None)


def test_a_path_that_is_not_there_is_a_problem_of_its_own(tmp_path: Path) -> None:
    put(tmp_path / "a.pdf")
    sources = found(tmp_path / "missing.pdf", tmp_path / "a.pdf")
    assert [source.problem is None for source in sources] == [False, True]


def test_a_link_whose_target_cannot_be_looked_at_is_a_source_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "good.pdf").write_bytes(b"%PDF-")
    (tmp_path / "odd.pdf").symlink_to("a" * 300)
    assert [source.name for source in find_sources([tmp_path], left_out=())] == ["good.pdf", "odd.pdf"]
