"""What vLLM says of its load at /metrics. Other services have no such page; then nothing is known."""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import anyio
import httpx2
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from pipeline.chargeback.reconciliation import TokenCounters

RUNNING: Final = "vllm:num_requests_running"
WAITING: Final = "vllm:num_requests_waiting"
KV_CACHE_USAGE: Final = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
"""The second is the older name."""

PROMPT_TOKENS: Final = "vllm:prompt_tokens"
COMPLETION_TOKENS: Final = "vllm:generation_tokens"
"""Counters: ``…_total`` since the service started, which it did at ``…_created`` (Unix seconds) where it says so."""

NO_ANSWER = (httpx2.HTTPError, httpx2.InvalidURL, ssl.SSLError, anyio.EndOfStream)
"""httpx2 lets some failures of TLS through as they are."""


MOST_BYTES: Final = 4 * 2**20
"""vLLM's page has some hundred thousand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmMetrics:
    """All engines of a service together: requests that are worked on and that wait, and how full the fullest KV
    cache is (0 to 1), None where it is not said."""

    running: int
    waiting: int
    kv_cache_usage: float | None


def metrics_from(text: str) -> VllmMetrics | None:
    """From the Prometheus text format; None where it is not vLLM that speaks."""
    values: dict[str, list[float]] = {}
    try:
        for sample in _samples(text, (RUNNING, WAITING, *KV_CACHE_USAGE)):
            values.setdefault(sample.name, []).append(float(sample.value))
        return _summary(values)
    except (ValueError, KeyError, OverflowError):
        return None


def token_counters_from(text: str) -> Mapping[str, TokenCounters] | None:
    """What all engines together have counted, by model; None where it is not vLLM that speaks."""
    totals: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    created_s: dict[str, float] = {}
    names = tuple(
        f"{name}_{part}" for name in (PROMPT_TOKENS, COMPLETION_TOKENS) for part in ("total", "created")
    )
    try:
        for sample in _samples(text, names):
            model, value = sample.labels["model_name"], float(sample.value)
            if sample.name.endswith("_created"):
                created_s[model] = max(value, created_s.get(model, value))
            else:
                totals[model][sample.name.removesuffix("_total")] += value
        counters = {
            model: TokenCounters(
                prompt_tokens=int(counted[PROMPT_TOKENS]),
                completion_tokens=int(counted[COMPLETION_TOKENS]),
                created_s=created_s.get(model),
            )
            for model, counted in totals.items()
        }
    except (ValueError, KeyError, OverflowError):
        return None
    return counters or None


def metrics_url(base_url: str) -> str:
    """vLLM serves its metrics beside ``/v1``, not under it."""
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/").removesuffix("/v1")
    return urlunsplit((parts.scheme, parts.netloc, f"{path}/metrics", "", ""))


class VllmMetricsReader:
    """Reads the metrics of the service at ``base_url`` (the address up to ``/v1``). The page needs no key, so
    none is sent."""

    def __init__(self, base_url: str, *, timeout_s: float = 2.0) -> None:
        self._url = metrics_url(base_url)
        self._timeout_s = timeout_s
        loopback = ("all://127.0.0.1", "all://localhost", "all://[::1]")
        self._client = httpx2.AsyncClient(
            timeout=timeout_s, mounts=dict.fromkeys(loopback), headers={"Accept-Encoding": "identity"}
        )

    async def read(self) -> VllmMetrics | None:
        """None where there is no such page, or no answer in time."""
        text = await self._text()
        return None if text is None else metrics_from(text)

    async def read_counters(self) -> Mapping[str, TokenCounters] | None:
        """By model; None as in ``read``."""
        text = await self._text()
        return None if text is None else token_counters_from(text)

    async def _text(self) -> str | None:
        try:
            async with asyncio.timeout(self._timeout_s), self._client.stream("GET", self._url) as response:
                if not response.is_success:
                    return None
                body = bytearray()
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) > MOST_BYTES:
                        return None
        except (*NO_ANSWER, TimeoutError):
            return None
        return body.decode("utf-8", "replace")

    async def close(self) -> None:
        await self._client.aclose()


def _samples(text: str, names: tuple[str, ...]) -> Iterator[Sample]:
    lines = (line for line in text.splitlines() if line.startswith(names))
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        yield from family.samples


def _summary(values: dict[str, list[float]]) -> VllmMetrics | None:
    if WAITING not in values:
        return None
    usages = [usage for name in KV_CACHE_USAGE for usage in values.get(name, ())]
    return VllmMetrics(
        running=_total(values.get(RUNNING, ())),
        waiting=_total(values[WAITING]),
        kv_cache_usage=max(usages, default=None),
    )


def _total(values: Iterable[float]) -> int:
    return int(sum(values))
