"""Who holds a lease: a process that can be told from every other, also when its number is used again."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path


def current_owner() -> str:
    """``host/boot/pid/start``; the start is in clock ticks since boot, so no two processes share all four. Containers
    on their host's network have its name, and process numbers of their own: each counts as a host."""
    pid = os.getpid()
    return f"{_here()}/{pid}/{_start_ticks(pid)}"


def is_alive(owner: str) -> bool:
    """False when the owner was a process of this host that has ended. Of another host's process nothing is
    known but when its lease ends, so it counts as alive."""
    host, _, process = owner.partition("/")
    boot, _, numbers = process.partition("/")
    if host != _host():
        return True
    if f"{host}/{boot}" != _here():
        return False
    pid, _, start_ticks = numbers.partition("/")
    return start_ticks == _start_ticks(int(pid))


@cache
def _here() -> str:
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{_host()}/{boot_id}"


@cache
def _host() -> str:
    """Its name, and the number of the namespace that gives processes theirs."""
    return f"{socket.gethostname()}:{Path('/proc/self/ns/pid').stat().st_ino}"


def _start_ticks(pid: int) -> str | None:
    """Field 22 of /proc/PID/stat; None for no process, or a zombie, which works on nothing any more."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = status.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]
