"""``doctriage keys`` as a user starts it."""

from __future__ import annotations

import json
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.acceptance.test_command_line import run_doctriage

KEY = re.compile(r"dt_([a-z0-9]{10})_([A-Za-z0-9]{43})\n")
WANTED = ("--name", "scanner", "--cost-centre", "harbour/crane", "--scopes", "submit,read")


def made(home: Path, *options: str) -> tuple[str, str]:
    """Prefix and secret of a new key."""
    answer = run_doctriage("keys", "create", *WANTED, *options, home=home)
    assert answer.returncode == 0, answer.stderr
    match = KEY.fullmatch(answer.stdout)
    assert match is not None, "something else than the key is on standard output"
    return match[1], match[2]


def listed(home: Path) -> list[dict[str, Any]]:
    answer = run_doctriage("keys", "list", "--json", home=home)
    assert (answer.returncode, answer.stderr) == (0, "")
    keys: list[dict[str, Any]] = json.loads(answer.stdout)["keys"]
    return keys


def seconds_from_now(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp() - time.time()


def test_a_key_is_made_listed_rotated_and_revoked(tmp_path: Path) -> None:
    assert "no keys" in run_doctriage("keys", "list", home=tmp_path).stdout
    prefix, secret = made(
        tmp_path, "--expires", "90d", "--requests-per-minute", "7", "--max-open-documents", "3"
    )
    [key] = listed(tmp_path)
    assert (key["prefix"], key["name"], key["cost_centre"]) == (prefix, "scanner", "harbour/crane")
    assert key["scopes"] == ["read", "submit"]
    assert (key["requests_per_minute"], key["max_open_documents"]) == (7, 3)
    assert key["max_priority"] == 5
    assert (key["holds"], key["last_used_at"], key["revoked_at"]) == (True, None, None)
    assert seconds_from_now(key["expires_at"]) == pytest.approx(90 * 86_400, abs=60)
    table = run_doctriage("keys", "list", home=tmp_path)
    assert prefix in table.stdout
    assert "holds" in table.stdout

    rotated = run_doctriage("keys", "rotate", prefix, "--grace", "2h", home=tmp_path)
    match = KEY.fullmatch(rotated.stdout)
    assert match is not None
    old, new = sorted(listed(tmp_path), key=lambda one: bool(one["prefix"] == match[1]))
    same = {
        "name",
        "cost_centre",
        "scopes",
        "requests_per_minute",
        "max_open_documents",
        "max_priority",
        "holds",
    }
    assert {name: old[name] for name in same} == {name: new[name] for name in same}
    assert seconds_from_now(old["expires_at"]) == pytest.approx(2 * 3_600, abs=60)

    revoked = run_doctriage("keys", "revoke", match[1], home=tmp_path)
    assert (revoked.returncode, revoked.stdout) == (0, f"{match[1]} (scanner) holds no more\n")
    assert [one["holds"] for one in listed(tmp_path) if one["prefix"] == match[1]] == [False]
    for answer in (table, rotated, revoked, run_doctriage("keys", "list", home=tmp_path)):
        assert secret not in answer.stdout + answer.stderr
    kept = (tmp_path / "doctriage.sqlite3").read_bytes() + b"".join(
        path.read_bytes() for path in tmp_path.glob("doctriage.sqlite3-*")
    )
    assert prefix.encode() in kept
    assert secret.encode() not in kept


def test_a_key_says_how_urgent_what_it_sends_may_be(tmp_path: Path) -> None:
    made(tmp_path, "--max-priority", "0")
    made(tmp_path, "--max-priority", "7")
    made(tmp_path, "--scopes", "admin")
    assert [key["max_priority"] for key in listed(tmp_path)] == [0, 7, 9]
    heading = run_doctriage("keys", "list", home=tmp_path, COLUMNS="200").stdout
    assert "priority" in heading


def test_a_key_of_another_state_or_none_is_refused_with_what_to_do(tmp_path: Path) -> None:
    prefix, _ = made(tmp_path)
    assert run_doctriage("keys", "revoke", prefix, home=tmp_path).returncode == 0
    for command in ("revoke", "rotate"):
        for wrong in (prefix, "nonsense"):
            answer = run_doctriage("keys", command, wrong, home=tmp_path)
            assert (answer.returncode, answer.stdout) == (2, "")
            assert answer.stderr.startswith(f"doctriage: {wrong}: no key that holds has this prefix")
    assert len(listed(tmp_path)) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cost-centre", "a//b"), "no cost centre"),
        (("--scopes", "write"), "read, submit, admin"),
        (("--scopes", ""), "read, submit, admin"),
        (("--expires", "2020-01-01"), "over already"),
        (("--expires", "0d"), "over already"),
        (("--expires", "90y"), "30m, 24h or 90d, or a day like 2027-03-01"),
        (("--expires", "99999d"), "ten years"),
        (("--expires", "soon"), "no day"),
        (("--name", " x"), "no name"),
        (("--requests-per-minute", "0"), "from 1 to 10,000"),
        (("--max-priority", "10"), "from 0 to 9"),
        (("--scopes", "admin", "--max-priority", "9"), "admin has no ceiling"),
    ],
)
def test_what_no_key_can_be_made_of_is_refused(options: tuple[str, str], words: str, tmp_path: Path) -> None:
    answer = run_doctriage("keys", "create", *WANTED, *options, home=tmp_path)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert words in " ".join(answer.stderr.replace("│", " ").split())
    assert not (tmp_path / "doctriage.sqlite3").exists()


def test_the_secret_of_callbacks_is_one_that_their_library_takes(tmp_path: Path) -> None:
    none = run_doctriage("keys", "callback-secret", "harbour", home=tmp_path)
    assert (none.returncode, none.stdout) == (2, "")
    assert "DOCTRIAGE_API__CALLBACK_SECRET" in none.stderr
    setting = {"DOCTRIAGE_API__CALLBACK_SECRET": "k" * 32}
    answer = run_doctriage("keys", "callback-secret", "harbour", home=tmp_path, **setting)
    assert answer.returncode == 0
    Webhook(answer.stdout.strip())
    again = run_doctriage("keys", "callback-secret", "harbour", home=tmp_path, **setting)
    assert again.stdout == answer.stdout
    short = run_doctriage(
        "keys", "callback-secret", "harbour", home=tmp_path, DOCTRIAGE_API__CALLBACK_SECRET="short-word"
    )
    assert short.returncode == 2
    assert "short-word" not in short.stderr
