"""Importing the client is cheap."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "alembic",
    "celery",
    "cv2",
    "fastapi",
    "numpy",
    "onnxruntime",
    "openai",
    "paddleocr",
    "PIL",
    "pypdfium2",
    "pytesseract",
    "sqlalchemy",
)


def test_importing_the_client_loads_no_database_and_no_engine() -> None:
    script = f"import sys, workers.client; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
