"""Whole runs of the command line against a real vLLM: what a page becomes, and what is booked.

Random weights answer noise. A gateway before the service has it answer with a known text instead, word for word.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from PIL import Image
from prometheus_client.parser import text_string_to_metric_families

from models.page import Route
from models.transcription import DegradedCode, Verdict
from pipeline.planning.plan_wishes import IMAGE_MARK_TOKENS
from tests.acceptance.test_command_line import run_doctriage
from tests.fakes.pages import write_tiff
from tests.vllm.calls import prompt_tokens
from tests.vllm.gateway import AddingGateway
from tests.vllm.server import KEY, VllmEnvironment, VllmServer, running_server
from tests.vllm.sheets import LINES, PROSE, SHEETS, TABLE, ruled_table, sheet
from workers.retry import CONTENT_FAULTS, SERVICE_FAULTS
from workers.vllm_metrics import metrics_from

ONE_FAMILY = pytest.mark.parametrize("family", ["qwen2.5-vl"], indirect=True)
"""For what does not depend on the model: starting the command line takes ten seconds."""

FRONT_MATTER: Final = "---\nlanguage: en\nrotation: 0\nblank: false\n---\n"
FEW_OUTPUT_TOKENS: Final = 24
ENDLESS_TOKENS: Final = 12_000
"""More than the service writes before it is killed."""

WAIT_S: Final = 3
DEADLINE_S: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that ended well: its pages as the output has them, and its Markdown."""

    said: str
    pages: Sequence[Mapping[str, Any]]
    markdown: str

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [attempt for page in self.pages for attempt in page["attempts"]]

    @property
    def verdicts(self) -> set[str]:
        return {call["verdict"] for call in self.calls}

    @property
    def ends(self) -> list[str]:
        """Of each page: the route, or the code of why it has the CPU's text."""
        return [page["degraded"]["code"] if page["degraded"] else page["route"] for page in self.pages]


class Bench:
    """A document, and the folders of the runs that read it."""

    def __init__(self, folder: Path, pages: Sequence[Image.Image]) -> None:
        self.folder = folder
        self.document = write_tiff(folder / "in" / "a.tif", pages)

    def run(self, url: str, plan_file: Path, *options: str, key: str = KEY) -> Run:
        out = self.folder / "out"
        ended = run_doctriage(
            *("ingest", self.document, "--out", out, "--lang", "eng"),
            *("--vlm-url", url, "--plan", plan_file, "--vlm-wait", str(WAIT_S)),
            *options,
            home=self.folder / "home",
            DOCTRIAGE_VLM__API_KEY=key,
        )
        said = ended.stdout + ended.stderr
        assert ended.returncode == 0, said
        return Run(
            said=said,
            pages=json.loads((out / "a.tif.json").read_bytes())["pages"],
            markdown=(out / "a.tif.md").read_text(encoding="utf-8"),
        )


@contextmanager
def answering(server: VllmServer, *answers: str) -> Iterator[AddingGateway]:
    """A gateway through which the n-th page is answered with the n-th text."""

    def forced(page_number: int) -> dict[str, object]:
        return {"structured_outputs": {"choice": [FRONT_MATTER + answers[page_number - 1]]}}

    with AddingGateway(server.origin, forced) as gateway:
        yield gateway


def served_tokens(server: VllmServer) -> Counter[str]:
    """vLLM's own counters: calls that it answered, tokens that it read and wrote."""
    names = {
        "vllm:request_success_total": "calls",
        "vllm:prompt_tokens_total": "prompt",
        "vllm:generation_tokens_total": "completion",
    }
    text = httpx2.get(f"{server.origin}/metrics", trust_env=False).text
    served: Counter[str] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in names:
                served[names[sample.name]] += int(sample.value)
    return served


def booked_tokens(run: Run) -> Counter[str]:
    booked = Counter({"calls": len(run.calls)})
    for call in run.calls:
        booked += Counter(prompt=call["prompt_tokens"], completion=call["completion_tokens"])
    return booked


def test_every_page_becomes_the_text_that_vllm_answers_and_costs_what_was_predicted(
    server: VllmServer, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, [sheet(*one) for one in SHEETS])
    before = served_tokens(server)
    with answering(server, *(f"# Sheet {number}\n\n{PROSE}" for number in range(1, 5))) as gateway:
        run = bench.run(gateway.base_url, server.plan_file, "--route", "vlm")
    assert run.ends == [Route.VLM] * 4
    for number, page in enumerate(run.pages, start=1):
        assert page["markdown"].strip() == f"# Sheet {number}\n\n{PROSE}"
        assert page["markdown"].strip() in run.markdown
    assert run.verdicts == {Verdict.ACCEPTED}
    assert [call["tier"] for call in run.calls] == [tier.name for tier in server.plan.tiers]
    assert len({(call["width_px"], call["height_px"]) for call in run.calls}) == 4
    assert booked_tokens(run) == served_tokens(server) - before
    text_tokens = prompt_tokens(server, page_count=1)
    for call in run.calls:
        billed = call["prompt_tokens"] - text_tokens - IMAGE_MARK_TOKENS
        assert (call["predicted_visual_tokens"], call["usage_is_estimated"]) == (billed, False)
    assert {call["request_id"]: call["completion_tokens"] for call in run.calls} == {
        passed.request_id: passed.usage["completion_tokens"] for passed in gateway.passed
    }
    assert gateway.paths == {"/v1/chat/completions", "/metrics"}


