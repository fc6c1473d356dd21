"""Model profiles: those that are shipped, those of users, and both against a model's own files."""

from __future__ import annotations

import json
import shutil
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from models.errors import ProfileInvalid
from pipeline.planning.model_folder import check_model_folder
from pipeline.planning.model_profiles import (
    DEFAULT_PROFILE,
    ModelProfile,
    WeightType,
    estimated_weight_bytes,
    load_profile,
    profile_names,
)
from pipeline.visual_tokens import MODEL_FAMILIES, VisualTokenBudget, count

SHIPPED = resources.files("pipeline.planning").joinpath("profiles")

OWN = """\
name = "own"
hub_name = "me/own"
family = "qwen3-vl"
layers = 2
kv_heads = 1
head_dim = 8
context_tokens = 4096
parameters = 1000
weight_type = "bf16"
template_overhead_tokens = 13
thinks = true
chat_template_kwargs = { enable_thinking = false }

[sampling]
temperature = 0
"""


def own_profile(folder: Path, text: str = OWN) -> ModelProfile:
    (folder / "own.toml").write_text(text, encoding="utf-8")
    return load_profile(folder / "own.toml")


def test_the_default_is_shipped_and_named_first() -> None:
    assert profile_names()[0] == DEFAULT_PROFILE
    assert set(profile_names()) == {
        "qwen2.5-vl-7b-fp8",
        "qwen2.5-vl-32b-fp8",
        "qwen3-vl-8b-fp8",
        "paddleocr-vl",
    }
    assert load_profile() == load_profile(DEFAULT_PROFILE)


@pytest.mark.parametrize("name", profile_names())
def test_a_shipped_profile_is_what_its_file_is_called(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.family.cell_px in (28, 32)
    assert not profile.thinks
    assert profile.sampling.repetition_penalty == 1.0


@pytest.mark.parametrize("name", profile_names())
def test_estimates_are_marked_where_they_stand(name: str) -> None:
    """What nobody has measured says so, next to the figure."""
    text = SHIPPED.joinpath(f"{name}.toml").read_text(encoding="utf-8")
    assert ("stimate" in text) == (name != DEFAULT_PROFILE)


def test_weights_in_fp8_are_half_of_those_in_bf16() -> None:
    assert estimated_weight_bytes(8_500_000_000, WeightType.BF16) == 17_000_000_000
    assert estimated_weight_bytes(8_500_000_000, WeightType.FP8) == 8_500_000_000


def test_254_016_pixels_are_324_tokens() -> None:
    family = load_profile().family
    budget = VisualTokenBudget(family=family, min_pixels=family.processor_min_pixels, max_pixels=254_016)
    assert count(504, 504, budget) == 324


def test_a_profile_of_the_user(tmp_path: Path) -> None:
    profile = own_profile(tmp_path)
    assert profile.family == MODEL_FAMILIES["qwen3-vl"]
    assert profile.resident_bytes == 2_000
    assert profile.chat_template_kwargs == {"enable_thinking": False}
    assert (profile.sampling.temperature, profile.sampling.top_k) == (0.0, None)


def test_a_profile_may_bring_a_family_of_its_own(tmp_path: Path) -> None:
    table = (
        '\n[family]\nname = "new"\npatch_px = 12\nmerge_size = 3\nprocessor_min_pixels = 1296\n'
        "processor_max_pixels = 1296000\n"
    )
    profile = own_profile(tmp_path, OWN.replace('family = "qwen3-vl"\n', "") + table)
    assert (profile.family.name, profile.family.cell_px) == ("new", 36)


def test_a_shipped_profile_copied_is_a_profile_of_the_user(tmp_path: Path) -> None:
    for name in profile_names():
        with resources.as_file(SHIPPED.joinpath(f"{name}.toml")) as shipped:
            copy = shutil.copy(shipped, tmp_path / "copy.toml")
        assert load_profile(copy) == load_profile(name)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("layers = 2", "layer = 2", ("layer: no such key (did you mean layers?)", "layers: missing")),
        ("temperature = 0", "temprature = 0", ("sampling.temprature", "did you mean temperature?")),
        ("temperature = 0", "temperature = 3", ("sampling.temperature", "3")),
        ("temperature = 0", "temperature = nan", ("sampling.temperature", "nan")),
        ("layers = 2", 'layers = "2"', ("layers", "'2'")),
        ("layers = 2", "layers = 2.0", ("layers", "2.0")),
        ("layers = 2", "layers = 0", ("layers", "0")),
        ("thinks = true", 'thinks = "no"', ("thinks", "'no'")),
        ('weight_type = "bf16"', 'weight_type = "int3"', ("weight_type", "'int3'", "fp8")),
        ('"qwen3-vl"', '"qwen9-vl"', ("family", "qwen9-vl", "qwen2.5-vl")),
        ('name = "own"', 'name = "my own"', ("name", "'my own'")),
        ("layers = 2", "layers = ", ("no TOML", "line 4")),
        (
            'family = "qwen3-vl"',
            'family = { name = "f", patch_px = 14, merge_size = 2, min_pixels = 1, processor_min_pixels = 1, '
            "processor_max_pixels = 1 }",
            ("family.min_pixels: no such key (did you mean processor_min_pixels?)",),
        ),
        (
            'family = "qwen3-vl"',
            'family = { name = "f", patch_px = 14, merge_size = 2, processor_min_pixels = 2, '
            "processor_max_pixels = 1 }",
            ("family", "processor_min_pixels is above processor_max_pixels"),
        ),
    ],
)
def test_a_fault_names_file_and_key(before: str, after: str, told: tuple[str, ...], tmp_path: Path) -> None:
    assert before in OWN
    with pytest.raises(ProfileInvalid) as caught:
        own_profile(tmp_path, OWN.replace(before, after))
    for part in ("own.toml", *told):
        assert part in str(caught.value)


