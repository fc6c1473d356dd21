"""A server that is killed, without a word, at one moment of an upload.

``python -m tests.fakes.run_dying_server MOMENT ARGUMENTS…`` serves as ``doctriage ARGUMENTS…`` does. MOMENT is one of
``MOMENTS``.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

from pipeline.blobs import BlobStore
from pipeline.store.uploads import UploadStore
from workers.api import entering
from workers.cli import main

MOMENTS: Final = (
    "before note_arriving",
    "after note_arriving",
    "after keep",
    "within accept",
    "after accept",
)


def die(*_: object, **__: object) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def then_die(call: Callable[..., Any]) -> Callable[..., Any]:
    def called(*arguments: Any, **options: Any) -> Any:
        call(*arguments, **options)
        die()

    return called


def arm(moment: str) -> None:
    from pipeline.store import uploads

    match moment:
        case "before note_arriving":
            UploadStore.note_arriving = die  # type: ignore[method-assign]
        case "after note_arriving":
            BlobStore.keep = die  # type: ignore[method-assign]
        case "after keep":
            UploadStore.accept = die  # type: ignore[method-assign]
        case "within accept":
            uploads.insert_missing = then_die(uploads.insert_missing)
        case "after accept":
            entering.send_if_possible = die
        case _:
            raise ValueError(moment)


if __name__ == "__main__":
    arm(sys.argv.pop(1))
    main()
