"""What makes pages be read again: every setting with effect, every engine's version, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.fingerprint import reading_fingerprint, settings_with_effect
from pipeline.settings import Settings

VERSIONS = {"ocr": "tesseract 5.3.0 eng=abc", "poppler": "22.12.0"}


def leaves(values: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def fingerprint(**settings: Any) -> str:
    return reading_fingerprint(Settings(**settings), VERSIONS, "policy")


@pytest.mark.parametrize(
    "settings",
    [
        {"read": {"engine": "paddleocr"}},
        {"read": {"languages": ("deu",)}},
        {"read": {"languages": ("eng", "deu")}},
        {"rasterise": {"dpi": 150}},
        {"rasterise": {"max_page_pixels": 1_000_000}},
        {"route": "vlm"},
        {"triage": {"profile": "thrifty"}},
        {"triage": {"audit_share": 0.01}},
        {"visual_tokens": {"model_family": "qwen3-vl"}},
    ],
)
def test_a_setting_that_alters_results_changes_it(settings: dict[str, Any]) -> None:
    assert fingerprint(**settings) != fingerprint()


@pytest.mark.parametrize(
    "settings",
    [
        {"home": Path("elsewhere")},
        {"log_level": "debug"},
        {"executor": {"jobs": 7, "page_timeout_s": 1, "max_attempts": 9}},
        {"intake": {"max_bytes": 5}},
        {"rasterise": {"pages_per_call": 1, "timeout_s": 1}},
        {"read": {"ocr_timeout_s": 1}},
        {"triage": {"policy_file": "elsewhere.json"}},
    ],
)
def test_a_setting_that_alters_no_result_does_not(settings: dict[str, Any]) -> None:
    assert fingerprint(**settings) == fingerprint()


def test_an_engine_of_another_version_changes_it() -> None:
    for name in VERSIONS:
        assert reading_fingerprint(Settings(), {**VERSIONS, name: "other"}, "policy") != fingerprint()


def test_a_policy_that_decides_otherwise_changes_it() -> None:
    assert reading_fingerprint(Settings(), VERSIONS, "other") != fingerprint()


def test_every_setting_is_either_without_effect_or_counted() -> None:
    counted = set(leaves(settings_with_effect(Settings())))
    everything = set(leaves(Settings().model_dump(mode="json")))
    assert {name.partition(".")[0] for name in everything - counted} == {
        "home",
        "log_level",
        "intake",
        "executor",
        "rasterise",
        "read",
        "triage",
    }
    assert {"rasterise.dpi", "read.engine", "read.languages", "route"} <= counted
