"""What is SQLite's own: the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.errors import StoreUnavailable
from pipeline.store import connect_store


def test_a_database_that_is_taken_away_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    store = connect_store(tmp_path / "gone" / "missing")
    with pytest.raises(StoreUnavailable, match="DOCTRIAGE_HOME"):
        store.pages.is_complete(1)
