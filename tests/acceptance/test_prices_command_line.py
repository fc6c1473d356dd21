"""``doctriage prices`` as a user starts it."""

from __future__ import annotations

import json
import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from models.transcription import TokenUsage
from pipeline.chargeback.price_book import cost_of, load_price_book, parse_price_book, price_at
from tests.acceptance.test_command_line import run_doctriage

DOCS = Path(__file__).parent.parent.parent / "docs" / "chargeback.md"
H100 = ("--gpu-hour", "3.50", "--pages-per-hour", "6000", "--tokens-per-page", "2240")
CPU = ("--cpu-hour", "0.05", "--cpu-pages-per-hour", "1800")


def own_book(folder: Path, *first_days: int) -> Path:
    """With an entry for each day, counted from today; the first costs 1, the next 2, …"""
    today = datetime.now(UTC).date()
    entries = "".join(
        f'[[entries]]\neffective_from = {today + timedelta(days=day)}\nper_cpu_page = "0.0{number}"\n'
        f'[entries.models."*"]\nper_million_prompt_tokens = "{number}"\n'
        f'per_million_completion_tokens = "1{number}"\n'
        for number, day in enumerate(first_days, start=1)
    )
    path = folder / "own.toml"
    path.write_text(f'schema_version = 1\nname = "own"\ncurrency = "EUR"\n{entries}', encoding="utf-8")
    return path


def test_what_is_derived_is_printed_written_and_read_again(tmp_path: Path) -> None:
    out = tmp_path / "prices.toml"
    arguments = ("prices", "derive", *H100, *CPU, "--model", "org/seven", "--currency", "EUR")
    answer = run_doctriage(*arguments, "--effective-from", "2026-01-01", "--out", out, home=tmp_path)
    assert (answer.returncode, answer.stderr) == (0, f"prices written to {out}\n")
    assert answer.stdout == out.read_text(encoding="utf-8")
    prices = price_at(load_price_book(out), "org/seven", datetime(2026, 1, 1, tzinfo=UTC))
    assert prices.currency == "EUR"
    million = TokenUsage(prompt_tokens=1_000_000, completion_tokens=0)
    assert cost_of(prices, million) == 125_718
    assert cost_of(prices, TokenUsage(prompt_tokens=2_240, completion_tokens=600), cpu_pages=1) == 611
    shown = run_doctriage("prices", "show", "--file", out, "--json", home=tmp_path)
    document = json.loads(shown.stdout)
    assert document["version"] == prices.book_version
    assert document["in_force"] == {
        "effective_from": "2026-01-01",
        "per_cpu_page": "0.000027777778",
        "models": {
            "org/seven": {
                "per_million_prompt_tokens": "0.125718",
                "per_million_cached_tokens": "0.125718",
                "per_million_completion_tokens": "0.502874",
            }
        },
    }
    assert document["to_come"] == []


