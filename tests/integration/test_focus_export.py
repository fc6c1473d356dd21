"""The FOCUS export, judged by the FinOps Foundation's own validator, from an environment of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest

from pipeline.store import open_store
from pipeline.store.statements import StatementStore
from tests.fakes.ledger import every_kind
from workers.statements import FocusExport, Window

ROOT: Final = Path(__file__).parent.parent.parent
ENVIRONMENT: Final = Path(os.environ.get("FOCUS_VENV", ".venv-focus"))
PYTHON: Final = (ENVIRONMENT if ENVIRONMENT.is_absolute() else ROOT / ENVIRONMENT) / "bin" / "python"
FOCUS_VERSION: Final = "1.2"

CLAIMS: Final = (
    "ACCOUNT_NAMING_SUPPORTED",
    "PUBLIC_PRICE_LIST_SUPPORTED",
    "SUB_ACCOUNT_SUPPORTED",
    "UNIT_PRICING_SUPPORTED",
    "USAGE_MEASUREMENT_SUPPORTED",
)
"""What holds of doctriage, among the capabilities on which FOCUS makes further rules depend."""

pytestmark = pytest.mark.skipif(
    not PYTHON.exists(),
    reason=f"FOCUS export not validated: no focus-validator in {ENVIRONMENT}; it needs Python 3.12, and where there is "
    "one `make test` installs it",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Ids of rules."""

    passed: frozenset[str]
    failed: frozenset[str]


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder to run it in: it looks for a file of its own below the current one."""
    asked = "import focus_validator; print(focus_validator.__path__[0])"
    package = subprocess.run([PYTHON, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()
    folder = tmp_path_factory.mktemp("validator")
    (folder / "focus_validator").symlink_to(package)
    return folder


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a ledger with every kind of entry."""
    path = tmp_path_factory.mktemp("export") / "focus.csv"
    with closing(open_store(path.parent)) as store:
        every_kind(store)
        window = Window(first_day=date(2026, 11, 1), end_day=date(2026, 12, 1))
        lines = list(FocusExport(StatementStore(store.database), window).lines())
    path.write_text("".join(lines), encoding="utf-8", newline="")
    return path


def judged(validator: Path, file: Path, *claims: str) -> Judgement:
    """It ends with 0 whatever it found, so what it prints is read."""
    criteria = ("--applicability-criteria", ",".join(claims)) if claims else ()
    ended = subprocess.run(
        [
            *(PYTHON, "-m", "focus_validator.main", "--data-file", file),
            *("--validate-version", FOCUS_VERSION, "--block-download", *criteria),
        ],
        cwd=validator,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    told = dict(re.findall(r"^\S+ (\S+-\w-\d+-\w): (PASS|FAIL|SKIPPED)", ended.stdout, re.MULTILINE))
    [counts] = re.findall(r"Total: (\d+) \| Pass: (\d+) \| Fail: (\d+)", ended.stdout)
    judgement = Judgement(
        passed=frozenset(rule for rule, status in told.items() if status == "PASS"),
        failed=frozenset(rule for rule, status in told.items() if status == "FAIL"),
    )
    assert counts == (str(len(told)), str(len(judgement.passed)), str(len(judgement.failed)))
    return judgement


def alternatives(validator: Path) -> dict[str, str]:
    """Rules of which the specification asks for one of several, with the rule that says so. The validator counts the
    others as failed: that an InvoiceId must be null, and that it must not be, are two such rules."""
    [model] = (validator / "focus_validator" / "rules").glob(f"model-{FOCUS_VERSION}*.json")
    rules: dict[str, Any] = json.loads(model.read_text(encoding="utf-8"))["ModelRules"]
    return {
        item["ModelRuleId"]: name
        for name, rule in rules.items()
        for requirement in [rule["ValidationCriteria"]["Requirement"]]
        if requirement.get("CheckFunction") == "OR"
        for item in requirement["Items"]
        if "ModelRuleId" in item
    }


def broken(validator: Path, judgement: Judgement) -> set[str]:
    """The rules that failed, but for alternatives of which another passed."""
    choice = alternatives(validator)
    return {rule for rule in judgement.failed if choice.get(rule) not in judgement.passed}


@pytest.mark.parametrize("claims", [(), CLAIMS], ids=["mandatory", "with all that holds of doctriage"])
def test_no_rule_fails(validator: Path, export: Path, claims: tuple[str, ...]) -> None:
    judgement = judged(validator, export, *claims)
    assert broken(validator, judgement) == set()
    assert judgement.failed <= {"InvoiceId-C-005-C"}
    assert {"InvoiceId-C-003-C", "BilledCost-C-003-M", "BilledCost-C-000-M"} <= judgement.passed
    assert len(judgement.passed) > (200 if claims else 120)


def test_a_file_that_breaks_a_rule_is_found_out(validator: Path, export: Path, tmp_path: Path) -> None:
    """So that the test above can fail."""
    worse = tmp_path / "worse.csv"
    worse.write_text(export.read_text(encoding="utf-8").replace('"Usage"', '"Usurpation"'), encoding="utf-8")
    assert "ChargeCategory-C-003-M" in broken(validator, judged(validator, worse))
