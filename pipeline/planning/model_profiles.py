"""Model profiles: what has to be known of a checkpoint to plan its memory, its prompts and its images.

A profile is a TOML file: one of those in ``profiles`` beside this module, or the user's own. ``docs/budgets.md``
documents the keys.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from models.errors import ProfileInvalid
from pipeline.visual_tokens import ModelFamily, model_family

DEFAULT_PROFILE: Final = "qwen2.5-vl-7b-fp8"


class WeightType(StrEnum):
    """What most of the weights are stored as."""

    BF16 = "bf16"
    FP8 = "fp8"


BYTES_PER_PARAMETER: Final = {WeightType.BF16: 2, WeightType.FP8: 1}


class _Table(BaseModel):
    """No coercion, so that ``thinks = "no"`` is an error and not a model that thinks."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class FamilyTable(_Table):
    """A family that doctriage does not know, written out: the geometry in ``preprocessor_config.json``."""

    name: str = Field(min_length=1)
    patch_px: int = Field(gt=0)
    merge_size: int = Field(gt=0)
    processor_min_pixels: int = Field(gt=0)
    processor_max_pixels: int = Field(gt=0)

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> Self:
        if self.processor_min_pixels > self.processor_max_pixels:
            raise ValueError("processor_min_pixels is above processor_max_pixels")
        return self


class Sampling(_Table):
    """How a first attempt samples. None leaves the parameter out of the request."""

    temperature: float = Field(default=0.0, ge=0, le=2)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int | None = Field(default=None, gt=0)
    repetition_penalty: float = Field(default=1.0, gt=0, le=2)


class ModelProfile(_Table):
    """A checkpoint, as far as planning needs it.

    ``context_tokens`` is the longest prompt with its answer the model was trained for. ``weight_bytes`` is what the
    weights take in GPU memory, None where only ``parameters`` is known. ``template_overhead_tokens`` is the most the
    chat template adds around a system and a user message. ``chat_template_kwargs`` go with every request, and turn
    thinking off where that can be done; ``reasoning_parser`` is vLLM's, for models that think all the same.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    hub_name: str = Field(min_length=1)
    family_table: FamilyTable = Field(alias="family")
    layers: int = Field(gt=0)
    attention_heads: int | None = Field(default=None, gt=0)
    kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    context_tokens: int = Field(gt=0)
    parameters: int = Field(gt=0)
    weight_type: WeightType = Field(strict=False)
    weight_bytes: int | None = Field(default=None, gt=0)
    template_overhead_tokens: int = Field(ge=0)
    sampling: Sampling = Sampling()
    thinks: bool = False
    chat_template_kwargs: Mapping[str, str | int | float | bool] = Field(default_factory=dict)
    reasoning_parser: str | None = Field(default=None, min_length=1)

    @property
    def family(self) -> ModelFamily:
        return ModelFamily(**self.family_table.model_dump())

    @property
    def resident_bytes(self) -> int:
        """What the weights take in GPU memory; estimated where the profile does not say."""
        return self.weight_bytes or estimated_weight_bytes(self.parameters, self.weight_type)

    @field_validator("family_table", mode="before")
    @classmethod
    def _known_families_go_by_name(cls, value: object) -> object:
        return dataclasses.asdict(model_family(value)) if isinstance(value, str) else value


def estimated_weight_bytes(parameters: int, weight_type: WeightType) -> int:
    """All parameters in one type: 8.5 billion are 17 GB in BF16 and 8.5 GB in FP8.

    Too little for real FP8 checkpoints, by 10 to 20 %: embeddings, output layer and vision tower stay in BF16.
    """
    return parameters * BYTES_PER_PARAMETER[weight_type]


def profile_names() -> tuple[str, ...]:
    """The profiles that are shipped, the default first."""
    names = [path.name.removesuffix(".toml") for path in _shipped().iterdir() if path.name.endswith(".toml")]
    return tuple(sorted(names, key=lambda name: (name != DEFAULT_PROFILE, name)))


def load_profile(name_or_path: str | Path = DEFAULT_PROFILE) -> ModelProfile:
    """The profile of that name, or in that ``.toml`` file. Raises ProfileInvalid, which names file and key."""
    if not str(name_or_path).endswith(".toml"):
        return _shipped_profile(str(name_or_path))
    path = Path(name_or_path).expanduser()
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ProfileInvalid(f"{path}: {error.strerror}; name a profile file, docs/budgets.md") from error
    except UnicodeDecodeError as error:
        raise ProfileInvalid(f"{path}: no text in UTF-8; name a profile file, docs/budgets.md") from error
    return _parsed(text, str(path))


def _shipped() -> resources.abc.Traversable:
    return resources.files("pipeline.planning").joinpath("profiles")


def _shipped_profile(name: str) -> ModelProfile:
    known = profile_names()
    if name not in known:
        raise ProfileInvalid(
            f"{name!r} is no profile{_did_you_mean(name, known)}; use {', '.join(known)}, "
            "or the path of your own .toml file"
        )
    return _parsed(_shipped().joinpath(f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml")


def _parsed(text: str, source: str) -> ModelProfile:
    try:
        return ModelProfile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ProfileInvalid(f"{source}: no TOML: {error}") from error
    except ValidationError as error:
        faults = "; ".join(_fault(fault) for fault in error.errors())
        raise ProfileInvalid(f"{source}: {faults}; docs/budgets.md has the format") from error


def _fault(fault: ErrorDetails) -> str:
    """One fault with its key, such as ``sampling.temprature: no such key (did you mean temperature?)``."""
    parts = [str(part) for part in fault["loc"]]
    key = ".".join(parts) or "file"
    match fault["type"]:
        case "extra_forbidden":
            return f"{key}: no such key{_did_you_mean(parts[-1], _keys_beside(parts))}"
        case "missing":
            return f"{key}: missing"
        case "value_error":
            return f"{key}: {fault['msg'].removeprefix('Value error, ')}"
        case _:
            return f"{key}: {fault['msg']}, not {fault['input']!r}"


def _keys_beside(parts: list[str]) -> Iterable[str]:
    tables: dict[str, type[_Table]] = {"family": FamilyTable, "sampling": Sampling}
    table = tables.get(parts[0], ModelProfile) if len(parts) > 1 else ModelProfile
    return [field.alias or name for name, field in table.model_fields.items()]


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""
