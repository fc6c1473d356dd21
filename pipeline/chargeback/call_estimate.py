"""What it takes to send a page to the VLM, said before it is sent. ``docs/chargeback.md`` has the rules.

The visual tokens are exact: they are those of the very image that a first call sends. The text around it and the
answer are estimated, each with the least and the most that it may come to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from models.page import Route
from pipeline.answers.prompt import estimated_prompt_tokens
from pipeline.answers.token_estimates import estimated_answer_tokens
from pipeline.chargeback.amounts import half_even
from pipeline.escalated_page import (
    LEAST_ANSWER_TOKENS,
    Json,
    answer_room_tokens,
    strips_of,
    tier_of,
    visual_tokens_of,
)
from pipeline.planning.serving_plan import ServingPlan

MOST_CHARACTERS_PER_TOKEN: Final = 6
"""Of an answer, and of the instructions: no text of any script has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number that is not known yet: about so much, at least ``low`` and at most ``high``."""

    low: int
    about: int
    high: int

    @classmethod
    def exactly(cls, number: int) -> Estimate:
        return cls(low=number, about=number, high=number)

    @property
    def is_exact(self) -> bool:
        return self.low == self.high

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(low=self.low + other.low, about=self.about + other.about, high=self.high + other.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEstimate:
    """A page's first call: ``text_tokens`` are those of the prompt beside the images. ``again_prompt_tokens`` and
    ``again_completion_tokens`` are the most that a second call may take, with a larger image and more room."""

    visual_tokens: int
    text_tokens: Estimate
    completion_tokens: Estimate
    again_prompt_tokens: int
    again_completion_tokens: int

    @property
    def prompt_tokens(self) -> Estimate:
        return Estimate.exactly(self.visual_tokens) + self.text_tokens


def call_estimate(page: Json, plan: ServingPlan) -> CallEstimate | None:
    """Of a page that was read on the CPU, from its JSON. None where there is no call: for a blank page, and for one so
    long and narrow that it takes more images than the plan allows a prompt."""
    tier = tier_of(page, plan)
    strips = strips_of(page, plan, tier)
    if page["route"] == Route.BLANK or len(strips) > plan.max_images_per_prompt:
        return None
    larger = plan.tiers[min(plan.tiers.index(tier) + 1, len(plan.tiers) - 1)]
    return _estimate(
        visual_tokens=visual_tokens_of(page, plan, tier),
        larger_visual_tokens=visual_tokens_of(page, plan, larger),
        text_tokens=_text_tokens(len(strips), plan),
        character_count=len(page["text"]),
        room_tokens=answer_room_tokens(page, plan),
        plan=plan,
    )


def largest_call(plan: ServingPlan) -> CallEstimate:
    """Of a page of which nothing is known: one image of the largest size, with an answer that fills the room of a
    short page."""
    visual_tokens = plan.tiers[-1].visual_tokens
    room_tokens = min(LEAST_ANSWER_TOKENS, plan.max_output_tokens)
    return _estimate(
        visual_tokens=visual_tokens,
        larger_visual_tokens=visual_tokens,
        text_tokens=_text_tokens(1, plan),
        character_count=0,
        room_tokens=room_tokens,
        plan=plan,
    )


def mean_call(calls: Sequence[CallEstimate]) -> CallEstimate:
    """Each number the mean of those of the calls, of which there is at least one."""

    def mean(number_of: Callable[[CallEstimate], int]) -> int:
        return half_even(sum(map(number_of, calls)), len(calls))

    def mean_estimate(estimate_of: Callable[[CallEstimate], Estimate]) -> Estimate:
        return Estimate(
            low=mean(lambda call: estimate_of(call).low),
            about=mean(lambda call: estimate_of(call).about),
            high=mean(lambda call: estimate_of(call).high),
        )

    return CallEstimate(
        visual_tokens=mean(lambda call: call.visual_tokens),
        text_tokens=mean_estimate(lambda call: call.text_tokens),
        completion_tokens=mean_estimate(lambda call: call.completion_tokens),
        again_prompt_tokens=mean(lambda call: call.again_prompt_tokens),
        again_completion_tokens=mean(lambda call: call.again_completion_tokens),
    )


def _estimate(
    *,
    visual_tokens: int,
    larger_visual_tokens: int,
    text_tokens: Estimate,
    character_count: int,
    room_tokens: int,
    plan: ServingPlan,
) -> CallEstimate:
    return CallEstimate(
        visual_tokens=visual_tokens,
        text_tokens=text_tokens,
        completion_tokens=_completion_tokens(character_count, room_tokens),
        again_prompt_tokens=larger_visual_tokens + text_tokens.high,
        again_completion_tokens=min(2 * room_tokens, plan.max_output_tokens),
    )


def _text_tokens(image_count: int, plan: ServingPlan) -> Estimate:
    """All of the prompt that is no image: at most what the plan sets aside."""
    about = min(estimated_prompt_tokens(image_count), plan.text_tokens)
    return Estimate(low=about * 4 // MOST_CHARACTERS_PER_TOKEN, about=about, high=plan.text_tokens)


def _completion_tokens(character_count: int, room_tokens: int) -> Estimate:
    """Of an answer that says what the CPU read. No answer is longer than the room that the call gives it."""
    low = -(-character_count // MOST_CHARACTERS_PER_TOKEN)
    about = estimated_answer_tokens(character_count)
    return Estimate(low=min(low, room_tokens), about=min(about, room_tokens), high=room_tokens)
