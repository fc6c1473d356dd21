"""Makes tiny checkpoints of both model families: ``python tests/vllm/tiny_checkpoints.py FOLDER``.

Run by the Python of vLLM's environment, which has torch and transformers. Each checkpoint is a folder as a hub delivers
it, about a megabyte: the published image processor's settings, the special tokens and layout of the published chat
template, and a network of the right class with few, random weights. It answers noise; only its arithmetic is real.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import (
    PreTrainedModel,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)
from transformers.utils.logging import disable_progress_bar

HERE = Path(__file__).parent
TRAINING_TEXT = HERE.parent.parent / "LICENSE"
SEED = 2_026
VOCABULARY_TOKENS = 512
CONTEXT_TOKENS = 128_000
SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
# A head of 32 is the smallest that vLLM's attention on a processor knows.
HEAD_DIM = 32
TEXT_NETWORK: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": CONTEXT_TOKENS,
}
VISION_NETWORK: dict[str, Any] = {
    "depth": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_heads": 2,
    "out_hidden_size": 64,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
}
# The preprocessor_config.json of the published checkpoints.
QWEN2_5_IMAGES: dict[str, Any] = {
    "image_processor_type": "Qwen2VLImageProcessor",
    "processor_class": "Qwen2_5_VLProcessor",
    "min_pixels": 3_136,
    "max_pixels": 12_845_056,
    "patch_size": 14,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
QWEN3_IMAGES: dict[str, Any] = {
    "image_processor_type": "Qwen2VLImageProcessorFast",
    "processor_class": "Qwen3VLProcessor",
    "size": {"shortest_edge": 65_536, "longest_edge": 16_777_216},
    "patch_size": 16,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}


def trained_tokenizer() -> Tokenizer:
    """A byte-level BPE: any text can be written, so any text can be forced as an answer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_TOKENS - len(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train([str(TRAINING_TEXT)], trainer)
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


def token_ids(tokenizer: Tokenizer) -> dict[str, int]:
    """The ids that a configuration names, by the key it names them with."""
    named = {
        "image_token_id": "<|image_pad|>",
        "video_token_id": "<|video_pad|>",
        "vision_start_token_id": "<|vision_start|>",
        "vision_end_token_id": "<|vision_end|>",
    }
    return {key: tokenizer.token_to_id(token) for key, token in named.items()}


def rope(sections: list[int]) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": 1_000_000.0, "mrope_section": sections}


def text_network(tokenizer: Tokenizer) -> dict[str, Any]:
    return TEXT_NETWORK | {
        "vocab_size": tokenizer.get_vocab_size(),
        "bos_token_id": tokenizer.token_to_id("<|endoftext|>"),
        "eos_token_id": tokenizer.token_to_id("<|im_end|>"),
        "pad_token_id": tokenizer.token_to_id("<|endoftext|>"),
    }


def qwen2_5_vl(tokenizer: Tokenizer) -> PreTrainedModel:
    config = Qwen2_5_VLConfig(
        text_config=text_network(tokenizer) | {"rope_parameters": rope([4, 6, 6])},
        vision_config=VISION_NETWORK | {"patch_size": 14, "window_size": 112, "fullatt_block_indexes": [1]},
        **token_ids(tokenizer),
    )
    return Qwen2_5_VLForConditionalGeneration(config)


def qwen3_vl(tokenizer: Tokenizer) -> PreTrainedModel:
    config = Qwen3VLConfig(
        text_config=text_network(tokenizer)
        | {"head_dim": HEAD_DIM, "rope_parameters": rope([6, 5, 5]) | {"mrope_interleaved": True}},
        vision_config=VISION_NETWORK
        | {"patch_size": 16, "num_position_embeddings": 2_304, "deepstack_visual_indexes": [0]},
        **token_ids(tokenizer),
    )
    return Qwen3VLForConditionalGeneration(config)


FAMILIES = {
    "qwen2.5-vl": (qwen2_5_vl, QWEN2_5_IMAGES),
    "qwen3-vl": (qwen3_vl, QWEN3_IMAGES),
}


def write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def write_tokenizer(folder: Path, tokenizer: Tokenizer, processor_class: str) -> None:
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "Qwen2Tokenizer",
        "processor_class": processor_class,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "model_max_length": CONTEXT_TOKENS,
    }
    write_json(folder / "tokenizer_config.json", settings)


def write_checkpoint(folder: Path, family: str) -> None:
    build, images = FAMILIES[family]
    torch.manual_seed(SEED)
    tokenizer = trained_tokenizer()
    model = build(tokenizer).to(torch.bfloat16)
    model.save_pretrained(folder)
    write_tokenizer(folder, tokenizer, images["processor_class"])
    write_json(folder / "preprocessor_config.json", images)
    template = (HERE / "chat_templates" / f"{family}.jinja").read_text(encoding="utf-8")
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


def main(folder: Path) -> None:
    disable_progress_bar()
    for family in FAMILIES:
        write_checkpoint(folder / family, family)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
