"""``doctriage chargeback reconcile`` against the counters of a real vLLM."""

from __future__ import annotations

from pathlib import Path

from pipeline.engines.qwen_vl import Prompt
from tests.acceptance.test_command_line import run_doctriage
from tests.vllm.calls import PROMPT, request_with, sized_image, transcribed
from tests.vllm.server import VllmServer
from tests.vllm.sheets import PROSE, SHEETS, sheet
from tests.vllm.test_ingest import ONE_FAMILY, Bench, answering


def reconcile(server: VllmServer, home: Path, *options: str | Path) -> tuple[int, list[str]]:
    """The exit code, and the lines with one space where there are several."""
    ended = run_doctriage("chargeback", "reconcile", "--vlm-url", server.base_url, *options, home=home)
    return ended.returncode, [" ".join(line.split()) for line in (ended.stdout + ended.stderr).splitlines()]


@ONE_FAMILY
def test_the_ledger_and_vllm_agree_to_the_token_until_somebody_else_calls(
    server: VllmServer, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, [sheet(*one) for one in SHEETS[:2]])
    home, reading = tmp_path / "home", tmp_path / "reading.json"
    code, lines = reconcile(server, home, "--save", reading)
    assert (code, lines[-1]) == (0, f"reading written to {reading}")
    with answering(server, *(f"# Sheet {number}\n\n{PROSE}" for number in (1, 2))) as gateway:
        run = bench.run(gateway.base_url, server.plan_file, "--route", "vlm")
    prompt, completion = (
        sum(call[f"{kind}_tokens"] for call in run.calls) for kind in ("prompt", "completion")
    )
    code, lines = reconcile(server, home, "--since", reading)
    assert f"{server.plan.model_id} prompt {prompt:,} {prompt:,} 0" in lines
    assert f"completion {completion:,} {completion:,} 0" in lines
    assert (code, lines[-1]) == (0, "the ledger and the service agree, to the token")
    foreign = Prompt(system="Of somebody else.", user=PROMPT.user)
    image = sized_image(280, 280, server, shade=99)
    reply = transcribed(server, request_with(image, max_tokens=7), prompt=foreign, ignore_eos=True)
    assert reply.usage is not None
    code, lines = reconcile(server, home, "--since", reading)
    assert code == 1
    more = reply.usage.prompt_tokens
    assert f"{server.plan.model_id} prompt {prompt + more:,} {prompt:,} +{more:,}" in lines
    assert f"completion {completion + 7:,} {completion:,} +7" in lines
    assert "- counted and not booked: another client or another database uses the service" in lines
