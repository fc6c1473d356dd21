"""What makes pages be read again: every setting with effect, every engine's version, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.fingerprint import Fingerprint, reading_fingerprint, settings_with_effect
from pipeline.planning.configured import load_plan
from pipeline.settings import Settings

PLAN = load_plan(Settings().vlm)
VERSIONS = {"ocr": "tesseract 5.3.0 eng=abc", "poppler": "22.12.0"}


def leaves(values: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def fingerprint(**settings: Any) -> str:
    chosen = Settings(**settings)
    return reading_fingerprint(chosen, VERSIONS, "policy", load_plan(chosen.vlm), "a")


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
        {"vlm": {"profile": "qwen3-vl-8b-fp8"}},
        {"vlm": {"url": "http://gpu/v1"}},
    ],
)
def test_a_setting_that_alters_results_changes_it(settings: dict[str, Any]) -> None:
    assert fingerprint(**settings) != fingerprint()


@pytest.mark.parametrize(
    "settings",
    [
        {"home": Path("elsewhere")},
        {"database_url": "postgresql://user:secret@host/name"},
        {"log_level": "debug"},
        {"executor": {"jobs": 7, "page_timeout_s": 1, "max_attempts": 9}},
        {"intake": {"max_bytes": 5}},
        {"rasterise": {"pages_per_call": 1, "timeout_s": 1}},
        {"read": {"ocr_timeout_s": 1}},
        {"triage": {"policy_file": "elsewhere.json"}},
        {"chargeback": {"price_book_file": "elsewhere.toml", "default_cost_centre": "b"}},
        {"vlm": {"model": "a model that is not asked", "api_key": "secret", "wait_s": 1, "concurrency": 1}},
    ],
)
def test_a_setting_that_alters_no_result_does_not(settings: dict[str, Any]) -> None:
    assert fingerprint(**settings) == fingerprint()


def test_an_engine_of_another_version_changes_it() -> None:
    for name in VERSIONS:
        other = {**VERSIONS, name: "other"}
        assert reading_fingerprint(Settings(), other, "policy", PLAN, "a") != fingerprint()


def test_a_policy_that_decides_otherwise_changes_it() -> None:
    assert reading_fingerprint(Settings(), VERSIONS, "other", PLAN, "a") != fingerprint()


def test_cost_centres_read_apart_unless_the_settings_share() -> None:
    def of(cost_centre: str, *, shared: bool) -> Fingerprint:
        settings = Settings(chargeback={"share_across_cost_centres": shared})
        return reading_fingerprint(settings, VERSIONS, "policy", PLAN, cost_centre)

    apart = [of(name, shared=False) for name in ("a", "a/b", "b")]
    assert len({one.whole for one in apart}) == len({one.cpu for one in apart}) == 3
    assert of("a", shared=True) == of("b", shared=True)
    assert of("a", shared=True).cpu not in {one.cpu for one in apart}


def test_with_a_vlm_its_model_counts_and_where_it_runs_does_not() -> None:
    here = fingerprint(vlm={"url": "http://here/v1", "api_key": "one"})
    assert fingerprint(vlm={"url": "http://there/v1", "timeout_s": 5, "max_calls": 2}) == here
    assert fingerprint(vlm={"url": "http://here/v1", "model": "another"}) != here


def test_every_setting_is_either_without_effect_or_counted() -> None:
    counted = set(leaves(settings_with_effect(Settings())))
    everything = set(leaves(Settings().model_dump(mode="json")))
    assert {name.partition(".")[0] for name in everything - counted} == {
        "home",
        "database_url",
        "log_level",
        "intake",
        "executor",
        "rasterise",
        "read",
        "triage",
        "vlm",
        "chargeback",
        "pool",
        "blobs",
    }
    assert {"rasterise.dpi", "read.engine", "read.languages", "route"} <= counted


def test_what_the_cpu_reads_does_not_depend_on_the_vlm_but_on_its_image_sizes() -> None:
    def of(**vlm: Any) -> Fingerprint:
        settings = Settings(vlm=vlm)
        return reading_fingerprint(settings, VERSIONS, "policy", load_plan(settings.vlm), "a")

    without, asked = of(), of(url="http://gpu/v1", model="another")
    assert (without.has_vlm, asked.has_vlm) == (False, True)
    assert without.cpu == asked.cpu
    assert of(profile="qwen3-vl-8b-fp8").cpu != without.cpu
