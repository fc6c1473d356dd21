"""The fake VLM service keeps its books as vLLM does, so that tests may trust them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from models.errors import VlmError, VlmRequestRefused
from models.transcription import TokenUsage
from pipeline.visual_tokens import VisualTokenBudget, model_family
from tests.fakes.vlm_answers import text_tokens
from tests.fakes.vlm_script import numbered
from tests.fakes.vlm_server import TEMPLATE_TOKENS, FakeVlm, Fault, Script
from tests.integration.vlm_calls import PROMPT, fitted_image, request_for, transcribed


@pytest.mark.parametrize(
    ("family", "bounds", "billed"),
    [
        (
            "qwen2.5-vl",
            (200_704, 1_003_520),
            {(560, 560): 400, (595, 842): 630, (1240, 1754): 1260, (14, 14): 256},
        ),
        ("qwen2.5-vl", (3_136, 100_352), {(70, 70): 4, (98, 126): 16, (1240, 1754): 117, (6000, 31): 157}),
        (
            "qwen3-vl",
            (262_144, 1_310_720),
            {(560, 560): 324, (300, 200): 280, (5000, 200): 936, (20, 4000): 454},
        ),
    ],
)
def test_the_fake_bills_what_vllm_billed(
    family: str, bounds: tuple[int, int], billed: dict[tuple[int, int], int]
) -> None:
    """Images, by size, that a real vLLM was seen to bill with so many visual tokens."""
    budget = VisualTokenBudget(family=model_family(family), min_pixels=bounds[0], max_pixels=bounds[1])
    with FakeVlm(budget=budget) as fake:
        for size, visual_tokens in billed.items():
            usage = transcribed(fake, request_for(fitted_image(*size))).usage
            assert usage is not None
            text = TEMPLATE_TOKENS + text_tokens(PROMPT.system) + text_tokens("Copy 1 page(s).")
            assert usage.prompt_tokens == text + visual_tokens + 2
        with pytest.raises(VlmRequestRefused):
            transcribed(fake, request_for(fitted_image(20, 4001)))


def test_the_fake_keeps_count_of_what_it_worked_for_and_of_what_it_told() -> None:
    faults = numbered({1: Fault.RATE_LIMITED, 2: Fault.NO_USAGE, 3: Fault.RESET, 4: Fault.WRONG_BILL})
    with FakeVlm(Script(fault=faults, wrong_bill_tokens=100)) as fake:
        told: list[TokenUsage | None] = []
        for _ in range(5):
            try:
                told.append(transcribed(fake).usage)
            except VlmError:
                told.append(None)
        assert [seen.billed is None for seen in fake.seen] == [True, False, False, False, False]
        assert [seen.reported for seen in fake.seen] == told
        usage = told[4]
        assert usage is not None
        each = usage.prompt_tokens + usage.completion_tokens
        assert fake.billed_tokens == {fake.model_id: 4 * each}
        assert fake.reported_tokens == {fake.model_id: 2 * each + 100}
        assert all(earlier.arrived_s <= later.arrived_s for earlier, later in pairwise(fake.seen))
