"""Whole runs of the command line against a real vLLM: what a page becomes, and what is booked.

Random weights answer noise. A gateway before the service has it answer with a known text instead, word for word.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from PIL import Image, ImageDraw, ImageFont
from prometheus_client.parser import text_string_to_metric_families

from models.page import Route
from models.transcription import DegradedCode, Verdict
from pipeline.planning.plan_wishes import IMAGE_MARK_TOKENS
from tests.acceptance.test_command_line import DOCTRIAGE, run_doctriage
from tests.fakes.pages import write_tiff
from tests.vllm.calls import prompt_tokens
from tests.vllm.gateway import AddingGateway
from tests.vllm.server import KEY, VllmEnvironment, VllmServer, running_server
from workers.retry import CONTENT_FAULTS, SERVICE_FAULTS

LINES: Final = (
    "The ferry leaves the harbour at nine and returns before dark.",
    "Passengers with bicycles wait beside the yellow gate until called.",
    "Children under seven travel free when accompanied by an adult.",
    "Dogs must be kept on a short lead throughout the crossing.",
    "Hot meals are served in the upper saloon from half past eleven.",
    "In stormy weather the captain may cancel any sailing without notice.",
    "Lost property can be collected from the office near the lighthouse.",
    "Season tickets are sold every Monday between eight and twelve.",
)
FRONT_MATTER: Final = "---\nlanguage: en\nrotation: 0\nblank: false\n---\n"
PROSE: Final = "\n\n".join(LINES)

SHEETS: Final = (
    ((1654, 2339), 72),
    ((1700, 2200), 38),
    ((2339, 1654), 32),
    ((1654, 2100), 24),
)
"""Sizes in pixels, and the size of the type: the smaller it is, the more tokens the page is worth."""

CELLS: Final = (
    ("Sailing", "Harbour", "Island", "Bicycles", "Fare"),
    ("Morning", "09:15", "10:40", "twelve", "14.50"),
    ("Midday", "12:30", "13:55", "twenty", "16.20"),
    ("Evening", "18:45", "20:10", "eight", "14.50"),
    ("Night", "22:05", "23:30", "none", "19.80"),
    ("Special", "07:20", "08:45", "thirty", "11.75"),
)
TABLE: Final = (
    "<table>"
    + "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in CELLS)
    + "</table>"
)

FEW_OUTPUT_TOKENS: Final = 24
WAIT_S: Final = 3
DEADLINE_S: Final = 120


def sheet(size_px: tuple[int, int], type_px: int) -> Image.Image:
    image = Image.new("L", size_px, 255)
    font, draw = ImageFont.load_default(type_px), ImageDraw.Draw(image)
    for row, line in enumerate(LINES):
        for half, words in enumerate(_halves(line, is_cut=type_px > 50)):
            draw.text((100, 120 + (2 * row + half) * type_px * 1.6), words, fill=0, font=font)
    return image


def _halves(line: str, *, is_cut: bool) -> tuple[str, ...]:
    """Large print takes two lines for one."""
    middle = line.rindex(" ", 0, len(line) // 2 + 4)
    return (line[:middle], line[middle + 1 :]) if is_cut else (line,)


def ruled_table() -> Image.Image:
    image, (left, top, width, height) = Image.new("L", (1654, 1200), 255), (150, 150, 260, 90)
    font, draw = ImageFont.load_default(36), ImageDraw.Draw(image)
    for row, cells in enumerate(CELLS):
        for column, cell in enumerate(cells):
            x, y = left + column * width, top + row * height
            draw.rectangle((x, y, x + width, y + height), outline=0, width=3)
            draw.text((x + 20, y + 22), cell, fill=0, font=font)
    return image


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that has ended: its pages as the output has them, and its Markdown."""

    exit_status: int
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

    def arguments(self, url: str, plan_file: Path, *options: str) -> list[str | Path]:
        vlm = ("--vlm-url", url, "--plan", plan_file, "--vlm-wait", str(WAIT_S), "--lang", "eng")
        return ["ingest", self.document, "--out", self.folder / "out", *vlm, *options]

    def run(self, url: str, plan_file: Path, *options: str, key: str = KEY) -> Run:
        ended = run_doctriage(
            *self.arguments(url, plan_file, *options),
            home=self.folder / "home",
            DOCTRIAGE_VLM__API_KEY=key,
        )
        return self.ended(ended.returncode, ended.stdout + ended.stderr)

    def ended(self, exit_status: int, said: str) -> Run:
        out = self.folder / "out"
        assert exit_status == 0, said
        return Run(
            exit_status=exit_status,
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
    assert len({call["tier"] for call in run.calls}) >= 3
    assert len({(call["width_px"], call["height_px"]) for call in run.calls}) == 4
    assert booked_tokens(run) == served_tokens(server) - before
    text_tokens = prompt_tokens(server, page_count=1)
    for call in run.calls:
        billed = call["prompt_tokens"] - text_tokens - IMAGE_MARK_TOKENS
        assert (call["predicted_visual_tokens"], call["usage_is_estimated"]) == (billed, False)
    assert {call["request_id"]: call["completion_tokens"] for call in run.calls} == {
        passed.request_id: passed.usage["completion_tokens"] for passed in gateway.passed
    }


def test_triage_sends_the_table_and_keeps_the_prose(server: VllmServer, tmp_path: Path) -> None:
    bench = Bench(tmp_path, [sheet((1654, 2339), 36), ruled_table()])
    with answering(server, "never asked", TABLE) as gateway:
        run = bench.run(gateway.base_url, server.plan_file, "--route", "auto")
    assert run.ends == [Route.OCR, Route.VLM]
    assert run.pages[1]["markdown"].strip() == TABLE
    assert LINES[0] in run.markdown
    assert [passed.request_id for passed in gateway.passed] == [call["request_id"] for call in run.calls]


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
        return {"structured_outputs": {"choice": [PROSE]}} if page_number == 1 else {"ignore_eos": True}

    with (
        running_server(environment, "qwen2.5-vl", name="killed") as server,
        AddingGateway(server.origin, added) as gateway,
    ):
        command = [DOCTRIAGE, *bench.arguments(gateway.base_url, server.plan_file, "--route", "vlm")]
        variables = {"DOCTRIAGE_HOME": str(bench.folder / "home"), "DOCTRIAGE_VLM__API_KEY": KEY}
        with subprocess.Popen(
            command, env=os.environ | variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as started:
            wait_until_in_the_midst(server, gateway)
            os.killpg(server.process_group, signal.SIGKILL)
            said, _ = started.communicate(timeout=DEADLINE_S)
        assert not gateway.is_up
        return Fallen(
            base_url=server.base_url, plan_file=server.plan_file, run=bench.ended(started.returncode, said)
        )


def wait_until_in_the_midst(server: VllmServer, gateway: AddingGateway) -> None:
    """One call is answered, others are being worked on."""
    deadline_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline_s:
        text = httpx2.get(f"{server.origin}/metrics", trust_env=False).text
        idle = "vllm:num_requests_running{" not in text or "} 0.0" in text.split("num_requests_running{")[1]
        if gateway.passed and not idle:
            return
        time.sleep(0.1)
    raise TimeoutError("the service was never in the midst of a call")


def test_a_service_killed_in_the_midst_of_a_run_costs_no_page(fallen: Fallen) -> None:
    assert fallen.run.ends == [Route.VLM] + [DegradedCode.VLM_UNAVAILABLE] * 3
    assert fallen.run.pages[0]["markdown"].strip() == PROSE
    assert all(LINES[0][:20] in page["markdown"] for page in fallen.run.pages)
    lost = [call["verdict"] for page in fallen.run.pages[1:] for call in page["attempts"]]
    assert set(lost) <= SERVICE_FAULTS
    assert Verdict.CONNECTION_LOST in lost


def test_a_service_that_is_down_from_the_start_costs_no_page(fallen: Fallen, tmp_path: Path) -> None:
    bench = Bench(tmp_path, [sheet(*one) for one in SHEETS[:2]])
    run = bench.run(fallen.base_url, fallen.plan_file, "--route", "vlm")
    assert run.ends == [DegradedCode.VLM_UNAVAILABLE] * 2
    assert run.verdicts <= {Verdict.UNREACHABLE}
    assert booked_tokens(run) == Counter(calls=len(run.calls))
    assert all(LINES[0][:20] in page["markdown"] for page in run.pages)
