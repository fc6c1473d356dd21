"""Readings of a VLM service's counters, kept in files, and the ledger compared with two of them."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from models.errors import SettingsError, VlmBadResponse
from pipeline.chargeback.reconciliation import (
    CounterReading,
    Reconciliation,
    TokenCounters,
    reconcile,
)
from pipeline.named_files import named_file
from pipeline.settings import VlmSettings
from pipeline.store.statements import StatementStore
from workers.vllm_metrics import VllmMetricsReader, metrics_url

TIMEOUT_S: Final = 20


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _Counters(_File):
    prompt_tokens: int = Field(ge=0)
    generation_tokens: int = Field(ge=0)
    created_s: float | None = None


class _Reading(_File):
    schema_version: int = Field(ge=1, le=1)
    read_at: datetime
    read_at_s: float
    url: str
    models: dict[str, _Counters]


def read_counters(settings: VlmSettings) -> CounterReading:
    """What the service has counted until now. Raises SettingsError without an address, ``VlmBadResponse`` where no
    vLLM answers with its counters."""
    if settings.url is None:
        raise SettingsError("no VLM is configured; give --vlm-url or DOCTRIAGE_VLM__URL")
    place = _without_password(metrics_url(settings.url))
    counters = asyncio.run(_counters(settings.url))
    if counters is None:
        raise VlmBadResponse(
            f"{place}: no answer with vLLM's token counters; name the address of one vLLM server, up to /v1"
        )
    return CounterReading(read_at_s=time.time(), url=place, models=counters)


def save_reading(reading: CounterReading, path: Path) -> None:
    file = _Reading(
        schema_version=1,
        read_at=datetime.fromtimestamp(reading.read_at_s, UTC),
        read_at_s=reading.read_at_s,
        url=reading.url,
        models={
            name: _Counters(
                prompt_tokens=one.prompt_tokens,
                generation_tokens=one.completion_tokens,
                created_s=one.created_s,
            )
            for name, one in reading.models.items()
        },
    )
    with named_file(path) as stream:
        stream.write(file.model_dump_json(indent=2) + "\n")


def load_reading(path: Path) -> CounterReading:
    """Raises SettingsError for a file that holds none."""
    try:
        file = _Reading.model_validate(json.loads(path.read_bytes()))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}; name a file that --save wrote") from error
    except (ValueError, ValidationError) as error:
        raise SettingsError(
            f"{path}: holds no reading; write one with `doctriage chargeback reconcile --save FILE`"
        ) from error
    return CounterReading(
        read_at_s=file.read_at_s,
        url=file.url,
        models={
            name: TokenCounters(
                prompt_tokens=one.prompt_tokens,
                completion_tokens=one.generation_tokens,
                created_s=one.created_s,
            )
            for name, one in file.models.items()
        },
    )


def reconcile_ledger(ledger: StatementStore, since: CounterReading, until: CounterReading) -> Reconciliation:
    return reconcile(
        since,
        until,
        ledger.booked_tokens(since.read_at_s, until.read_at_s),
        (ledger.calls_under_way(since.read_at_s), ledger.calls_under_way(until.read_at_s)),
    )


async def _counters(url: str) -> dict[str, TokenCounters] | None:
    reader = VllmMetricsReader(url, timeout_s=TIMEOUT_S)
    try:
        counters = await reader.read_counters()
        return None if counters is None else dict(counters)
    finally:
        await reader.close()


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
