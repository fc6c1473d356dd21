"""The ledger of whole runs against the counters of the service that they used."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import httpx2

from tests.acceptance.test_command_line import run_doctriage
from tests.fakes.vlm_server import FakeVlm, Fault
from tests.integration.vlm_runs import VlmBench, by_page, fake_vlm

FAULTS: Final = {2: Fault.TRUNCATED, 3: Fault.RATE_LIMITED, 4: Fault.CHAT}
"""Each in the first call about its page."""


class Books:
    """The command line over the state folder of a bench."""

    def __init__(self, bench: VlmBench, fake: FakeVlm) -> None:
        self.bench = bench
        self.fake = fake
        self.reading = bench.folder / "reading.json"

    def reconcile(self, *options: str | Path) -> tuple[int, str]:
        ended = run_doctriage(
            *("chargeback", "reconcile", "--vlm-url", self.fake.base_url, *options), home=self.bench.home
        )
        assert "Traceback" not in ended.stderr
        return ended.returncode, ended.stdout + ended.stderr

    def told(self, *options: str | Path) -> list[str]:
        return [
            " ".join(line.split())
            for line in self.reconcile("--since", self.reading, *options)[1].splitlines()
        ]


def test_the_ledger_has_every_token_that_the_service_counted(tmp_path: Path) -> None:
    bench = VlmBench(tmp_path / "bench")
    bench.document(4)
    with fake_vlm(by_page(FAULTS, calls=1)) as fake:
        fake.tokens_before = 7_000
        books = Books(bench, fake)
        assert books.reconcile("--save", books.reading)[0] == 0
        bench.run(fake.base_url)
        assert sum(seen.fault is Fault.TRUNCATED for seen in fake.seen) == 1
        code, text = books.reconcile("--since", books.reading)
        assert (code, "agree, to the token" in text) == (0, True)
        billed = [seen.billed for seen in fake.seen if seen.billed is not None]
        prompt_tokens = sum(usage.prompt_tokens for usage in billed)
        assert f"{fake.model_id} prompt {prompt_tokens:,} {prompt_tokens:,} 0" in books.told()
        headers = {"X-Request-Id": "not/ours/9/9"}
        with httpx2.Client(trust_env=False, headers=headers) as somebody_else:
            somebody_else.post(f"{fake.base_url}/chat/completions", json=_foreign_call(fake.model_id))
        foreign = fake.seen[-1].billed
        assert foreign is not None
        assert books.reconcile("--since", books.reading)[0] == 1
        lines = books.told()
        counted = prompt_tokens + foreign.prompt_tokens
        assert f"{fake.model_id} prompt {counted:,} {prompt_tokens:,} +{foreign.prompt_tokens:,}" in lines
        assert "- counted and not booked: another client or another database uses the service" in lines
        most = max(foreign.prompt_tokens, foreign.completion_tokens)
        codes = [
            books.reconcile("--since", books.reading, "--tolerance", str(most - less))[0] for less in (0, 1)
        ]
        assert codes == [0, 1]


def test_a_service_that_started_again_is_named(tmp_path: Path) -> None:
    bench = VlmBench(tmp_path / "bench")
    with fake_vlm() as fake:
        fake.tokens_before = 9_000_000
        books = Books(bench, fake)
        code, text = books.reconcile("--save", books.reading)
        assert (code, "9,000,000 prompt tokens" in text) == (0, True)
        fake.tokens_before = 12
        code, text = books.reconcile("--since", books.reading)
    assert code == 1
    assert "the service started again in the window" in text


def test_a_service_without_counters_is_named(tmp_path: Path) -> None:
    bench = VlmBench(tmp_path / "bench")
    with fake_vlm() as fake:
        fake.go_down()
        code, text = Books(bench, fake).reconcile()
    assert code == 1
    assert text == (
        f"doctriage: {fake.base_url.removesuffix('/v1')}/metrics: no answer with vLLM's token counters; "
        "name the address of one vLLM server, up to /v1\n"
    )


def _foreign_call(model: str) -> dict[str, object]:
    content = [{"type": "text", "text": "Not of ours."}]
    return {"model": model, "messages": [{"role": "user", "content": content}]}
