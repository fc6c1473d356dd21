"""The serving plan: one file that launches vLLM and that the client keeps to.

``deploy/vllm/serve.sh`` starts what ``serve_command`` says; the client takes model, image sizes, limits and sampling
from the same plan. ``pipeline/planning/planner.py`` makes one, ``docs/budgets.md`` documents it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import Field, ValidationError, model_validator

from models.errors import SettingsError
from pipeline.fit import Tier
from pipeline.planning.model_profiles import Sampling
from pipeline.settings import Section
from pipeline.visual_tokens import ModelFamily, VisualTokenBudget

SCHEMA_VERSION: Final = 1
GPU_MEMORY_UTILIZATION: Final = 0.90
MM_PROCESSOR_CACHE_GB: Final = 1
NO_MEDIA_DOMAIN: Final = "media.invalid"
"""A domain that cannot exist (RFC 6761): images come in the request, and a URL is refused with a clean 400."""

STRUCTURED_OUTPUTS: Final = {"backend": "xgrammar", "disable_any_whitespace": True}
"""By default the grammar allows endless white space, and some answers are just that."""


class KvDtype(StrEnum):
    """The type of the KV cache, in vLLM's words. ``auto`` is the model's own, of two bytes."""

    AUTO = "auto"
    FP8 = "fp8"

    @property
    def element_bytes(self) -> int:
        return 1 if self is KvDtype.FP8 else 2


class PlanLine(Section):
    """One step of the reckoning, for people: what it is, how it came about, what came out."""

    what: str
    how: str
    value: str


class ServingPlan(Section):
    """What the server is started with and what the client may ask of it.

    ``model_id`` is the name requests use, ``checkpoint`` what vLLM loads: a hub name or a folder. ``tiers`` rise, and
    the last is the ceiling. ``min_pixels`` and ``max_pixels`` bound the server's own resize; the client fits pages
    within them, so that it changes nothing. ``text_tokens`` is all of a prompt that is no image. ``kv_tokens`` and
    ``kv_bytes_per_token`` are those of one card, ``kv_tokens`` being the same on each. ``max_queued_requests`` counts
    requests that run, too. ``ttft_s``, the seconds to the first token on an idle server, is None where the prefill
    rate is not known.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    profile: str
    model_id: str = Field(min_length=1)
    checkpoint: str = Field(min_length=1)
    family: ModelFamily
    sampling: Sampling
    thinks: bool
    chat_template_kwargs: Mapping[str, str | int | float | bool] = Field(default_factory=dict)
    reasoning_parser: str | None = None
    gpu: str
    gpu_count: int = Field(gt=0)
    weight_bytes: int = Field(gt=0)
    kv_dtype: KvDtype
    kv_bytes_per_token: int = Field(gt=0)
    kv_tokens: int = Field(gt=0)
    context_tokens: int = Field(gt=0)
    max_output_tokens: int = Field(gt=0)
    text_tokens: int = Field(ge=0)
    max_images_per_prompt: int = Field(gt=0)
    min_pixels: int = Field(gt=0)
    max_pixels: int = Field(gt=0)
    tiers: tuple[Tier, ...] = Field(min_length=1)
    concurrency: int = Field(gt=0)
    max_queued_requests: int = Field(gt=0)
    max_batched_tokens: int = Field(gt=0)
    prefill_tokens_per_s: float | None = Field(default=None, gt=0)
    ttft_s: float | None = Field(default=None, gt=0)
    lines: tuple[PlanLine, ...] = ()

    @model_validator(mode="after")
    def _tiers_rise_to_the_ceiling(self) -> Self:
        budgets = [tier.max_pixels for tier in self.tiers]
        if budgets != sorted(set(budgets)) or budgets[-1] != self.max_pixels:
            raise ValueError("the tiers must rise, and the last must be max_pixels")
        return self

    @property
    def pages_in_flight(self) -> int:
        return self.concurrency * self.max_images_per_prompt

    def budget_of(self, tier: Tier) -> VisualTokenBudget:
        """What a page is fitted to in this tier."""
        return VisualTokenBudget(family=self.family, min_pixels=self.min_pixels, max_pixels=tier.max_pixels)

    def serve_command(self) -> tuple[str, ...]:
        """What starts the server, word by word. The API key is not in it: vLLM reads it from VLLM_API_KEY, where
        ``ps`` does not show it. Flags of vLLM 0.32."""
        return (
            "vllm",
            "serve",
            self.checkpoint,
            *self._model_flags(),
            *self._capacity_flags(),
            *_FIXED_FLAGS,
        )

    def to_json(self) -> str:
        """The plan file's text, with the command that ``serve.sh`` runs."""
        content = self.model_dump(mode="json") | {"serve_command": list(self.serve_command())}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    def _model_flags(self) -> tuple[str, ...]:
        parser = ("--reasoning-parser", self.reasoning_parser) if self.reasoning_parser else ()
        pixels = {"min_pixels": self.min_pixels, "max_pixels": self.max_pixels}
        return (
            *("--served-model-name", self.model_id),
            *("--max-model-len", str(self.context_tokens)),
            *("--limit-mm-per-prompt", _compact({"image": self.max_images_per_prompt, "video": 0})),
            *("--mm-processor-kwargs", _compact(pixels)),
            *parser,
        )

    def _capacity_flags(self) -> tuple[str, ...]:
        parallel = ("--tensor-parallel-size", str(self.gpu_count)) if self.gpu_count > 1 else ()
        return (
            *("--max-num-batched-tokens", str(self.max_batched_tokens)),
            *("--max-num-seqs", str(self.concurrency)),
            *("--max-num-queued-reqs", str(self.max_queued_requests)),
            *("--kv-cache-dtype", self.kv_dtype.value),
            *parallel,
        )


