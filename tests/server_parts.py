"""What throw-away servers have in common: a port, an account to run as, an end with whoever started them."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from pydantic import SecretStr

PORTS: Final = range(20_000, 32_768)
"""Below those that the system gives to clients: a client that tries again and again to reach a server that is down
must not come to hold that server's port itself."""


class Broker(Protocol):
    """A message broker as one test has it. What was confirmed before ``stop`` is there after the next start."""

    @property
    def url(self) -> SecretStr: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def restart(self) -> None: ...

    def lose_everything(self) -> None:
        """Every queue and message is gone; the server runs on, or anew on the same port."""


def free_port() -> int:
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def give(account: str, *places: Path) -> None:
    """To the account that the server will run as, where root starts it."""
    if os.geteuid() == 0:
        for place in places:
            shutil.chown(place, account, account)


def start_server(
    command: Sequence[str | Path],
    *,
    account: str | None,
    folder: Path,
    log: Path,
    environment: Mapping[str, str],
) -> subprocess.Popen[bytes]:
    """In a session of its own, not as root where an ``account`` is given, and ended with this process."""
    drop = (
        [f"--reuid={account}", f"--regid={account}", "--clear-groups"]
        if account and os.geteuid() == 0
        else []
    )
    with log.open("ab") as output:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", *drop, *command],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def end_server(process: subprocess.Popen[bytes], *, patience_s: float = 0.0) -> None:
    """With all that it has started; in good order where it takes no longer than ``patience_s``."""
    if patience_s:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