def test_a_name_that_is_none_is_told_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(ProfileInvalid, match=r"did you mean qwen2.5-vl-7b-fp8\?"):
        load_profile("qwen2.5-vl-7b-fp16")
    with pytest.raises(ProfileInvalid, match="No such file"):
        load_profile(tmp_path / "gone.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(ProfileInvalid, match="UTF-8"):
        load_profile(tmp_path / "latin.toml")


# Folders as transformers 4 and 5 write them, for the default profile.

LANGUAGE: dict[str, Any] = {
    "hidden_size": 3584,
    "max_position_embeddings": 128_000,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
}
VISION: dict[str, Any] = {"hidden_size": 1280, "patch_size": 14, "spatial_merge_size": 2}
PATCHES: dict[str, Any] = {"patch_size": 14, "merge_size": 2}
EDGES: dict[str, Any] = {"size": {"shortest_edge": 3_136, "longest_edge": 12_845_056}}
PIXELS: dict[str, Any] = {"min_pixels": 3_136, "max_pixels": 12_845_056}

Files = dict[str, dict[str, Any]]

TRANSFORMERS_4: Files = {
    "config.json": LANGUAGE | {"vision_config": VISION},
    "preprocessor_config.json": PATCHES | PIXELS,
}
TRANSFORMERS_4_SHORT: Files = {
    "config.json": LANGUAGE | {"vision_config": {"hidden_size": 1280, "in_chans": 3}},
    "preprocessor_config.json": PATCHES | EDGES,
}
TRANSFORMERS_5: Files = {
    "config.json": {"text_config": LANGUAGE | {"head_dim": None}, "vision_config": VISION},
    "processor_config.json": {"image_processor": PATCHES | EDGES | {"min_pixels": None, "max_pixels": None}},
}
SIZE_IN_PIXELS: Files = {
    "config.json": LANGUAGE | {"vision_config": VISION, "head_dim": 128},
    "preprocessor_config.json": PATCHES | {"size": PIXELS},
}


def model_folder(folder: Path, files: Files) -> Path:
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


def changed(files: Files, path: str, value: object) -> Files:
    """A copy with another value at a dotted path; None takes the key away."""
    copy: Any = json.loads(json.dumps(files))
    name, *keys = path.split("/")
    table = copy[name]
    for key in keys[:-1]:
        table = table[key]
    if value is None:
        del table[keys[-1]]
    else:
        table[keys[-1]] = value
    return dict(copy)


@pytest.mark.parametrize(
    "files",
    [TRANSFORMERS_4, TRANSFORMERS_4_SHORT, TRANSFORMERS_5, SIZE_IN_PIXELS],
    ids=["4", "4s", "5", "px"],
)
def test_the_model_of_the_profile_passes(files: Files, tmp_path: Path) -> None:
    check_model_folder(load_profile(), model_folder(tmp_path, files))


@pytest.mark.parametrize(
    ("files", "path", "value", "told"),
    [
        (TRANSFORMERS_4, "config.json/num_hidden_layers", 36, "layers is 28 in the profile and 36"),
        (TRANSFORMERS_5, "config.json/text_config/num_hidden_layers", 36, "layers is 28 in the profile and 36"),
        (TRANSFORMERS_4, "config.json/num_key_value_heads", 8, "kv_heads is 4 in the profile and 8"),
        (TRANSFORMERS_4, "config.json/num_key_value_heads", None, "kv_heads is 4 in the profile and 28"),
        (TRANSFORMERS_4, "config.json/hidden_size", 7168, "head_dim is 128 in the profile and 256"),
        (TRANSFORMERS_4, "config.json/num_hidden_layers", None, "config.json has no num_hidden_layers"),
        (TRANSFORMERS_5, "config.json/text_config/max_position_embeddings", 32_768, "128000 in the profile"),
        (TRANSFORMERS_4, "config.json/vision_config/patch_size", 16, "family.patch_px is 14"),
        (TRANSFORMERS_4, "config.json/vision_config/spatial_merge_size", 1, "family.merge_size is 2"),
        (TRANSFORMERS_4_SHORT, "preprocessor_config.json/patch_size", 16, "family.patch_px is 14"),
        (TRANSFORMERS_4_SHORT, "preprocessor_config.json/patch_size", None, "nothing says patch_px"),
        (TRANSFORMERS_4, "preprocessor_config.json/max_pixels", 1_003_520, "12845056 in the profile and 1003520"),
        (TRANSFORMERS_4, "preprocessor_config.json/min_pixels", None, "nothing says processor_min_pixels"),
        (TRANSFORMERS_4_SHORT, "preprocessor_config.json/size/shortest_edge", 65_536, "3136 in the profile and 65536"),
        (TRANSFORMERS_5, "processor_config.json/image_processor/size/longest_edge", 9, "12845056 in the profile and 9"),
    ],
)  # fmt: skip
def test_a_difference_names_both_values(
    files: Files, path: str, value: object, told: str, tmp_path: Path
) -> None:
    with pytest.raises(ProfileInvalid) as caught:
        check_model_folder(load_profile(), model_folder(tmp_path, changed(files, path, value)))
    assert told in str(caught.value)


def test_all_differences_come_at_once(tmp_path: Path) -> None:
    """The folder is that of a Qwen3-VL, so nearly nothing fits."""
    language = LANGUAGE | {
        "num_hidden_layers": 36,
        "num_key_value_heads": 8,
        "num_attention_heads": 32,
        "max_position_embeddings": 262_144,
        "head_dim": 128,
    }
    files: Files = {
        "config.json": {"text_config": language, "vision_config": VISION | {"patch_size": 16}},
        "preprocessor_config.json": PATCHES
        | {"patch_size": 16, "size": {"shortest_edge": 65_536, "longest_edge": 16_777_216}},
    }
    folder = model_folder(tmp_path, files)
    check_model_folder(load_profile("qwen3-vl-8b-fp8"), folder)
    with pytest.raises(ProfileInvalid) as caught:
        check_model_folder(load_profile(), folder)
    for key in (
        "layers",
        "attention_heads",
        "kv_heads",
        "context_tokens",
        "patch_px",
        "processor_max_pixels",
    ):
        assert f"{key} is " in str(caught.value)
    assert "head_dim is" not in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "preprocessor_config.json"])
@pytest.mark.parametrize("content", [None, b"{", b"[1]", b"\xff\xfe"])
def test_a_file_that_is_missing_or_broken_is_named(name: str, content: bytes | None, tmp_path: Path) -> None:
    folder = model_folder(tmp_path, TRANSFORMERS_4)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(ProfileInvalid) as caught:
        check_model_folder(load_profile(), folder)
    assert str(folder / name) in str(caught.value)
