"""A model profile compared with a checkpoint's own files, so that the plan is made for what will be loaded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from models.errors import ProfileInvalid
from pipeline.planning.model_profiles import ModelProfile

Table = Mapping[str, object]

_TEXT_KEYS: Final = {
    "layers": "num_hidden_layers",
    "attention_heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "context_tokens": "max_position_embeddings",
}
"""Keys of the profile, and of the language model in ``config.json``."""


def check_model_folder(profile: ModelProfile, folder: Path) -> None:
    """Raises ProfileInvalid with every value on which profile and folder differ, or with what cannot be read.

    Reads ``config.json``, where transformers 5 keeps the language model under ``text_config`` and transformers 4
    mostly does not, and ``preprocessor_config.json``, which transformers 5 writes as ``image_processor`` in
    ``processor_config.json``.
    """
    config, processor = _json_table(folder / "config.json"), _image_processor(folder)
    faults = [*_text_faults(profile, config), *_image_faults(profile, config, processor)]
    if faults:
        raise ProfileInvalid(
            f"profile {profile.name} does not fit {folder}: {'; '.join(faults)}; "
            "correct a copy of the profile and name its path, or choose the profile of this model"
        )


def _json_table(path: Path) -> Table:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProfileInvalid(
            f"{path}: {error.strerror}; name the folder that holds the model's config.json"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ProfileInvalid(f"{path}: no JSON ({error}); download the model again") from error
    if not isinstance(content, dict):
        raise ProfileInvalid(f"{path}: no JSON object; download the model again")
    return content


def _image_processor(folder: Path) -> Table:
    combined = folder / "processor_config.json"
    if not (folder / "preprocessor_config.json").exists() and combined.exists():
        return _part(_json_table(combined), "image_processor")
    return _json_table(folder / "preprocessor_config.json")


def _part(table: Table, key: str) -> Table:
    part = table.get(key)
    return part if isinstance(part, dict) else {}


def _text_faults(profile: ModelProfile, config: Table) -> Iterator[str]:
    found = {**config, **_part(config, "text_config")}
    if found.get("num_key_value_heads") is None:
        found["num_key_value_heads"] = found.get("num_attention_heads")
    if found.get("head_dim") is None:
        found["head_dim"] = _head_dim(found)
    for key, theirs in _TEXT_KEYS.items():
        ours = getattr(profile, key)
        if ours is None:
            continue
        if found.get(theirs) is None:
            yield f"config.json has no {theirs}"
        elif ours != found[theirs]:
            yield _difference(key, ours, f"config.json {theirs}", found[theirs])


def _head_dim(config: Table) -> int | None:
    """Configs of transformers leave it out where it follows from the width."""
    width, heads = config.get("hidden_size"), config.get("num_attention_heads")
    return width // heads if isinstance(width, int) and isinstance(heads, int) and heads > 0 else None


def _image_faults(profile: ModelProfile, config: Table, processor: Table) -> Iterator[str]:
    vision, size = _part(config, "vision_config"), _part(processor, "size")
    stated: dict[str, tuple[tuple[str, object], ...]] = {
        "patch_px": (
            ("config.json vision_config.patch_size", vision.get("patch_size")),
            ("image processor patch_size", processor.get("patch_size")),
        ),
        "merge_size": (
            ("config.json vision_config.spatial_merge_size", vision.get("spatial_merge_size")),
            ("image processor merge_size", processor.get("merge_size")),
        ),
        "processor_min_pixels": (_first(processor, size, "min_pixels", "shortest_edge"),),
        "processor_max_pixels": (_first(processor, size, "max_pixels", "longest_edge"),),
    }
    for key, sources in stated.items():
        ours = getattr(profile.family, key)
        said = [(where, value) for where, value in sources if value is not None]
        if not said:
            yield f"nothing says {key} ({', '.join(where for where, _ in sources)})"
        yield from (_difference(f"family.{key}", ours, *theirs) for theirs in said if theirs[1] != ours)


def _first(processor: Table, size: Table, bound: str, edge: str) -> tuple[str, object]:
    """Where the pixel bound stands, and its value. The processor itself prefers its own key to ``size``."""
    places = (
        (f"image processor {bound}", processor.get(bound)),
        (f"image processor size.{edge}", size.get(edge)),
        (f"image processor size.{bound}", size.get(bound)),
    )
    return next((place for place in places if place[1] is not None), places[0])


def _difference(key: str, ours: object, where: str, theirs: object) -> str:
    return f"{key} is {ours} in the profile and {theirs} in the folder ({where})"
