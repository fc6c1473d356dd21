"""Whether the holder of a lease still lives."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from workers.owner import current_owner, is_alive

SAY_OWNER = "from workers.owner import current_owner; print(current_owner(), flush=True); input()"


def test_this_process_is_alive() -> None:
    assert is_alive(current_owner())


def test_a_process_is_alive_until_it_ends() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SAY_OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        owner = other.stdout.readline().strip()
        assert owner != current_owner()
        assert is_alive(owner)
        other.kill()
    assert not is_alive(owner)


def test_a_process_number_used_again_is_another_process() -> None:
    head, _, start = current_owner().rpartition("/")
    assert not is_alive(f"{head}/{int(start) - 1}")


def test_after_a_restart_of_the_host_nobody_from_before_is_alive() -> None:
    host, _boot, pid, start = current_owner().split("/")
    assert not is_alive(f"{host}/another-boot/{pid}/{start}")


def test_of_another_host_nothing_is_known_so_its_processes_count_as_alive() -> None:
    _host, *rest = current_owner().split("/")
    assert is_alive("/".join(["elsewhere", *rest]))


def test_of_a_container_with_the_name_of_its_host_nothing_is_known_either() -> None:
    host, *rest = current_owner().split("/")
    name, _, namespace = host.rpartition(":")
    assert is_alive("/".join([f"{name}:{int(namespace) + 1}", *rest[:-1], "0"]))


OWN_PROCESS_NUMBERS = ("unshare", "--map-root-user", "--pid", "--fork", "--mount-proc")


@pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run([*OWN_PROCESS_NUMBERS, "true"], capture_output=True, check=False).returncode != 0,
    reason="needs the right to make a namespace of processes",
)
def test_a_process_with_a_number_of_its_containers_is_alive_to_its_host() -> None:
    with subprocess.Popen(
        [*OWN_PROCESS_NUMBERS, sys.executable, "-c", SAY_OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as contained:
        assert contained.stdout is not None
        assert is_alive(contained.stdout.readline().strip())
        contained.communicate("\n")
