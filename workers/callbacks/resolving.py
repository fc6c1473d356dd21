"""A host's addresses, asked for with a limit of time, which the system's resolver does not know."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from queue import Empty, SimpleQueue


def resolved(host: str, port: int, timeout_s: float) -> Sequence[str]:
    """Addresses in the order in which they are to be tried; none where the name is not known, or nobody answers within
    ``timeout_s``."""
    found: SimpleQueue[Sequence[str]] = SimpleQueue()
    threading.Thread(target=lambda: found.put(_ask(host, port)), daemon=True).start()
    try:
        return found.get(timeout=timeout_s)
    except Empty:
        return ()


def _ask(host: str, port: int) -> Sequence[str]:
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(str(address[0]) for *_, address in answers)