@ONE_FAMILY
def test_triage_sends_the_table_and_keeps_the_prose(server: VllmServer, tmp_path: Path) -> None:
    bench = Bench(tmp_path, [sheet((1654, 2339), 36), ruled_table()])
    with answering(server, "never asked", TABLE) as gateway:
        run = bench.run(gateway.base_url, server.plan_file, "--route", "auto")
    assert run.ends == [Route.OCR, Route.VLM]
    assert run.pages[1]["markdown"].strip() == TABLE
    assert LINES[0] in run.markdown
    assert [passed.request_id for passed in gateway.passed] == [call["request_id"] for call in run.calls]


@ONE_FAMILY
def test_noise_is_refused_and_every_call_is_booked(server: VllmServer, tmp_path: Path) -> None:
    """The server's plan, with less room for an answer: that is the client's to ask for."""
    plan = server.plan.model_copy(update={"max_output_tokens": FEW_OUTPUT_TOKENS})
    assert plan.serve_command() == server.plan.serve_command()
    plan_file = tmp_path / "plan.json"
    plan_file.write_text(plan.to_json(), encoding="utf-8")
    bench, before = Bench(tmp_path, [sheet(*one) for one in SHEETS[:2]]), served_tokens(server)
    run = bench.run(server.base_url, plan_file, "--route", "vlm")
    assert run.ends == [DegradedCode.ANSWERS_REFUSED] * 2
    assert run.verdicts <= CONTENT_FAULTS
    assert all(call["completion_tokens"] <= FEW_OUTPUT_TOKENS for call in run.calls)
    assert booked_tokens(run) == served_tokens(server) - before
    assert all(LINES[0][:20] in page["markdown"] for page in run.pages)


@ONE_FAMILY
def test_a_wrong_key_costs_nothing_and_says_which_setting_to_correct(
    server: VllmServer, tmp_path: Path
) -> None:
    bench, before = Bench(tmp_path, [sheet(*one) for one in SHEETS[:2]]), served_tokens(server)
    run = bench.run(server.base_url, server.plan_file, "--route", "vlm", key="sk-of-somebody-else")
    assert run.ends == [DegradedCode.VLM_REFUSED] * 2
    assert all("DOCTRIAGE_VLM__API_KEY" in page["degraded"]["message"] for page in run.pages)
    assert run.verdicts == {Verdict.UNAUTHORISED}
    assert booked_tokens(run) == Counter(calls=2)
    assert served_tokens(server) == before
    assert "sk-of-somebody-else" not in run.said


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallen:
    """The address of a service that was killed, and the run in whose midst that was."""

    base_url: str
    plan_file: Path
    run: Run


@pytest.fixture(scope="module")
def fallen(environment: VllmEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Fallen:
    """The first page is answered; over the others the service broods until it is killed."""
    bench = Bench(tmp_path_factory.mktemp("fallen"), [sheet(*one) for one in SHEETS])

    def added(page_number: int) -> Mapping[str, object]:
        endless = {"ignore_eos": True, "max_tokens": ENDLESS_TOKENS}
        return {"structured_outputs": {"choice": [PROSE]}} if page_number == 1 else endless

    with (
        running_server(environment, "qwen2.5-vl", name="killed") as server,
        AddingGateway(server.origin, added) as gateway,
        ThreadPoolExecutor(1) as killer,
    ):
        killed = killer.submit(kill_in_the_midst, server, gateway)
        run = bench.run(gateway.base_url, server.plan_file, "--route", "vlm")
        killed.result()
        assert not gateway.is_up
        return Fallen(base_url=server.base_url, plan_file=server.plan_file, run=run)


def kill_in_the_midst(server: VllmServer, gateway: AddingGateway) -> None:
    """When one call is answered, and others are being worked on."""
    deadline_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline_s:
        load = metrics_from(httpx2.get(f"{server.origin}/metrics", trust_env=False).text)
        if gateway.passed and load is not None and load.running > 0:
            os.killpg(server.process_group, signal.SIGKILL)
            return
        time.sleep(0.1)
    raise TimeoutError("the service was never in the midst of a call")


def test_a_service_killed_in_the_midst_of_a_run_costs_no_page(fallen: Fallen) -> None:
    assert fallen.run.ends == [Route.VLM] + [DegradedCode.VLM_UNAVAILABLE] * 3
    assert fallen.run.pages[0]["markdown"].strip() == PROSE
    assert all(LINES[0][:20] in page["markdown"] for page in fallen.run.pages)
    calls = [call for page in fallen.run.pages[1:] for call in page["attempts"]]
    over_before_the_kill = {Verdict.TRUNCATED}
    assert {call["verdict"] for call in calls} <= SERVICE_FAULTS | over_before_the_kill
    cut_off = [call for call in calls if call["verdict"] == Verdict.CONNECTION_LOST]
    assert cut_off
    for call in cut_off:
        assert call["usage_is_estimated"]
        assert call["prompt_tokens"] > call["predicted_visual_tokens"]


def test_a_service_that_is_down_from_the_start_costs_no_page(fallen: Fallen, tmp_path: Path) -> None:
    bench = Bench(tmp_path, [sheet(*one) for one in SHEETS[:2]])
    run = bench.run(fallen.base_url, fallen.plan_file, "--route", "vlm")
    assert run.ends == [DegradedCode.VLM_UNAVAILABLE] * 2
    assert run.verdicts == {Verdict.UNREACHABLE}
    assert booked_tokens(run) == Counter(calls=len(run.calls))
    assert all(LINES[0][:20] in page["markdown"] for page in run.pages)
