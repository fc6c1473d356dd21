"""Admission by what a service really says and does, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from models.errors import VlmError
from pipeline.engines.qwen_vl import QwenVlEngine
from tests.fakes.vlm_script import always
from tests.fakes.vlm_server import FakeVlm, Fault, Script
from tests.integration.vlm_calls import engine_for, fitted_image, request_for, until
from workers.adaptive_limit import AdaptiveLimit
from workers.circuit_breaker import BreakerLimits, BreakerState, CircuitBreaker
from workers.vllm_metrics import VllmMetrics, VllmMetricsReader
from workers.vlm_admission import VlmAdmission, watch


@contextlib.asynccontextmanager
async def under_way(*coroutines: object) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]  # type: ignore[call-overload]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def admitted(engine: QwenVlEngine, admission: VlmAdmission, wait_s: float | None = None) -> str:
    try:
        async with admission.slot(wait_s=wait_s):
            await engine.transcribe(request_for(fitted_image(560, 560)))
    except VlmError as error:
        return error.code
    return "answered"


def test_the_load_of_a_service_is_read() -> None:
    async def read(fake: FakeVlm) -> VllmMetrics | None:
        engine, reader = engine_for(fake), VllmMetricsReader(fake.base_url)
        calls = [engine.transcribe(request_for(fitted_image(560, 560))) for _ in range(5)]
        async with under_way(*calls):
            await until(lambda: len(fake.seen) == 5)
            metrics = await reader.read()
        await engine.close()
        await reader.close()
        return metrics

    with FakeVlm(Script(fault=always(Fault.HANG), concurrency=2)) as fake:
        fake.kv_cache_usage = 0.75
        assert asyncio.run(read(fake)) == VllmMetrics(running=2, waiting=3, kv_cache_usage=0.75)


def test_of_a_service_without_metrics_nothing_is_known() -> None:
    async def read(base_url: str) -> VllmMetrics | None:
        reader = VllmMetricsReader(base_url)
        metrics = await reader.read()
        await reader.close()
        return metrics

    with FakeVlm() as fake:
        assert asyncio.run(read(fake.base_url)) is not None
        assert asyncio.run(read(fake.base_url.replace("/v1", "/elsewhere/v1"))) is None
        fake.go_down()
        assert asyncio.run(read(fake.base_url)) is None


def test_calls_beyond_what_the_service_works_on_are_taken_back() -> None:
    async def limit_found(fake: FakeVlm) -> int:
        engine, reader = engine_for(fake), VllmMetricsReader(fake.base_url)
        admission = VlmAdmission(AdaptiveLimit(8), CircuitBreaker())
        calls = [admitted(engine, admission) for _ in range(8)]
        async with under_way(*calls):
            await until(lambda: len(fake.seen) == 8)
            async with under_way(watch(reader, admission, interval_s=0.02)):
                await until(lambda: admission.limit < 8)
                limit = admission.limit
        await engine.close()
        await reader.close()
        return limit

    with FakeVlm(Script(fault=always(Fault.HANG), concurrency=3)) as fake:
        assert asyncio.run(limit_found(fake)) == 3


def test_the_service_never_sees_more_calls_than_the_cap() -> None:
    async def all_pages(fake: FakeVlm) -> list[str]:
        engine = engine_for(fake)
        admission = VlmAdmission(AdaptiveLimit(3), CircuitBreaker())
        ends = await asyncio.gather(*(admitted(engine, admission) for _ in range(40)))
        await engine.close()
        return ends

    with FakeVlm(Script(concurrency=16, seconds_a_request=0.01)) as fake:
        assert asyncio.run(all_pages(fake)) == ["answered"] * 40
        assert fake.peak_in_flight <= 3
        assert len(fake.seen) == 40


def test_a_service_that_is_down_is_left_alone_and_found_again() -> None:
    async def outage(fake: FakeVlm) -> tuple[list[str], list[str]]:
        engine = engine_for(fake)
        breaker = CircuitBreaker(BreakerLimits(faults_to_open=2, first_open_s=4.0))
        admission = VlmAdmission(AdaptiveLimit(2), breaker)
        fake.go_down()
        first = [await admitted(engine, admission) for _ in range(2)]
        assert breaker.state is not BreakerState.CLOSED
        waiting = asyncio.gather(*(admitted(engine, admission) for _ in range(8)))
        await asyncio.sleep(0.1)
        fake.come_up()
        ends = await waiting
        await engine.close()
        return first, ends

    with FakeVlm() as fake:
        assert asyncio.run(outage(fake)) == (["vlm_unreachable"] * 2, ["answered"] * 8)
        assert len(fake.seen) == 8
