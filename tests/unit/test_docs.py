"""The documentation names every setting and option that there is, with its default."""

from __future__ import annotations

import re
from pathlib import Path

import typer.main

from pipeline.policy import load_policy
from pipeline.policy_signals import FORMS
from pipeline.settings import setting_variables
from workers.cli import app
from workers.cluster.metric_names import API_METRICS, POOL_METRICS, WORKER_METRICS

ROOT = Path(__file__).parent.parent.parent
ALL_METRICS = (*POOL_METRICS, *WORKER_METRICS, *API_METRICS)


def test_the_triage_page_lists_every_hard_rule_with_its_value() -> None:
    page = (ROOT / "docs" / "triage.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \| (from|under) ([\d.]+) \|", page, re.MULTILINE)
    rules = {
        (rule.signal.value, "from" if rule.side == "least" else "under", rule.threshold)
        for rule in load_policy().rules
    }
    assert {(name, side, float(value)) for name, side, value in listed} == rules


def test_the_triage_page_explains_every_signal_that_the_policy_may_weigh() -> None:
    page = (ROOT / "docs" / "triage.md").read_text(encoding="utf-8")
    assert [form.signal for form in FORMS if f"`{form.signal}`" not in page] == []


def test_the_observability_page_lists_every_metric_with_its_kind_and_labels() -> None:
    page = (ROOT / "docs" / "observability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(doctriage_\w+)` \| (\w+) \| (\S+(?:, \S+)*) \| (.+) \|$", page, re.MULTILINE)
    listed = {name: (kind, tuple(re.findall(r"\w+", labels))) for name, kind, labels, _ in rows}
    metrics = {metric.name: (str(metric.kind), metric.labels) for metric in ALL_METRICS}
    assert len(rows) == len(listed)
    assert listed == metrics
    named = set(re.findall(r"doctriage_[a-z_]+", page)) - {"doctriage_"}
    assert named <= set(metrics)


def test_the_readme_lists_every_setting() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    missing = [name for name in setting_variables() if name not in readme]
    assert missing == []


def test_the_readme_lists_every_option_of_ingest() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = typer.main.get_command(app).commands["ingest"]  # type: ignore[attr-defined]
    options = [name for option in command.params for name in option.opts if name.startswith("--")]
    assert len(options) >= 10
    assert [name for name in options if f"`{name}" not in readme] == []
