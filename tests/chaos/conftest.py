"""How long the storm may last."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--minutes", type=float, default=10.0, help="How long it may take in all.")
    parser.addoption("--seed", type=int, default=1, help="Of the workers that are killed.")
