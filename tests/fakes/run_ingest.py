"""``python -m tests.fakes.run_ingest FOLDER IN OUT READ_S``: an ingest with fake engines, on its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pipeline.settings import Settings
from tests.fakes.engines import FakeEngines, FakeOcr
from workers.events import IngestRequest
from workers.local import ingest


def main(folder: Path, inputs: Path, out: Path, read_s: float) -> None:
    report = ingest(
        IngestRequest(paths=(inputs,), out_dir=out),
        settings=Settings(home=folder / "home", executor={"jobs": 2, "page_timeout_s": 60}),
        on_event=lambda _event: None,
        engine_builder=FakeEngines(ocr=FakeOcr(folder=folder, read_s=read_s)),
    )
    counts = {"read": report.pages_read, "earlier": report.pages_from_earlier_run}
    sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4]))
