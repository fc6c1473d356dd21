"""From a model, a card and wishes to a serving plan, every figure reckoned in the open. Pure arithmetic.

``docs/budgets.md`` has the formulas with their sources. ``kv_room`` and ``page_ceiling`` do the two main ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pipeline.fit import Tier
from pipeline.planning.kv_room import KvRoom, gib, kv_room
from pipeline.planning.model_profiles import ModelProfile, WeightType
from pipeline.planning.page_ceiling import PageCeiling, page_ceilings
from pipeline.planning.plan_wishes import IMAGE_MARK_TOKENS, PlanWishes, PromptShape, prompt_shape
from pipeline.planning.serving_plan import PlanLine, ServingPlan
from pipeline.visual_tokens import ModelFamily

TIER_TOKENS: Final = {"small": 640, "medium": 1_024, "large": 1_536, "extra_large": 2_240}
"""Fixed, so that the server sees few image sizes. Those under the ceiling are kept."""

CEILING_TIER: Final = "full"
MOST_SEQUENCES: Final = 256
"""Planned for unasked; more can be asked for."""

LEAST_BATCHED_TOKENS: Final = 8_192


def make_plan(profile: ModelProfile, wishes: PlanWishes) -> ServingPlan:
    """Raises PlanImpossible with the arithmetic, and what to change, where the wishes do not fit together."""
    shape = prompt_shape(profile, wishes)
    room = kv_room(profile, wishes, shape.context_tokens)
    ceilings = page_ceilings(profile, wishes, shape, room.tokens)
    visual_tokens = min(ceiling.visual_tokens for ceiling in ceilings)
    concurrency = wishes.concurrency or min(
        MOST_SEQUENCES, room.tokens // shape.longest_tokens(visual_tokens)
    )
    plan = ServingPlan(
        profile=profile.name,
        model_id=profile.name,
        checkpoint=wishes.checkpoint or profile.hub_name,
        family=profile.family,
        sampling=profile.sampling,
        thinks=profile.thinks,
        chat_template_kwargs=profile.chat_template_kwargs,
        reasoning_parser=profile.reasoning_parser,
        gpu=wishes.gpu.name,
        gpu_count=wishes.gpu_count,
        weight_bytes=profile.resident_bytes,
        kv_dtype=wishes.kv_dtype,
        kv_bytes_per_token=room.bytes_per_token,
        kv_tokens=room.tokens,
        context_tokens=shape.context_tokens,
        max_output_tokens=shape.output_tokens,
        text_tokens=shape.text_tokens,
        max_images_per_prompt=shape.page_count,
        min_pixels=profile.family.processor_min_pixels,
        max_pixels=visual_tokens * profile.family.pixels_per_token,
        tiers=tiers(profile.family, visual_tokens),
        concurrency=concurrency,
        max_queued_requests=2 * concurrency,
        max_batched_tokens=max(LEAST_BATCHED_TOKENS, visual_tokens, concurrency),
        prefill_tokens_per_s=wishes.prefill_tokens_per_s,
        ttft_s=_ttft_s(shape, visual_tokens, wishes.prefill_tokens_per_s),
    )
    return plan.model_copy(update={"lines": tuple(_lines(profile, wishes, shape, room, ceilings, plan))})


def prefill_s(
    *, text_tokens: int, image_count: int, visual_tokens: int, prefill_tokens_per_s: float
) -> float:
    """Seconds to the first token of an answer on an idle server, which reads the whole prompt first."""
    return (text_tokens + image_count * visual_tokens) / prefill_tokens_per_s


def tiers(family: ModelFamily, ceiling_tokens: int) -> tuple[Tier, ...]:
    """The fixed budgets below the ceiling, and the ceiling, rising."""
    budgets = {name: tokens for name, tokens in TIER_TOKENS.items() if tokens < ceiling_tokens}
    return tuple(
        Tier(name=name, visual_tokens=tokens, max_pixels=tokens * family.pixels_per_token)
        for name, tokens in (budgets | {CEILING_TIER: ceiling_tokens}).items()
    )


def _ttft_s(shape: PromptShape, visual_tokens: int, prefill_tokens_per_s: float | None) -> float | None:
    if prefill_tokens_per_s is None:
        return None
    return prefill_s(
        text_tokens=shape.text_tokens,
        image_count=shape.page_count,
        visual_tokens=visual_tokens,
        prefill_tokens_per_s=prefill_tokens_per_s,
    )


def _lines(
    profile: ModelProfile,
    wishes: PlanWishes,
    shape: PromptShape,
    room: KvRoom,
    ceilings: tuple[PageCeiling, ...],
    plan: ServingPlan,
) -> Iterator[PlanLine]:
    yield from _memory_lines(profile, wishes, room)
    yield from _image_lines(shape, ceilings, plan)
    yield from _capacity_lines(wishes, shape, room, plan)


def _memory_lines(profile: ModelProfile, wishes: PlanWishes, room: KvRoom) -> Iterator[PlanLine]:
    stated = "as the profile states" if profile.weight_bytes else "estimated from the number"
    yield _line(
        "weights",
        f"{profile.parameters / 1e9:.2f} billion parameters, mostly {profile.weight_type}, {stated}",
        gib(profile.resident_bytes),
    )
    if profile.weight_type is WeightType.FP8 and not wishes.gpu.computes_fp8:
        yield _line("arithmetic", f"{wishes.gpu.name} has none in FP8; the weights stay FP8", "BF16")
    yield _line("memory after weights", room.how_room, gib(room.room_bytes))
    yield _line("KV bytes per token", room.how_per_token, f"{room.bytes_per_token:,}")
    yield _line("KV tokens", f"{gib(room.room_bytes)} / {room.bytes_per_token:,}", f"{room.tokens:,}")


def _image_lines(
    shape: PromptShape, ceilings: tuple[PageCeiling, ...], plan: ServingPlan
) -> Iterator[PlanLine]:
    family, visual_tokens = plan.family, plan.tiers[-1].visual_tokens
    yield _line(
        "text tokens",
        f"{shape.instruction_tokens:,} instructions + {shape.template_tokens} template + "
        f"{IMAGE_MARK_TOKENS} × {shape.page_count} marks of images",
        f"{shape.text_tokens:,}",
    )
    for ceiling in ceilings:
        yield _line(f"page, by {ceiling.reason}", ceiling.how, f"{ceiling.visual_tokens:,}")
    binding = min(ceilings, key=lambda ceiling: ceiling.visual_tokens)
    yield _line("visual tokens a page", f"the least of these: {binding.reason}", f"{visual_tokens:,}")
    yield _line(
        "max_pixels",
        f"{visual_tokens:,} cells of {family.cell_px} × {family.cell_px} px",
        f"{plan.max_pixels:,}",
    )
    yield _line("min_pixels", f"the image processor's own ({family.name})", f"{plan.min_pixels:,}")
    budgets = ", ".join(f"{tier.visual_tokens:,}" for tier in plan.tiers)
    yield _line("tiers", f"budgets of a page: {budgets} visual tokens", f"{len(plan.tiers)}")


def _capacity_lines(
    wishes: PlanWishes, shape: PromptShape, room: KvRoom, plan: ServingPlan
) -> Iterator[PlanLine]:
    visual_tokens = plan.tiers[-1].visual_tokens
    longest = shape.longest_tokens(visual_tokens)
    yield _line("limit-mm-per-prompt", "pages a prompt", f"{shape.page_count}")
    yield _line(
        "longest request",
        f"{shape.text_tokens:,} text + {shape.page_count} × {visual_tokens:,} + {shape.output_tokens:,} output",
        f"{longest:,}",
    )
    yield _line(
        "max-model-len", "asked for" if wishes.context_tokens else "by default", f"{shape.context_tokens:,}"
    )
    fitting = f"{room.tokens:,} / {longest:,}, at most {MOST_SEQUENCES}"
    yield _line("max-num-seqs", "asked for" if wishes.concurrency else fitting, f"{plan.concurrency:,}")
    yield _line(
        "pages in flight", f"{plan.concurrency:,} requests × {shape.page_count}", f"{plan.pages_in_flight:,}"
    )
    yield _line(
        "max-num-batched-tokens",
        f"the most of {LEAST_BATCHED_TOKENS:,}, the largest image and max-num-seqs",
        f"{plan.max_batched_tokens:,}",
    )
    yield _line(
        "max-num-queued-reqs", "as many waiting as running; it counts both", f"{plan.max_queued_requests:,}"
    )
    yield _ttft_line(shape, visual_tokens, plan)


def _ttft_line(shape: PromptShape, visual_tokens: int, plan: ServingPlan) -> PlanLine:
    if plan.ttft_s is None or plan.prefill_tokens_per_s is None:
        return _line("time to first token", "needs a measured --prefill-tokens-per-s", "not known")
    prompt = f"{shape.text_tokens:,} + {shape.page_count} × {visual_tokens:,}"
    how = f"({prompt}) / {plan.prefill_tokens_per_s:,.0f} tokens/s, idle server"
    return _line("time to first token", how, f"{plan.ttft_s:.2f} s")


def _line(what: str, how: str, value: str) -> PlanLine:
    return PlanLine(what=what, how=how, value=value)
