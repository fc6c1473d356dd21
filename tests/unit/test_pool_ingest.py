"""What ``doctriage ingest --executor celery`` says where it ends before all is sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from models.errors import StoreUnreachable
from pipeline.settings import Settings
from workers.cli.pool_ingest import Chosen, read_with_pool
from workers.events import IngestRequest

NOTHING_CHOSEN = Chosen(
    executor=None,
    jobs=None,
    route=None,
    profile=None,
    languages=None,
    engine=None,
    vlm_url=None,
    vlm_model=None,
    vlm_profile=None,
    plan=None,
    vlm_wait_s=None,
)


@pytest.mark.parametrize("ends_with", [KeyboardInterrupt, StoreUnreachable])
def test_who_is_cut_off_while_sending_is_told_how_to_come_back(
    tmp_path: Path,
    ends_with: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def submit(*_: object, on_opened: Callable[[int], None], **__: object) -> int:
        on_opened(7)
        raise ends_with

    monkeypatch.setattr("workers.cluster.ingesting.submit", submit)
    request = IngestRequest(paths=(tmp_path,), out_dir=tmp_path / "out")
    with pytest.raises(ends_with):
        read_with_pool(request, NOTHING_CHOSEN, Settings(home=tmp_path), priority=None, detach=False)
    said = capsys.readouterr().err
    assert f"`doctriage submissions fetch 7 --out {tmp_path}/out` brings the results" in said
    assert "`doctriage submissions cancel 7` stops it" in said
