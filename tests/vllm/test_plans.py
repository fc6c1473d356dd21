"""What ``doctriage plan`` prints for each shipped profile is a command that vLLM takes, as it was meant."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from pipeline.planning.gpus import gpu_named
from pipeline.planning.model_profiles import load_profile, profile_names
from pipeline.planning.plan_wishes import PlanWishes
from pipeline.planning.planner import make_plan
from pipeline.planning.serving_plan import KvDtype, ServingPlan
from tests.vllm.server import VllmEnvironment

PARSER = Path(__file__).with_name("parse_commands.py")


def meant(plan: ServingPlan) -> dict[str, object]:
    return {
        "model_tag": plan.checkpoint,
        "served_model_name": [plan.model_id],
        "max_model_len": plan.context_tokens,
        "limit_mm_per_prompt": {"image": plan.max_images_per_prompt, "video": 0},
        "mm_processor_kwargs": {"min_pixels": plan.min_pixels, "max_pixels": plan.max_pixels},
        "max_num_batched_tokens": plan.max_batched_tokens,
        "max_num_seqs": plan.concurrency,
        "max_num_queued_reqs": plan.max_queued_requests,
        "kv_cache_dtype": plan.kv_dtype,
        "tensor_parallel_size": plan.gpu_count,
        "scheduling_policy": "priority",
        "generation_config": "vllm",
        "enable_prompt_tokens_details": True,
    }


def test_vllm_understands_every_plan_as_it_was_meant(environment: VllmEnvironment) -> None:
    plans = [
        make_plan(
            load_profile(name), PlanWishes(gpu=gpu_named("h100-80gb"), gpu_count=gpus, kv_dtype=kv_dtype)
        )
        for name in profile_names()
        for gpus, kv_dtype in ((1, KvDtype.FP8), (2, KvDtype.AUTO))
    ]
    answer = subprocess.run(
        [environment.python, PARSER],
        input=json.dumps([plan.serve_command() for plan in plans]),
        env=environment.variables(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr[-2_000:]
    for plan, understood in zip(plans, json.loads(answer.stdout), strict=True):
        expected = meant(plan)
        assert {name: understood[name] for name in expected} == expected, plan.profile