def read_plan(path: Path) -> ServingPlan:
    """The plan in the file. Raises SettingsError for a file that is none, or whose command is not the plan's."""
    content = _plan_table(path)
    version = content.get("schema_version")
    if version != SCHEMA_VERSION:
        raise SettingsError(
            f"{path}: no serving plan of version {SCHEMA_VERSION} but {version!r}; "
            "write it again with doctriage plan --out"
        )
    command = content.pop("serve_command", None)
    try:
        plan = ServingPlan.model_validate(content)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc']) or 'file'}: {fault['msg']}"
            for fault in error.errors()[:3]
        )
        raise SettingsError(
            f"{path}: damaged serving plan ({faults}); write it again with doctriage plan --out"
        ) from error
    if command != list(plan.serve_command()):
        raise SettingsError(
            f"{path}: its serve_command is not what its other values say, so server and client would differ; "
            "write it again with doctriage plan --out instead of editing it"
        )
    return plan


def _plan_table(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            f"{path}: {error.strerror}; name a plan file, as doctriage plan --out writes it"
        ) from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(
            f"{path}: no JSON ({error}); name a plan file, as doctriage plan --out writes it"
        ) from error
    if not isinstance(content, dict):
        raise SettingsError(f"{path}: no serving plan; name a plan file, as doctriage plan --out writes it")
    return content


def _compact(content: Mapping[str, object]) -> str:
    return json.dumps(content, separators=(",", ":"))


_FIXED_FLAGS: Final = (
    *("--gpu-memory-utilization", f"{GPU_MEMORY_UTILIZATION:.2f}"),
    *("--scheduling-policy", "priority"),
    *("--generation-config", "vllm"),
    *("--structured-outputs-config", _compact(STRUCTURED_OUTPUTS)),
    *("--mm-processor-cache-gb", str(MM_PROCESSOR_CACHE_GB)),
    *("--allowed-media-domains", NO_MEDIA_DOMAIN),
    "--enable-prompt-tokens-details",
)
"""``--generation-config vllm``: a checkpoint's own sampling (a repetition penalty, often) does not slip in."""
