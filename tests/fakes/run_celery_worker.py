"""``python -m tests.fakes.run_celery_worker FOLDER QUEUES CONCURRENCY``: a worker whose tasks leave traces in FOLDER.

A task writes ``begun.PID.N``, waits for as long as there is a file ``hold``, and writes ``ended.PID.N``.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from models.pool import Queue
from pipeline.settings import Settings, load_settings
from workers.celery_app import celery_app, task_name
from workers.cluster.worker import serve
from workers.cluster.worker_plan import plan_worker
from workers.logs import set_up_service_logs

numbers = itertools.count()


def main(folder: Path, queues: str, concurrency: int) -> int:
    settings: Settings = load_settings({"log_level": "debug", "vlm": {"url": "http://127.0.0.1:1/v1"}})
    set_up_service_logs(settings)
    app = celery_app(settings)
    for queue in Queue:
        app.task(leaves_traces(folder), name=task_name(queue))
    chosen = [Queue(name) for name in queues.split(",")]
    return serve(app, plan_worker(settings, chosen, concurrency=concurrency), log_level="debug")


def leaves_traces(folder: Path) -> Callable[[], None]:
    def work() -> None:
        trace = f"{os.getpid()}.{next(numbers)}"
        (folder / f"begun.{trace}").touch()
        while (folder / "hold").exists():
            time.sleep(0.02)
        (folder / f"ended.{trace}").touch()

    return work


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
