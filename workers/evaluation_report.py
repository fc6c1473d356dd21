"""The files of an evaluation: ``report.json``, ``pages.csv`` and the pictures."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from models.choices import TriageProfile
from pipeline.policy import Policy
from pipeline.publish import not_writable
from workers.cost_quality import CostQuality, cost_quality
from workers.evaluation import (
    Calibration,
    JudgedPage,
    Outcomes,
    TextSummary,
    escalation_tables,
    page_calibration,
    real_pages,
    text_tables,
)

REPORT_FILE: Final = "report.json"
PAGES_FILE: Final = "pages.csv"
RELIABILITY_FILE: Final = "reliability.png"
COST_QUALITY_FILE: Final = "cost_quality.png"

COLUMNS: Final = (
    "id",
    "class",
    "needs_vlm",
    "strength",
    "escalated",
    "probability",
    "reasons",
    "cer",
    "wer",
    "bow_f1",
    "cell_f1",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Figures on real pages; ``missed`` and ``needless`` are pages, of both kinds of labels."""

    policy: Policy
    profile: TriageProfile
    text: Mapping[str, TextSummary]
    escalation: Mapping[str, Outcomes]
    calibration: Calibration | None
    cost_quality: CostQuality | None
    missed: tuple[JudgedPage, ...]
    needless: tuple[JudgedPage, ...]
    not_read: tuple[str, ...]


def evaluation_of(pages: Sequence[JudgedPage], policy: Policy, profile: TriageProfile) -> Evaluation:
    real = real_pages(pages)
    return Evaluation(
        policy=policy,
        profile=profile,
        text=dict(text_tables(pages)),
        escalation=dict(escalation_tables(pages)),
        calibration=page_calibration(real),
        cost_quality=cost_quality(real) if real else None,
        missed=tuple(page for page in real if page.needs_vlm and not page.is_escalated),
        needless=tuple(page for page in real if page.is_escalated and not page.needs_vlm),
        not_read=tuple(page.page.label.row.id for page in pages if not page.page.is_read),
    )


def write_evaluation(evaluation: Evaluation, pages: Sequence[JudgedPage], out_dir: Path) -> tuple[str, ...]:
    """The names of the files written. Raises OutputNotWritable."""
    written = [REPORT_FILE, PAGES_FILE]
    try:
        text = json.dumps(report_json(evaluation), indent=1, ensure_ascii=False)
        (out_dir / REPORT_FILE).write_text(text + "\n", encoding="utf-8")
        _write_pages(pages, out_dir / PAGES_FILE)
        written += draw_pictures(pages, out_dir)
    except OSError as error:
        raise not_writable(out_dir, error) from error
    return tuple(written)


def draw_pictures(pages: Sequence[JudgedPage], out_dir: Path, *, prefix: str = "") -> tuple[str, ...]:
    """Of the real pages among these; the names of the files."""
    from workers.evaluation_plots import draw_cost_quality, draw_reliability

    real, drawn = real_pages(pages), []
    measured = page_calibration(real)
    if measured is not None:
        draw_reliability(measured, out_dir / f"{prefix}{RELIABILITY_FILE}")
        drawn.append(f"{prefix}{RELIABILITY_FILE}")
    if real:
        draw_cost_quality(cost_quality(real), out_dir / f"{prefix}{COST_QUALITY_FILE}")
        drawn.append(f"{prefix}{COST_QUALITY_FILE}")
    return tuple(drawn)


def report_json(evaluation: Evaluation) -> Mapping[str, Any]:
    return {
        "policy_version": evaluation.policy.policy_version,
        "profile": evaluation.profile.value,
        "least_probability": evaluation.policy.thresholds.of(evaluation.profile),
        "text": {name: dataclasses.asdict(summary) for name, summary in evaluation.text.items()},
        "escalation": {name: outcomes_json(counted) for name, counted in evaluation.escalation.items()},
        "calibration": evaluation.calibration and dataclasses.asdict(evaluation.calibration),
        "cost_quality": evaluation.cost_quality and dataclasses.asdict(evaluation.cost_quality),
        "missed": [_page_json(page) for page in evaluation.missed],
        "needless": [_page_json(page) for page in evaluation.needless],
        "not_read": list(evaluation.not_read),
    }


def outcomes_json(counted: Outcomes) -> Mapping[str, float | None]:
    rates = {"precision": counted.precision, "recall": counted.recall, "f1": counted.f1}
    return {"pages": counted.pages, **dataclasses.asdict(counted), **rates}


def _page_json(page: JudgedPage) -> Mapping[str, Any]:
    row = page.page.label.row
    return {
        "id": row.id,
        "class": row.primary_class,
        "strength": row.needs_vlm_strength,
        "probability": page.decision.probability,
        "reasons": [dataclasses.asdict(reason) for reason in page.decision.reasons],
    }


def _write_pages(pages: Sequence[JudgedPage], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        writer.writerows(_row(page) for page in pages)


def _row(page: JudgedPage) -> Sequence[object]:
    row, text = page.page.label.row, page.text
    characters = text.characters if text else None
    words = text.words if text else None
    return (
        row.id,
        page.page.label.class_name,
        row.needs_vlm,
        row.needs_vlm_strength,
        page.is_escalated,
        _cell(page.decision.probability),
        " ".join(reason.signal for reason in page.decision.reasons),
        _cell(characters.rate if characters else None),
        _cell(words.rate if words else None),
        _cell(text.bag.f1 if text else None),
        _cell(page.cells.f1 if page.cells else None),
    )


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
