"""What vLLM does with the product's requests: the behaviour that the client and the fake service rely on."""

from __future__ import annotations

import asyncio
import re

import httpx2
import pytest

from models.errors import VlmRequestRefused, VlmUnauthorised
from models.transcription import TokenUsage
from pipeline.engines.qwen_vl import Prompt
from tests.vllm.calls import PROMPT, request_with, sized_image, transcribed
from tests.vllm.server import KEY, VllmServer
from workers.vllm_metrics import VllmMetrics, VllmMetricsReader

ANSWER = """\
---
language: de
rotation: 0
blank: false
---
# Rechnung Nr. 4711

<table><tr><th>Menge</th><th>Preis</th></tr><tr><td>3</td><td>12,50 €</td></tr></table>

<handwriting>erhalten, Ü. Groß</handwriting> <stamp>BEZAHLT</stamp> <signature/>
"""
ANSWER_TOKENS = 1_024
CACHE_BLOCK_TOKENS = 128
"""Of vLLM's KV cache on a processor; only whole blocks are found again."""

IMAGE_AT_A_URL = {"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/page.png"}}


def usage_of(server: VllmServer, shade: int) -> TokenUsage:
    usage = transcribed(server, request_with(sized_image(560, 784, server, shade=shade))).usage
    assert usage is not None
    return usage


def test_a_choice_forces_an_answer_word_for_word(server: VllmServer) -> None:
    request = request_with(sized_image(560, 784, server), max_tokens=ANSWER_TOKENS)
    reply = transcribed(server, request, structured_outputs={"choice": [ANSWER]})
    assert (reply.text, reply.finish_reason) == (ANSWER, "stop")
    assert reply.usage is not None
    assert 0 < reply.usage.completion_tokens < ANSWER_TOKENS


def test_the_plan_bars_white_space_between_the_parts_of_json(server: VllmServer) -> None:
    schema = {
        "type": "object",
        "properties": {"blank": {"type": "boolean"}, "rotation": {"enum": [0, 90, 180, 270]}},
        "required": ["blank", "rotation"],
        "additionalProperties": False,
    }
    reply = transcribed(server, request_with(max_tokens=ANSWER_TOKENS), structured_outputs={"json": schema})
    assert re.fullmatch(r'\{"blank": ?(true|false), ?"rotation": ?(0|90|180|270)\}', reply.text)


def test_an_answer_that_is_too_long_is_cut_and_says_so(server: VllmServer) -> None:
    reply = transcribed(server, request_with(max_tokens=7), ignore_eos=True)
    assert reply.finish_reason == "length"
    assert reply.usage is not None
    assert reply.usage.completion_tokens == 7


def test_more_images_than_the_plan_allows_are_refused(server: VllmServer) -> None:
    most = server.plan.max_images_per_prompt
    images = [sized_image(280, 280, server, shade=shade) for shade in range(most + 1)]
    with pytest.raises(VlmRequestRefused, match=rf"At most {most} image\(s\).*send fewer images"):
        transcribed(server, request_with(*images))


def test_a_prompt_beyond_the_context_is_refused(server: VllmServer) -> None:
    endless = Prompt(system="a word " * server.plan.context_tokens, user=PROMPT.user)
    with pytest.raises(VlmRequestRefused, match="smaller token budget"):
        transcribed(server, request_with(), prompt=endless)


def test_room_for_an_answer_beyond_the_context_is_cut_and_not_refused(server: VllmServer) -> None:
    request = request_with(max_tokens=server.plan.context_tokens)
    reply = transcribed(server, request, structured_outputs={"choice": [ANSWER]})
    assert (reply.text, reply.finish_reason) == (ANSWER, "stop")


def test_only_the_key_opens_the_service(server: VllmServer) -> None:
    with pytest.raises(VlmUnauthorised, match="DOCTRIAGE_VLM__API_KEY"):
        transcribed(server, request_with(), key="sk-of-somebody-else")
    with httpx2.Client(base_url=server.origin, trust_env=False) as client:
        assert client.get("/v1/models").status_code == 401
        assert client.get("/v1/models", headers={"Authorization": f"Bearer {KEY}"}).status_code == 200
        assert client.get("/health").status_code == 200
        assert client.get("/metrics").status_code == 200


def test_the_model_goes_by_the_name_of_the_plan(server: VllmServer) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    with httpx2.Client(base_url=server.base_url, trust_env=False, headers=headers) as client:
        models = client.get("/models").json()["data"]
        unknown = client.post("/chat/completions", json={"model": "another", "messages": []})
    assert [model["id"] for model in models] == [server.plan.model_id]
    assert models[0]["max_model_len"] == server.plan.context_tokens
    assert unknown.status_code == 404


def test_an_image_at_an_address_is_not_fetched(server: VllmServer) -> None:
    body = {"model": server.plan.model_id, "messages": [{"role": "user", "content": [IMAGE_AT_A_URL]}]}
    headers = {"Authorization": f"Bearer {KEY}"}
    with httpx2.Client(base_url=server.base_url, trust_env=False, headers=headers) as client:
        answer = client.post("/chat/completions", json=body)
    assert answer.status_code == 400
    assert "media.invalid" in answer.text


def test_pages_share_the_instructions_and_a_page_seen_before_is_cached(server: VllmServer) -> None:
    first, other, again = (usage_of(server, shade) for shade in (11, 12, 11))
    assert {usage.prompt_tokens for usage in (first, other, again)} == {first.prompt_tokens}
    image_tokens = sized_image(560, 784, server).visual_tokens
    assert other.cached_tokens is not None
    assert again.cached_tokens is not None
    assert CACHE_BLOCK_TOKENS <= other.cached_tokens <= first.prompt_tokens - image_tokens
    assert again.cached_tokens >= other.cached_tokens + image_tokens - CACHE_BLOCK_TOKENS


def test_the_metrics_have_the_names_that_admission_reads(server: VllmServer) -> None:
    async def read() -> VllmMetrics | None:
        reader = VllmMetricsReader(server.base_url, timeout_s=20)
        try:
            return await reader.read()
        finally:
            await reader.close()

    metrics = asyncio.run(read())
    assert metrics is not None
    assert (metrics.running, metrics.waiting, metrics.kv_cache_usage) == (0, 0, 0.0)
    text = httpx2.get(f"{server.origin}/metrics", trust_env=False).text
    assert "vllm:kv_cache_usage_perc{" in text
    assert "vllm:num_requests_waiting{" in text
