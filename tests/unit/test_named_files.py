"""Files that a person names: replaced whole, written through links, and straight into what is no file."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from models.errors import OutputNotWritable
from pipeline.named_files import named_file, require_place


def write(path: Path, text: str) -> None:
    with named_file(path) as stream:
        stream.write(text)


def names_in(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "touched").touch()
    write(tmp_path / "new.csv", "a\n")
    assert (tmp_path / "new.csv").read_bytes() == b"a\n"
    assert (tmp_path / "new.csv").stat().st_mode == (tmp_path / "touched").stat().st_mode


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_file_that_was_there_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "bill.csv"
    path.write_text("a longer text than the one that follows\n")
    path.chmod(mode)
    write(path, "b\n")
    assert path.read_text() == "b\n"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert names_in(tmp_path) == ["bill.csv"]


def test_a_file_stays_as_it_was_when_writing_breaks_off(tmp_path: Path) -> None:
    path = tmp_path / "bill.csv"
    path.write_text("before\n")
    with pytest.raises(ZeroDivisionError), named_file(path) as stream:
        stream.writelines(f"{1 // left}\n" for left in (1, 0))
    assert path.read_text() == "before\n"
    assert names_in(tmp_path) == ["bill.csv"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_one_and_what_it_leads_to_is_written(tmp_path: Path, is_there: bool) -> None:
    (tmp_path / "kept").mkdir()
    target, link = tmp_path / "kept" / "bill.csv", tmp_path / "link.csv"
    if is_there:
        target.write_text("before\n")
    link.symlink_to(Path("kept", "bill.csv"))
    require_place(link, "--out")
    write(link, "after\n")
    assert link.is_symlink()
    assert target.read_text() == "after\n"


def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    require_place(pipe, "--out", may_exist=False)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write(pipe, "a\n")
    reader.join()
    assert read == ["a\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_written_into_and_stays_one(tmp_path: Path) -> None:
    """Through a link, so that what replaces the name would replace the link alone."""
    link = tmp_path / "nowhere"
    link.symlink_to(os.devnull)
    write(link, "a\n")
    assert link.is_symlink()
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_pipe_whose_reader_is_gone_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with (
        pytest.raises(OutputNotWritable, match=r"pipe: .*Broken pipe.*name another file"),
        named_file(pipe) as stream,
    ):
        stream.writelines(os.close(reader) or "a\n" for _ in range(1))


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputNotWritable, match="the disk is full"), named_file(tmp_path / "bill.csv"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert names_in(tmp_path) == []


def test_a_socket_is_refused_and_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the address of a socket is short
    with socket.socket(socket.AF_UNIX) as service:
        service.bind("socket")
        with pytest.raises(OutputNotWritable, match="socket: cannot be written"):
            write(Path("socket"), "a\n")
        assert stat.S_ISSOCK(Path("socket").stat().st_mode)


def test_the_file_of_standard_output_is_added_to(tmp_path: Path) -> None:
    """What is printed after it would otherwise go to a file that no name leads to."""
    out = tmp_path / "out.txt"
    program = (
        "from pathlib import Path\nfrom pipeline.named_files import named_file\n"
        "with named_file(Path('/dev/stdout')) as stream:\n    stream.write('bill\\n')\n"
        "import os\nos.write(1, b'printed\\n')\n"
    )
    with out.open("ab") as stream:
        subprocess.run([sys.executable, "-c", program], stdout=stream, check=True)
    assert out.read_text() == "bill\nprinted\n"


def test_a_folder_is_no_place(tmp_path: Path) -> None:
    with pytest.raises(OutputNotWritable, match="is a folder; name a file with --save"):
        require_place(tmp_path, "--save")


def test_a_missing_folder_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "bill.csv"
    with pytest.raises(
        OutputNotWritable, match=r"there is no folder .*missing; make it, or name another file with --out"
    ):
        require_place(path, "--out")
    with pytest.raises(OutputNotWritable, match="No such file or directory"):
        write(path, "a\n")
    assert names_in(tmp_path) == []


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OutputNotWritable, match="name another file with --out"):
        require_place(loop, "--out")


def test_a_file_that_must_be_new_is_not_there_yet(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    require_place(path, "--out", may_exist=False)
    path.touch()
    with pytest.raises(OutputNotWritable, match="File exists; name another file with --out"):
        require_place(path, "--out", may_exist=False)
    require_place(path, "--out")
