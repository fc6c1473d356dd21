"""Whether there is somebody to ask."""

from __future__ import annotations

import sys


def can_be_asked() -> bool:
    """Nobody answers a script."""
    return sys.stdin.isatty() and sys.stdout.isatty()
