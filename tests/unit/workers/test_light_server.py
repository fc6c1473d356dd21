"""The server's own process loads nothing that reads pages, and no Celery."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "celery",
    "kombu",
    "cv2",
    "onnxruntime",
    "paddleocr",
    "pypdfium2",
    "pytesseract",
    "openai",
    "sklearn",
)


def test_the_server_loads_no_engine_and_no_celery() -> None:
    code = f"import sys, workers.api.server; print(sorted(set({HEAVY!r}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
