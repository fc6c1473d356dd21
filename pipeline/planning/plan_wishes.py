"""What a VLM service shall do, and the shape of the prompts that follow from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from models.errors import PlanImpossible
from pipeline.planning.gpus import Gpu
from pipeline.planning.model_profiles import ModelProfile
from pipeline.planning.serving_plan import KvDtype

DEFAULT_CONTEXT_TOKENS: Final = 16_384
DEFAULT_OUTPUT_TOKENS: Final = 4_096
"""A dense page with its tables in HTML. A reply that loops is paid up to here."""

DEFAULT_INSTRUCTION_TOKENS: Final = 512
IMAGE_MARK_TOKENS: Final = 2
"""What opens and closes an image in a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWishes:
    """None leaves the choice to the planner.

    ``visual_tokens``: for each page; without it a page gets up to 2,240 and at least 1,024. ``concurrency``: requests
    at a time, each of which must find room in the KV cache at its longest. ``ttft_s``: the most seconds to the first
    token of a full prompt on an idle server, given a measured ``prefill_tokens_per_s``. ``checkpoint``: what vLLM
    loads instead of the profile's hub name. Raises ValueError for figures that are no wish at all.
    """

    gpu: Gpu
    gpu_count: int = 1
    pages_per_prompt: int = 1
    visual_tokens: int | None = None
    concurrency: int | None = None
    ttft_s: float | None = None
    prefill_tokens_per_s: float | None = None
    kv_dtype: KvDtype = KvDtype.AUTO
    max_output_tokens: int = DEFAULT_OUTPUT_TOKENS
    context_tokens: int | None = None
    instruction_tokens: int = DEFAULT_INSTRUCTION_TOKENS
    checkpoint: str | None = None

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name} must be above 0 and finite, not {value}")
        if self.instruction_tokens < 0:
            raise ValueError(f"instruction_tokens must not be below 0, not {self.instruction_tokens}")
        if self.checkpoint is not None and not _is_text(self.checkpoint):
            raise ValueError("checkpoint must be a hub name or a folder, in UTF-8")
        if self.ttft_s is not None and self.prefill_tokens_per_s is None:
            raise ValueError(
                "a time to first token needs prefill_tokens_per_s: the tokens of a long prompt, divided by the "
                "seconds to its first token on an idle server"
            )


def _is_text(word: str) -> bool:
    """Bytes of a command line that are no UTF-8 arrive as surrogates, which no JSON file takes."""
    return bool(word.strip()) and not any("\ud800" <= character <= "\udfff" for character in word)


_POSITIVE: Final = (
    "gpu_count",
    "pages_per_prompt",
    "visual_tokens",
    "concurrency",
    "ttft_s",
    "prefill_tokens_per_s",
    "max_output_tokens",
    "context_tokens",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptShape:
    """A prompt with its answer, but for the size of its images. ``fixed_text_tokens``: instructions and template."""

    page_count: int
    instruction_tokens: int
    template_tokens: int
    output_tokens: int
    context_tokens: int

    @property
    def fixed_text_tokens(self) -> int:
        return self.instruction_tokens + self.template_tokens

    @property
    def text_tokens(self) -> int:
        """All of the prompt that is no image."""
        return self.fixed_text_tokens + IMAGE_MARK_TOKENS * self.page_count

    def longest_tokens(self, visual_tokens: int) -> int:
        """Prompt and answer, with so many tokens a page."""
        return self.text_tokens + self.page_count * visual_tokens + self.output_tokens


def prompt_shape(profile: ModelProfile, wishes: PlanWishes) -> PromptShape:
    """Raises PlanImpossible for a context longer than the model's."""
    context_tokens = wishes.context_tokens or min(DEFAULT_CONTEXT_TOKENS, profile.context_tokens)
    if context_tokens > profile.context_tokens:
        raise PlanImpossible(
            f"a context of {context_tokens:,} tokens is more than the {profile.context_tokens:,} that "
            f"{profile.name} was trained for; use --context-tokens {profile.context_tokens} or less"
        )
    return PromptShape(
        page_count=wishes.pages_per_prompt,
        instruction_tokens=wishes.instruction_tokens,
        template_tokens=profile.template_overhead_tokens,
        output_tokens=wishes.max_output_tokens,
        context_tokens=context_tokens,
    )
