"""Pages that have to be gone through again, when what was made of them the first time is no good."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from pipeline.exports.document import Json, Pages

NEEDED: Final = (
    "page_number",
    "route",
    "read_by",
    "width_px",
    "height_px",
    "dpi",
    "rotation_deg",
    "skew_deg",
    "lines",
    "error",
)


@contextmanager
def replayable(pages: Pages) -> Iterator[Callable[[], Iterator[Json]]]:
    """What a searchable PDF needs of each page, from a temporary file, as often as asked; a page in memory at a
    time."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as kept:
        for page in pages:
            json.dump({name: page[name] for name in NEEDED}, kept)
            kept.write("\n")

        def replay() -> Iterator[Json]:
            """One at a time: they share the file's position."""
            kept.seek(0)
            return map(json.loads, kept)

        yield replay
