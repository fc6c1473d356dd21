"""The name of everything that can change a page's result.

Pages are kept under (document, fingerprint): a run with the same fingerprint takes the pages that are there,
a run with another one reads again and keeps both. A run that differs in the VLM alone takes over what the CPU read.
Each cost centre reads, and pays, for itself, unless the settings share what is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.answers.prompt import prompt_version
from pipeline.planning.serving_plan import ServingPlan
from pipeline.settings import Settings

RESULT_VERSION = 8
"""Raised whenever a change in this program makes the same page read differently."""

WITHOUT_EFFECT: frozenset[str] = frozenset(
    {
        "home",
        "database_url",
        "log_level",
        "intake",
        "executor",
        "pool",
        "blobs",
        "rasterise.pages_per_call",
        "rasterise.timeout_s",
        "read.ocr_timeout_s",
        "triage.policy_file",
        "vlm",
        "chargeback",
    }
)
"""Settings that decide whether or how fast a page is read, never what is read; and those of files and services,
as what they hold counts. All others are in the fingerprint, so a setting that is new and forgotten here costs a
second reading, not a wrong result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """SHA-256s in hex. ``cpu`` names all that can change what the CPU reads and decides, ``whole`` the VLM as well.
    ``has_vlm``: pages that need it are sent to one."""

    whole: str
    cpu: str
    has_vlm: bool


def reading_fingerprint(
    settings: Settings,
    engine_versions: Mapping[str, str],
    policy_digest: str,
    plan: ServingPlan,
    cost_centre: str,
) -> Fingerprint:
    """Over the settings with effect, the versions of the engines, what the policy decides by, the images and the
    model of the plan, ``RESULT_VERSION``, and who pays."""
    by_cpu = {
        "result_version": RESULT_VERSION,
        "engines": dict(engine_versions),
        "policy": policy_digest,
        "settings": settings_with_effect(settings),
        "cost_centre": None if settings.chargeback.share_across_cost_centres else cost_centre,
        "images": plan.model_dump(mode="json", include={"family", "min_pixels", "tiers"}),
    }
    has_vlm = settings.vlm.is_configured
    vlm = _vlm_with_effect(plan) if has_vlm else None
    return Fingerprint(whole=_digest({**by_cpu, "vlm": vlm}), cpu=_digest(by_cpu), has_vlm=has_vlm)


def _digest(what_counts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(what_counts, sort_keys=True).encode()).hexdigest()


def _vlm_with_effect(plan: ServingPlan) -> dict[str, Any]:
    """What can change an answer. Where the service runs and how patiently it is asked cannot."""
    with_effect = {"model_id", "sampling", "chat_template_kwargs", "max_output_tokens"}
    return {"prompt": prompt_version(), **plan.model_dump(mode="json", include=with_effect)}


def settings_with_effect(settings: Settings) -> dict[str, Any]:
    return _without(settings.model_dump(mode="json"), prefix="")


def _without(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if name in WITHOUT_EFFECT:
            continue
        kept[key] = _without(value, f"{name}.") if isinstance(value, Mapping) else value
    return kept
