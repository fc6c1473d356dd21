"""How many tokens the KV cache holds beside a model's weights. Per card; with more cards each has a part of all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from models.errors import PlanImpossible
from pipeline.planning.gpus import GPUS
from pipeline.planning.model_profiles import ModelProfile
from pipeline.planning.plan_wishes import PlanWishes
from pipeline.planning.serving_plan import GPU_MEMORY_UTILIZATION, KvDtype

GIB: Final = 2**30
ACTIVATION_BYTES: Final = 4 * GIB
"""Left free on each card for activations, CUDA graphs and the vision tower at work."""

MOST_GPUS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class KvRoom:
    """Of one card. ``how_room`` and ``how_per_token`` are the arithmetic in words."""

    room_bytes: int
    bytes_per_token: int
    how_room: str
    how_per_token: str

    @property
    def tokens(self) -> int:
        return max(0, self.room_bytes) // self.bytes_per_token


def kv_room(profile: ModelProfile, wishes: PlanWishes, context_tokens: int) -> KvRoom:
    """Raises PlanImpossible where the weights do not fit, cannot be split, or leave too little for one request."""
    if not _splits_evenly(profile, wishes.gpu_count):
        raise PlanImpossible(
            f"{profile.attention_heads or 'its'} attention heads and {profile.kv_heads} KV heads of {profile.name} "
            f"cannot be split over {wishes.gpu_count} cards; use "
            f"{' or '.join(f'--gpus {count}' for count in _even_splits(profile))}"
        )
    room = _room(profile, wishes)
    if room.room_bytes <= 0:
        raise PlanImpossible(
            f"the weights of {profile.name} do not fit {wishes.gpu.name}: {room.how_room} = "
            f"{gib(room.room_bytes)} for the KV cache; use {_advice(profile, wishes, context_tokens)}"
        )
    if room.tokens < context_tokens:
        shorter = f"--context-tokens {room.tokens}, " if room.tokens >= 1_024 else ""
        raise PlanImpossible(
            f"the KV cache of {wishes.gpu.name} holds less than one request of {context_tokens:,} tokens: "
            f"{room.how_room} = {gib(room.room_bytes)}, / {room.bytes_per_token:,} bytes a token = "
            f"{room.tokens:,} tokens; use {shorter}{_advice(profile, wishes, context_tokens)}"
        )
    return room


def gib(count_bytes: float) -> str:
    return f"{count_bytes / GIB:.1f} GiB"


def _room(profile: ModelProfile, wishes: PlanWishes) -> KvRoom:
    cards, usable = wishes.gpu_count, wishes.gpu.usable_bytes
    heads = max(1, profile.kv_heads // cards)
    element_bytes = wishes.kv_dtype.element_bytes
    share = f" / {cards} cards" if cards > 1 else ""
    return KvRoom(
        room_bytes=int(GPU_MEMORY_UTILIZATION * usable - profile.resident_bytes / cards - ACTIVATION_BYTES),
        bytes_per_token=2 * profile.layers * heads * profile.head_dim * element_bytes,
        how_room=(
            f"{GPU_MEMORY_UTILIZATION:.2f} × {gib(usable)} − {gib(profile.resident_bytes)} of weights{share} − "
            f"{gib(ACTIVATION_BYTES)} for activations"
        ),
        how_per_token=(
            f"2 × {profile.layers} layers × {heads} KV heads{' a card' if share else ''} × {profile.head_dim} × "
            f"{element_bytes} {'byte' if element_bytes == 1 else 'bytes'} ({wishes.kv_dtype})"
        ),
    )


def _splits_evenly(profile: ModelProfile, cards: int) -> bool:
    """vLLM's tensor parallelism splits attention heads evenly, and splits or repeats KV heads."""
    heads = profile.attention_heads
    even_kv = profile.kv_heads % cards == 0 or cards % profile.kv_heads == 0
    return even_kv and (heads is None or heads % cards == 0)


def _even_splits(profile: ModelProfile) -> Iterator[int]:
    return (count for count in range(1, MOST_GPUS + 1) if _splits_evenly(profile, count))


def _advice(profile: ModelProfile, wishes: PlanWishes, tokens: int) -> str:
    """What would make room for so many tokens: a narrower cache, more cards, a larger card, or another model."""
    narrower = [replace(wishes, kv_dtype=KvDtype.FP8)] if wishes.kv_dtype is KvDtype.AUTO else []
    counts = [count for count in _even_splits(profile) if count > wishes.gpu_count]
    options = [
        *("--kv-dtype fp8" for other in narrower if _room(profile, other).tokens >= tokens),
        *(f"--gpus {count}" for count in counts if _fits(profile, replace(wishes, gpu_count=count), tokens)),
    ][:2]
    larger = [card for card in GPUS.values() if _fits(profile, replace(wishes, gpu=card), tokens)]
    if larger:
        smallest = min(larger, key=lambda card: card.usable_bytes)
        options.append(f"--gpu {smallest.name}")
    return " or ".join(options) or "a smaller model"


def _fits(profile: ModelProfile, wishes: PlanWishes, tokens: int) -> bool:
    return _room(profile, wishes).tokens >= tokens