def test_standard_output_alone_is_a_price_book_for_today(tmp_path: Path) -> None:
    answer = run_doctriage("prices", "derive", *H100, home=tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
    path = tmp_path / "piped.toml"
    path.write_text(answer.stdout, encoding="utf-8")
    prices = price_at(load_price_book(path), "any", datetime.now(UTC))
    assert prices.completion_micro_per_million == 502_874
    assert prices.cpu_page_micro_per_million is None


def test_weights_and_length_of_answers_are_heeded(tmp_path: Path) -> None:
    level = ("--completion-tokens-per-page", "760", "--completion-weight", "1", "--cached-weight", "0.5")
    answer = run_doctriage("prices", "derive", *H100, *level, home=tmp_path)
    for told in (
        'per_million_prompt_tokens = "0.194444"',
        'per_million_cached_tokens = "0.097222"',
        'per_million_completion_tokens = "0.194444"',
    ):
        assert told in answer.stdout


def test_a_price_book_is_never_overwritten(tmp_path: Path) -> None:
    out = own_book(tmp_path, 0)
    before = out.read_text(encoding="utf-8")
    answer = run_doctriage("prices", "derive", *H100, "--out", out, home=tmp_path)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == f"doctriage: {out}: File exists; name another file with --out\n"
    assert out.read_text(encoding="utf-8") == before


def test_prices_of_today_and_those_to_come_are_shown_but_not_those_past(tmp_path: Path) -> None:
    book = own_book(tmp_path, -60, -30, 30, 60)
    answer = run_doctriage("prices", "show", "--file", book, home=tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
    titles = [line.strip() for line in answer.stdout.splitlines() if line.startswith(("In force", "From"))]
    today = datetime.now(UTC).date()
    assert titles == [
        f"In force since {today - timedelta(days=30)}",
        f"From {today + timedelta(days=30)}",
        f"From {today + timedelta(days=60)}",
    ]
    rows = [line.split() for line in answer.stdout.splitlines() if line.startswith("any other model")]
    assert [row[3:] for row in rows] == [[f"{n}.000000", f"{n}.000000", f"1{n}.000000"] for n in (2, 3, 4)]
    document = json.loads(run_doctriage("prices", "show", "--file", book, "--json", home=tmp_path).stdout)
    assert document["in_force"]["per_cpu_page"] == "0.02"
    assert [entry["per_cpu_page"] for entry in document["to_come"]] == ["0.03", "0.04"]


def test_before_the_first_day_nothing_is_priced(tmp_path: Path) -> None:
    book = own_book(tmp_path, 30)
    answer = run_doctriage("prices", "show", "--file", book, home=tmp_path)
    assert "no prices are in force: everything is unpriced" in answer.stdout
    assert (
        json.loads(run_doctriage("prices", "show", "--file", book, "--json", home=tmp_path).stdout)[
            "in_force"
        ]
        is None
    )


def test_the_shipped_book_is_shown_without_a_file(tmp_path: Path) -> None:
    answer = run_doctriage("prices", "show", home=tmp_path)
    assert answer.returncode == 0
    assert f"price book {load_price_book().version}, in USD" in answer.stdout
    (other,) = [line for line in answer.stdout.splitlines() if line.startswith("any other model")]
    assert other.split()[3:] == ["unpriced"] * 3


@pytest.mark.parametrize("command", ["show", "derive"])
def test_the_documentation_shows_what_is_printed(command: str, tmp_path: Path) -> None:
    """All but today's date."""
    page = DOCS.read_text(encoding="utf-8")
    block = re.search(rf"```\n\$ doctriage (prices {command}(?:.*\\\n)*.*)\n((?:.*\n)*?)```", page)
    assert block is not None
    arguments = shlex.split(block[1].replace("\\\n", " "))
    printed = run_doctriage(*arguments, home=tmp_path).stdout
    undated = [re.sub(r"(on |derived-|from = )[\d-]{10}", r"\1…", text) for text in (printed, block[2])]
    assert "…" in undated[0]
    assert [line.rstrip() for line in undated[0].rstrip().splitlines()] == undated[1].splitlines()


def test_the_documented_price_book_is_one_of_the_documented_version() -> None:
    page = DOCS.read_text(encoding="utf-8")
    example = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert example is not None
    assert f"`{parse_price_book(example[1], 'docs').version}`" in page


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "No such file or directory; name a price book, docs/chargeback.md"),
        ("schema_version = ", "no TOML"),
        (
            'schema_version = 1\nname = "x"\ncurrency = "USD"\n[[entries]]\neffective_from = 2026-01-01\n'
            "per_cpu_page = 0.1\n",
            'entries.1.per_cpu_page: write the amount in quotes: "0.1"',
        ),
    ],
    ids=["gone", "no TOML", "a float"],
)
def test_a_book_that_is_none_is_one_clear_line(content: str | None, told: str, tmp_path: Path) -> None:
    path = tmp_path / "book.toml"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    answer = run_doctriage("prices", "show", "--file", path, home=tmp_path)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert len(answer.stderr.splitlines()) == 1
    assert answer.stderr.startswith(f"doctriage: {path}: ")
    assert told in answer.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--gpu-hour", "-1"], "'-1' is no number"),
        (["--gpu-hour", "nan"], "'nan' is no number"),
        (["--gpu-hour", "1e3"], "'1e3' is no number"),
        (["--gpu-hour", "3,50"], "'3,50' is no number"),
        (["--pages-per-hour", "0"], "it must be above 0"),
        (["--tokens-per-page", "0.0"], "it must be above 0"),
        (["--completion-weight", "0"], "it must be above 0"),
        (["--cached-weight", "1.1"], "above 1"),
        (["--cpu-hour", "1"], "give both or neither"),
        (["--cpu-pages-per-hour", "1"], "give both or neither"),
        (["--currency", "usd"], "'usd' is no currency of ISO 4217"),
        (["--model", ""], "'' is no model"),
        (["--model", "a\x7f"], "is no model"),
        ([b"--model", b"\xff"], "is no model"),
        (["--effective-from", "2026-02-30"], "2026-02-30"),
        (["--out", ""], "it is empty"),
        (["--out", "/no such folder/prices.toml"], "name another file with --out"),
        (["extra"], "extra"),
    ],
    ids=str,
)
def test_a_wrong_command_line_is_usage(arguments: list[str | bytes], told: str, tmp_path: Path) -> None:
    answer = run_doctriage("prices", "derive", *H100, *arguments, home=tmp_path)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert told in " ".join(answer.stderr.replace("│", " ").split())
    assert "Traceback" not in answer.stderr


def test_an_unknown_setting_stops_it_too(tmp_path: Path) -> None:
    for command in (("show",), ("derive", *H100)):
        answer = run_doctriage("prices", *command, home=tmp_path, DOCTRIAGE_JOBS="2")
        assert answer.returncode == 2
        assert answer.stderr.startswith("doctriage: DOCTRIAGE_JOBS is no setting")
