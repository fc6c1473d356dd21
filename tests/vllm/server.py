"""A real vLLM on the processor, started as in production: a plan file, and ``deploy/vllm/serve.sh``."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2

from pipeline.planning.gpus import gpu_named
from pipeline.planning.model_profiles import load_profile
from pipeline.planning.plan_wishes import PlanWishes
from pipeline.planning.planner import make_plan
from pipeline.planning.serving_plan import KvDtype, ServingPlan, read_plan
from pipeline.visual_tokens import VisualTokenBudget

ROOT: Final = Path(__file__).parent.parent.parent
SERVE: Final = ROOT / "deploy" / "vllm" / "serve.sh"
LOGS: Final = ROOT / "build" / "test-vllm"
KEY: Final = "sk-of-the-tests-4711"
PROFILES: Final = {"qwen2.5-vl": "qwen2.5-vl-7b-fp8", "qwen3-vl": "qwen3-vl-8b-fp8"}
"""By the family of the tiny checkpoint."""

CPU_FLAGS: Final = ("--enforce-eager", "--kv-cache-dtype", "auto")
"""What the processor asks for beyond the plan: nothing is compiled (that takes minutes), and the KV cache is not in
FP8, which vLLM can only do on a processor with AVX-512."""

START_TIMEOUT_S: Final = 540
STOP_TIMEOUT_S: Final = 30
LOG_TAIL_LINES: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmEnvironment:
    """What ``make test-vllm`` builds: an environment with vLLM, and the checkpoints beside it."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def checkpoint(self, family: str) -> Path:
        return self.folder / "checkpoints" / family

    def variables(self) -> dict[str, str]:
        """Those of this process, with nothing of vLLM's but what these tests set. No hub is asked for anything."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("VLLM")}
        return kept | {
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{kept.get('PATH', os.defpath)}",
            "HF_HUB_OFFLINE": "1",
            "VLLM_CACHE_ROOT": str(self.folder / "cache"),
            "VLLM_CPU_KVCACHE_SPACE": "1",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmServer:
    """A running service. ``base_url`` is the address up to ``/v1``; ``process_group`` holds all its processes."""

    plan: ServingPlan
    plan_file: Path
    origin: str
    process_group: int

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    @property
    def budget(self) -> VisualTokenBudget:
        """The bounds of the server's own resize."""
        return self.plan.budget_of(self.plan.tiers[-1])


def plan_for(family: str) -> ServingPlan:
    """Production's plan on one H100, with two pages a prompt and so few requests at a time that a queue is soon
    full."""
    wishes = PlanWishes(gpu=gpu_named("h100-80gb"), pages_per_prompt=2, concurrency=3, kv_dtype=KvDtype.FP8)
    return make_plan(load_profile(PROFILES[family]), wishes)


@contextmanager
def running_server(
    environment: VllmEnvironment, family: str, *, name: str | None = None
) -> Iterator[VllmServer]:
    """Started from a plan file, healthy when it is given, and gone with all its processes afterwards. Its files are
    named for the family, or ``name``."""
    LOGS.mkdir(parents=True, exist_ok=True)
    name, port = name or family, _free_port()
    plan_file, log_file = LOGS / f"{name}.plan.json", LOGS / f"{name}.log"
    plan_file.write_text(plan_for(family).to_json(), encoding="utf-8")
    variables = {"VLLM_MODEL": str(environment.checkpoint(family)), "VLLM_API_KEY": KEY}
    with log_file.open("wb") as log:
        launched = subprocess.Popen(
            [SERVE, plan_file, *CPU_FLAGS, "--host", "127.0.0.1", "--port", str(port)],
            env=environment.variables() | variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _leave_one_processor_free(launched.pid)
    server = VllmServer(
        plan=read_plan(plan_file),
        plan_file=plan_file,
        origin=f"http://127.0.0.1:{port}",
        process_group=launched.pid,
    )
    try:
        _wait_until_healthy(server, launched, log_file)
        yield server
    finally:
        _stop(launched)


def _leave_one_processor_free(pid: int) -> None:
    """vLLM's processes wait for each other by asking again and again: on every processor they keep whoever asks them
    something from running at all."""
    _, *others = sorted(os.sched_getaffinity(0))
    if others:
        os.sched_setaffinity(pid, others)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_healthy(server: VllmServer, launched: subprocess.Popen[bytes], log_file: Path) -> None:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    with httpx2.Client(base_url=server.origin, trust_env=False, timeout=5) as client:
        while time.monotonic() < deadline_s and launched.poll() is None:
            with suppress(httpx2.TransportError):
                if client.get("/health").is_success:
                    return
            time.sleep(0.5)
    ended = "did not get ready" if launched.poll() is None else f"ended with {launched.returncode}"
    tail = log_file.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:]
    raise RuntimeError("\n".join([f"vLLM {ended}; the end of {log_file}:", *tail]))


def _stop(launched: subprocess.Popen[bytes]) -> None:
    """Ends the whole process group: vLLM's engine and its worker are processes of their own."""
    for step in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(launched.pid, step)
        deadline_s = time.monotonic() + STOP_TIMEOUT_S
        while time.monotonic() < deadline_s:
            launched.poll()
            if not _is_alive(launched.pid):
                return
            time.sleep(0.2)


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
