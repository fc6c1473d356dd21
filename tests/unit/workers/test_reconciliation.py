"""Readings of a service's counters, kept and found again."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from models.errors import SettingsError, VlmBadResponse
from pipeline.chargeback.reconciliation import CounterReading, TokenCounters
from pipeline.settings import VlmSettings
from workers.reconciliation import load_reading, read_counters, save_reading

READING = CounterReading(
    read_at_s=1_796_000_000.25,
    url="http://gpu:8000/metrics",
    models={
        "qwen": TokenCounters(prompt_tokens=2**53 + 1, completion_tokens=410, created_s=1.5),
        "org/other": TokenCounters(prompt_tokens=0, completion_tokens=0),
    },
)


def test_a_reading_is_found_again_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "monday.json"
    save_reading(READING, path)
    assert load_reading(path) == READING
    told = json.loads(path.read_text(encoding="utf-8"))
    assert told["read_at"] == "2026-11-30T00:53:20.250000Z"
    assert told["models"]["qwen"]["generation_tokens"] == 410


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema_version": 2}', "\xff", '{"a": NaN}'])
def test_what_is_no_reading_is_refused_in_words(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(SettingsError, match="holds no reading; write one with"):
        load_reading(path)


def test_a_reading_of_fewer_than_no_tokens_is_none(tmp_path: Path) -> None:
    path = tmp_path / "monday.json"
    save_reading(READING, path)
    path.write_text(path.read_text().replace("410", "-410"))
    with pytest.raises(SettingsError, match="holds no reading"):
        load_reading(path)


def test_without_an_address_or_an_answer_nothing_is_counted() -> None:
    with pytest.raises(SettingsError, match="--vlm-url"):
        read_counters(VlmSettings())
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(VlmBadResponse, match=rf"^http://127.0.0.1:{port}/metrics: no answer") as refused:
            read_counters(VlmSettings(url=f"http://user:secret@127.0.0.1:{port}/v1"))
    assert "secret" not in str(refused.value)
