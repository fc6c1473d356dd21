"""The budget planner: published figures, what holds of every plan, what is refused, and the plan file."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import PlanImpossible, SettingsError
from pipeline.planning.gpus import GPUS, gpu_named
from pipeline.planning.kv_room import ACTIVATION_BYTES
from pipeline.planning.model_profiles import ModelProfile, load_profile, profile_names
from pipeline.planning.page_ceiling import LEGIBLE_PAGE_TOKENS
from pipeline.planning.plan_wishes import PlanWishes
from pipeline.planning.planner import make_plan, prefill_s
from pipeline.planning.serving_plan import GPU_MEMORY_UTILIZATION, KvDtype, ServingPlan, read_plan
from pipeline.visual_tokens import VisualTokenBudget, is_unchanged, resized

DOCS = Path(__file__).parent.parent.parent / "docs" / "budgets.md"
PROFILES = {name: load_profile(name) for name in profile_names()}
H100 = gpu_named("h100-80gb")


def plan_for(profile: str = "qwen2.5-vl-7b-fp8", gpu: str = "h100-80gb", **wishes: Any) -> ServingPlan:
    return make_plan(PROFILES[profile], PlanWishes(gpu=gpu_named(gpu), **wishes))


def longest_tokens(plan: ServingPlan) -> int:
    visual_tokens = plan.max_images_per_prompt * plan.tiers[-1].visual_tokens
    return plan.text_tokens + visual_tokens + plan.max_output_tokens


# Published figures.


def test_seconds_to_the_first_token() -> None:
    rate = 12_000.0
    one = prefill_s(text_tokens=80, image_count=1, visual_tokens=2_240, prefill_tokens_per_s=rate)
    five = prefill_s(text_tokens=80, image_count=5, visual_tokens=2_240, prefill_tokens_per_s=rate)
    assert (round(one, 2), round(five, 2)) == (0.19, 0.94)


@pytest.mark.parametrize(
    ("profile", "bytes_per_token", "kv_tokens"),
    [
        ("qwen2.5-vl-7b-fp8", 57_344, 1_080_000),
        ("qwen2.5-vl-32b-fp8", 262_144, 140_000),
        ("qwen3-vl-8b-fp8", 147_456, 417_000),
    ],
)
def test_the_kv_cache_of_one_h100(profile: str, bytes_per_token: int, kv_tokens: int) -> None:
    plan = plan_for(profile)
    assert plan.kv_bytes_per_token == bytes_per_token
    assert plan.kv_tokens == pytest.approx(kv_tokens, rel=0.005)
    halved = plan_for(profile, kv_dtype=KvDtype.FP8)
    assert halved.kv_bytes_per_token * 2 == bytes_per_token
    assert halved.kv_tokens in (2 * plan.kv_tokens, 2 * plan.kv_tokens + 1)


def test_a_page_is_2_240_tokens_where_nothing_asks_for_less() -> None:
    plans = {name: plan_for(name) for name in PROFILES}
    assert {name: plan.max_pixels for name, plan in plans.items()} == {
        "qwen2.5-vl-7b-fp8": 1120 * 1568,
        "qwen2.5-vl-32b-fp8": 1120 * 1568,
        "paddleocr-vl": 1120 * 1568,
        "qwen3-vl-8b-fp8": 2_240 * 1_024,
    }
    assert [tier.visual_tokens for tier in plans["qwen3-vl-8b-fp8"].tiers] == [640, 1_024, 1_536, 2_240]
    assert [tier.name for tier in plans["qwen3-vl-8b-fp8"].tiers] == ["small", "medium", "large", "full"]


def test_a_higher_ceiling_keeps_the_tier_of_a_full_page() -> None:
    tiers = plan_for(visual_tokens=3_000).tiers
    assert [tier.visual_tokens for tier in tiers] == [640, 1_024, 1_536, 2_240, 3_000]
    assert len({tier.name for tier in tiers}) == 5


# What holds of every plan.

wishes_at_random = st.builds(
    PlanWishes,
    gpu=st.sampled_from(tuple(GPUS.values())),
    gpu_count=st.sampled_from((1, 2, 3, 4, 8)),
    pages_per_prompt=st.integers(1, 12),
    visual_tokens=st.none() | st.integers(1, 20_000),
    concurrency=st.none() | st.integers(1, 2_000),
    ttft_s=st.none() | st.floats(0.01, 10),
    prefill_tokens_per_s=st.floats(100, 100_000),
    kv_dtype=st.sampled_from(KvDtype),
    max_output_tokens=st.integers(1, 20_000),
    context_tokens=st.none() | st.integers(1, 300_000),
    instruction_tokens=st.integers(0, 2_000),
)
profiles_at_random = st.sampled_from(tuple(PROFILES.values()))


def plan_or_refusal(profile: ModelProfile, wishes: PlanWishes) -> ServingPlan | str:
    try:
        return make_plan(profile, wishes)
    except PlanImpossible as error:
        return str(error)


@given(profile=profiles_at_random, wishes=wishes_at_random)
def test_a_plan_keeps_every_bound_or_is_refused_with_figures(
    profile: ModelProfile, wishes: PlanWishes
) -> None:
    plan = plan_or_refusal(profile, wishes)
    if isinstance(plan, str):
        assert re.search(r"\d.*use (--|a smaller model|fewer pages)", plan)
        return
    visual_tokens = plan.tiers[-1].visual_tokens
    assert longest_tokens(plan) <= plan.context_tokens <= min(profile.context_tokens, plan.kv_tokens)
    assert plan.concurrency * longest_tokens(plan) <= plan.kv_tokens
    assert wishes.ttft_s is None or (plan.ttft_s is not None and plan.ttft_s <= wishes.ttft_s + 1e-6)
    assert visual_tokens >= (wishes.visual_tokens or LEGIBLE_PAGE_TOKENS)
    assert plan.max_pixels == visual_tokens * profile.family.pixels_per_token
    assert plan.min_pixels < plan.tiers[0].max_pixels
    assert plan.max_pixels <= profile.family.processor_max_pixels
    assert plan.max_batched_tokens >= max(visual_tokens, plan.concurrency)
    assert plan.max_queued_requests > plan.concurrency
    assert wishes.concurrency in (None, plan.concurrency)


@given(profile=profiles_at_random, wishes=wishes_at_random)
def test_weights_and_cache_stay_within_the_cards(profile: ModelProfile, wishes: PlanWishes) -> None:
    plan = plan_or_refusal(profile, wishes)
    if isinstance(plan, str):
        return
    card_bytes = plan.kv_tokens * plan.kv_bytes_per_token + profile.resident_bytes / plan.gpu_count
    assert card_bytes + ACTIVATION_BYTES <= GPU_MEMORY_UTILIZATION * wishes.gpu.usable_bytes
    whole_bytes = 2 * profile.layers * profile.kv_heads * profile.head_dim * wishes.kv_dtype.element_bytes
    assert plan.kv_bytes_per_token * plan.gpu_count >= whole_bytes


@given(
    profile=profiles_at_random,
    width_px=st.integers(30, 6_000),
    height_px=st.integers(30, 6_000),
    tier_number=st.integers(0, 3),
)
def test_the_server_leaves_a_page_alone_that_was_fitted_to_a_tier(
    profile: ModelProfile, width_px: int, height_px: int, tier_number: int
) -> None:
    """Up to 20 to 1: a longer strip can miss the tier, and the fit has to see to that."""
    if max(width_px, height_px) > 20 * min(width_px, height_px):
        return
    plan = make_plan(profile, PlanWishes(gpu=H100))
    tier = plan.tiers[tier_number]
    fitted = resized(width_px, height_px, plan.budget_of(tier))
    assert fitted.token_count <= tier.visual_tokens
    server = VisualTokenBudget(family=plan.family, min_pixels=plan.min_pixels, max_pixels=plan.max_pixels)
    assert is_unchanged(fitted.width_px, fitted.height_px, server)


def test_every_wish_is_seen_in_the_lines() -> None:
    """The figures of the plan are those of its explanation."""
    plan = plan_for(
        pages_per_prompt=3, concurrency=40, ttft_s=0.5, prefill_tokens_per_s=12_000, kv_dtype=KvDtype.FP8
    )
    values = {line.what: line.value for line in plan.lines}
    visual_tokens = plan.tiers[-1].visual_tokens
    assert visual_tokens == int(values["visual tokens a page"].replace(",", "")) == (6_000 - 537) // 3
    assert values["page, by time to first token"] == values["visual tokens a page"]
    assert {"page, by context", "page, by KV cache", "page, by image processor", "page, by legibility"} < set(
        values
    )
    assert values["max_pixels"] == f"{plan.max_pixels:,}"
    assert values["KV tokens"] == f"{plan.kv_tokens:,}"
    assert values["max-num-seqs"] == "40"
    assert values["pages in flight"] == "120"
    assert values["time to first token"] == f"{plan.ttft_s:.2f} s"


def test_a_card_that_cannot_compute_in_fp8_is_said_so() -> None:
    assert "arithmetic" in {line.what for line in plan_for(gpu="a100-80gb").lines}
    assert "arithmetic" not in {line.what for line in plan_for("paddleocr-vl", gpu="a100-80gb").lines}
    assert "arithmetic" not in {line.what for line in plan_for().lines}


# What is refused.

EIGHT_PAGES: dict[str, Any] = {
    "pages_per_prompt": 8,
    "max_output_tokens": 8_192,
    "context_tokens": 16_384,
}


@pytest.mark.parametrize("profile", profile_names())
@pytest.mark.parametrize("visual_tokens", [None, 2_240])
def test_eight_pages_do_not_fit_16_k_with_8_k_of_output(profile: str, visual_tokens: int | None) -> None:
    with pytest.raises(PlanImpossible) as caught:
        plan_for(profile, visual_tokens=visual_tokens, **EIGHT_PAGES)
    text = PROFILES[profile].template_overhead_tokens + 512 + 16
    for part in (
        f"8 × 2,240 + {text} of text + 8,192 of output = {8 * 2_240 + text + 8_192:,} tokens",
        "in a context of 16,384",
        f"(16,384 − 8,192 output − {text} text) / 8 = {(16_384 - 8_192 - text) // 8}",
    ):
        assert part in str(caught.value)


REFUSALS: list[tuple[str, dict[str, Any], str]] = [
    ("qwen2.5-vl-7b-fp8", EIGHT_PAGES, "context: "),
    ("qwen3-vl-8b-fp8", EIGHT_PAGES | {"visual_tokens": 2_240}, "context: "),
    ("qwen2.5-vl-7b-fp8", {"max_output_tokens": 16_384}, "context: "),
    ("qwen2.5-vl-7b-fp8", {"concurrency": 250}, "KV cache: "),
    ("qwen2.5-vl-32b-fp8", {"concurrency": 30}, "KV cache: "),
    (
        "qwen2.5-vl-7b-fp8",
        {"pages_per_prompt": 3, "ttft_s": 0.2, "prefill_tokens_per_s": 12_000},
        "time to first token: (0.2 s × 12,000",
    ),
    ("paddleocr-vl", {"visual_tokens": 3_601}, "image processor: "),
    ("qwen2.5-vl-32b-fp8", {"gpu": "rtx-4090-24gb"}, "do not fit rtx-4090-24gb: 0.90 × 23.5 GiB − 33.0 GiB"),
    ("qwen2.5-vl-32b-fp8", {"gpu": "l40s-48gb"}, "holds less than one request of 16,384 tokens"),
    ("qwen2.5-vl-7b-fp8", {"gpu": "l4-24gb", "context_tokens": 128_000}, "less than one request of 128,000"),
    ("qwen2.5-vl-7b-fp8", {"context_tokens": 131_072}, "more than the 128,000 that qwen2.5-vl-7b-fp8"),
    ("qwen2.5-vl-7b-fp8", {"visual_tokens": 199}, "199 visual tokens a page are under the 200"),
    ("qwen2.5-vl-7b-fp8", {"gpu_count": 3}, "28 attention heads and 4 KV heads"),
    ("qwen2.5-vl-7b-fp8", {"gpu_count": 7}, "28 attention heads and 4 KV heads"),
]


def advised(message: str) -> list[dict[str, Any]]:
    """The wishes after the word "use" that name a value, each as a change."""
    names = {"gpu": "gpu", "gpus": "gpu_count", "kv-dtype": "kv_dtype"}
    changes = []
    for flag, value in re.findall(r"--([a-z-]+) ([a-z0-9][\w.-]*)", message.split("use ", 1)[1]):
        name = names.get(flag, flag.replace("-", "_"))
        kind = {"gpu": str, "kv_dtype": KvDtype, "ttft_s": float}.get(name, int)
        changes.append({name: kind(value)})
    return changes


@pytest.mark.parametrize(("profile", "wishes", "told"), REFUSALS, ids=lambda value: str(value)[:60])
def test_a_refusal_shows_its_arithmetic_and_each_change_it_names_helps(
    profile: str, wishes: dict[str, Any], told: str
) -> None:
    with pytest.raises(PlanImpossible) as caught:
        plan_for(profile, **wishes)
    assert told in str(caught.value)
    changes = advised(str(caught.value))
    assert changes
    for change in changes:
        assert plan_for(profile, **(wishes | change))


def test_a_page_is_shrunk_before_a_wish_is_refused() -> None:
    assert plan_for(concurrency=180).tiers[-1].visual_tokens == 1_082_671 // 180 - 4_096 - 533


@pytest.mark.parametrize(
    "figures",
    [
        {"gpu_count": 0},
        {"pages_per_prompt": -1},
        {"visual_tokens": 0},
        {"concurrency": 0},
        {"ttft_s": 0.0, "prefill_tokens_per_s": 1.0},
        {"ttft_s": float("nan"), "prefill_tokens_per_s": 1.0},
        {"ttft_s": 1.0},
        {"prefill_tokens_per_s": float("inf")},
        {"max_output_tokens": 0},
        {"context_tokens": 0},
        {"instruction_tokens": -1},
        {"checkpoint": " "},
        {"checkpoint": "\udcff"},
    ],
)
def test_figures_that_are_no_wish(figures: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(figures)) + "|prefill"):
        PlanWishes(gpu=H100, **figures)


def test_an_unknown_card_is_told_the_known_ones() -> None:
    with pytest.raises(ValueError, match="h100-80gb"):
        gpu_named("h100")


# The command.


def flags(plan: ServingPlan) -> dict[str, str]:
    """Value by flag; a flag without one has an empty value."""
    words = plan.serve_command()[3:]
    found: dict[str, str] = {}
    for word, following in zip(words, (*words[1:], "--"), strict=True):
        if word.startswith("--"):
            found[word] = "" if following.startswith("--") else following
    return found


def test_the_command_says_what_the_plan_says() -> None:
    plan = plan_for("qwen3-vl-8b-fp8", pages_per_prompt=2, kv_dtype=KvDtype.FP8, gpu_count=2)
    said = flags(plan)
    assert plan.serve_command()[:3] == ("vllm", "serve", "Qwen/Qwen3-VL-8B-Instruct-FP8")
    assert json.loads(said.pop("--limit-mm-per-prompt")) == {"image": 2, "video": 0}
    assert json.loads(said.pop("--mm-processor-kwargs")) == {"min_pixels": 65_536, "max_pixels": 2_293_760}
    assert json.loads(said.pop("--structured-outputs-config")) == {
        "backend": "xgrammar",
        "disable_any_whitespace": True,
    }
    assert said == {
        "--served-model-name": plan.model_id,
        "--max-model-len": "16384",
        "--max-num-batched-tokens": str(plan.max_batched_tokens),
        "--max-num-seqs": str(plan.concurrency),
        "--max-num-queued-reqs": str(plan.max_queued_requests),
        "--kv-cache-dtype": "fp8",
        "--tensor-parallel-size": "2",
        "--gpu-memory-utilization": "0.90",
        "--scheduling-policy": "priority",
        "--generation-config": "vllm",
        "--mm-processor-cache-gb": "1",
        "--allowed-media-domains": "media.invalid",
        "--enable-prompt-tokens-details": "",
    }


def test_one_card_is_not_told_of_others_and_no_key_is_in_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "hush-hush")
    plan = plan_for()
    assert "--tensor-parallel-size" not in plan.serve_command()
    assert "hush-hush" not in plan.to_json()
    assert not any("key" in word for word in plan.serve_command())


def test_a_folder_takes_the_place_of_the_hub_name() -> None:
    plan = plan_for(checkpoint="/models/qwen 7b")
    assert plan.serve_command()[2] == "/models/qwen 7b"
    assert plan.model_id == "qwen2.5-vl-7b-fp8"


def test_a_model_that_thinks_has_its_parser_and_says_how_to_stop_it() -> None:
    profile = PROFILES["qwen3-vl-8b-fp8"].model_copy(
        update={
            "thinks": True,
            "reasoning_parser": "qwen3",
            "chat_template_kwargs": {"enable_thinking": False},
        }
    )
    plan = make_plan(profile, PlanWishes(gpu=H100))
    assert flags(plan)["--reasoning-parser"] == "qwen3"
    assert (plan.thinks, plan.chat_template_kwargs) == (True, {"enable_thinking": False})


# The plan file.


def written(plan: ServingPlan, folder: Path) -> Path:
    path = folder / "plan.json"
    path.write_text(plan.to_json(), encoding="utf-8")
    return path


@pytest.mark.parametrize("profile", profile_names())
def test_a_plan_comes_back_as_it_was_written(profile: str, tmp_path: Path) -> None:
    plan = plan_for(profile, pages_per_prompt=2, ttft_s=1.5, prefill_tokens_per_s=9_000.5)
    again = read_plan(written(plan, tmp_path))
    assert again == plan
    assert again.serve_command() == plan.serve_command()
    assert again.family == PROFILES[profile].family
    assert json.loads(plan.to_json())["serve_command"] == list(plan.serve_command())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "No such file"),
        (b"", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "no serving plan"),
        (b"{}", "version 1 but None"),
        (b'{"schema_version": 2}', "version 1 but 2"),
        (b'{"schema_version": 1}', "damaged serving plan"),
    ],
)
def test_a_file_that_is_no_plan(content: bytes | None, told: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        read_plan(path)
    assert str(path) in str(caught.value)
    assert told in str(caught.value)
    assert "doctriage plan --out" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_pixels", 12_845_056),
        ("concurrency", 10_000),
        ("concurrency", 0),
        ("max_images_per_prompt", 4),
        ("model_id", "other"),
        ("checkpoint", "other"),
        ("serve_command", ["vllm", "serve", "other"]),
        ("serve_command", None),
        ("tiers", []),
        ("tiers", [{"name": "full", "visual_tokens": 5, "max_pixels": 5}]),
        ("family", {"name": "qwen2.5-vl"}),
        ("unheard_of", 1),
    ],
)
def test_a_plan_edited_by_hand_is_not_followed(key: str, value: object, tmp_path: Path) -> None:
    """Server and client would no longer agree, and nobody would see it."""
    path = written(plan_for(), tmp_path)
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {key: value}), encoding="utf-8")
    with pytest.raises(SettingsError, match="write it again with doctriage plan --out"):
        read_plan(path)


# The documentation.


def documented_row(plan: ServingPlan) -> str:
    """The row of docs/budgets.md on one H100."""
    room_gib = plan.kv_tokens * plan.kv_bytes_per_token / 2**30
    ttft = f"{plan.ttft_s:.2f} s" if plan.ttft_s is not None else "–"
    return (
        f"| `{plan.profile}` | {plan.weight_bytes / 2**30:.1f} | {room_gib:.1f} | {plan.kv_bytes_per_token:,} | "
        f"{plan.kv_tokens:,} | {plan.max_pixels:,} | {longest_tokens(plan):,} | {plan.concurrency} | "
        f"{plan.max_queued_requests} | {ttft} |"
    )


@pytest.mark.parametrize("profile", profile_names())
def test_the_worked_examples_are_what_the_planner_says(profile: str) -> None:
    rate = 12_000.0 if profile == "qwen2.5-vl-7b-fp8" else None
    plan = plan_for(profile, prefill_tokens_per_s=rate)
    assert documented_row(plan) in DOCS.read_text(encoding="utf-8")


def test_the_printed_example_is_what_the_planner_says() -> None:
    page = DOCS.read_text(encoding="utf-8")
    plan = plan_for(prefill_tokens_per_s=12_000)
    for line in plan.lines:
        assert re.search(
            rf"^{re.escape(line.what)} +{re.escape(line.how)} +{re.escape(line.value)}$", page, re.M
        )
    shown = re.search(r"^vllm serve(?:.*\\\n)+.*$", page, re.M)
    assert shown is not None
    assert tuple(shlex.split(shown[0].replace("\\\n", " "))) == plan.serve_command()


def test_the_documented_refusal_is_the_one_that_comes() -> None:
    with pytest.raises(PlanImpossible) as caught:
        plan_for(**EIGHT_PAGES)
    words = " ".join(DOCS.read_text(encoding="utf-8").split())
    assert str(caught.value) in words


def test_every_card_and_key_is_documented() -> None:
    page = DOCS.read_text(encoding="utf-8")
    for gpu in GPUS.values():
        assert f"| `{gpu.name}` | {gpu.usable_gib} |" in page
    for name, field in ModelProfile.model_fields.items():
        assert f"| `{field.alias or name}` |" in page
    for name in (*ServingPlan.model_fields, "serve_command"):
        assert f"| `{name}` |" in page
