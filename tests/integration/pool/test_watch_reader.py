"""A watch's batches with the pool, whatever becomes of the folder that their outputs go to."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from models.errors import OutputNotWritable
from pipeline.settings import load_settings
from pipeline.store import open_store
from tests.fakes.pages import tiff_of_widths
from tests.server_parts import Broker
from workers.cluster.ingesting import PoolRequest
from workers.cluster.watch_reader import PoolReader
from workers.cluster.wishes import Wishes
from workers.events import IngestRequest
from workers.sources import find_sources


def test_a_batch_whose_outputs_cannot_be_written_is_submitted_once(
    tmp_path: Path, redis_broker: Broker, postgres_url: SecretStr
) -> None:
    """However often the watch comes back to it; a changed file makes another batch."""
    settings = load_settings(
        {"home": tmp_path / "home", "database_url": postgres_url, "pool": {"broker_url": redis_broker.url}}
    )
    store = open_store(settings.home, settings.database_url)
    watched, out = tmp_path / "in", tmp_path / "out"
    tiff_of_widths(watched / "a.tif", [400])
    out.touch()
    asked = PoolRequest(request=IngestRequest(paths=(watched,), out_dir=out), wishes=Wishes())
    reader = PoolReader(asked=asked, settings=settings, on_event=lambda _: None)

    def submissions_after_a_try() -> int:
        with pytest.raises(OutputNotWritable):
            reader.read(tuple(find_sources((watched,), left_out=())), tmp_path)
        return len(store.pool.submissions(limit=9))

    assert [submissions_after_a_try() for _ in range(3)] == [1, 1, 1]
    tiff_of_widths(watched / "a.tif", [400, 401])
    assert submissions_after_a_try() == 2
    store.close()
