"""A pool of children as Celery makes them, which count, are replaced after a few tasks, and are scraped by their
parent. Run as a program, since counting in files is for a whole process: HOME PORT CHILDREN TASKS."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from billiard.pool import Pool

from models.pool import Queue
from tests.fakes.scraped import scrape
from workers.cluster.metrics import worker_metrics
from workers.cluster.metrics_server import serving_worker_metrics

TASKS_A_CHILD = 2


def count(number: int) -> int:
    """The number of the process that counted."""
    import os

    with worker_metrics().timed(Queue.OCR):
        worker_metrics().page_ended(Queue.OCR, "ocr")
        worker_metrics().work_put_off(Queue.OCR, "disk_full")
    return os.getpid()


def main(home: Path, port: int, children: int, tasks: int) -> None:
    with serving_worker_metrics(port, home=home, has_children=True):
        worker_metrics()
        pool = Pool(children, maxtasksperchild=TASKS_A_CHILD)
        processes = set(pool.map(count, range(tasks), chunksize=1))
        seen = scrape(port)
        pool.close()
        pool.join()
        told = {
            "processes": len(processes),
            "files": len(list(home.rglob("*.db"))),
            "pages": seen.value("doctriage_worker_pages_read_total", "ocr", "ocr"),
            "put_off": seen.value("doctriage_worker_work_put_off_total", "disk_full", "ocr"),
            "stages": seen.value("doctriage_worker_stage_seconds_count", "ocr"),
            "memory": sorted(labels[0] for labels in seen.values("doctriage_worker_resident_memory_bytes")),
            "bytes": min(seen.values("doctriage_worker_resident_memory_bytes").values()),
            "told": seen.families["doctriage_worker_pages_read"].documentation,
        }
    print(json.dumps({**told, "files_after": len(list(home.rglob("*.db")))}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
