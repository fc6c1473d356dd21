from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from PIL import Image

from models.choices import TriageProfile
from pipeline.policy import HardRule, Policy, ProfileThresholds, WeighedSignal
from pipeline.signals.names import SignalName
from workers.corpus_reading import MeasuredPage
from workers.cost_quality import cost_quality
from workers.evaluation import (
    JudgedPage,
    calibration,
    count_outcomes,
    escalation_tables,
    judge,
    page_calibration,
    text_tables,
)
from workers.evaluation_report import evaluation_of, write_evaluation
from workers.labelled import LabelledPage, ManifestRow

POLICY = Policy(
    schema_version=1,
    policy_version="test",
    thresholds=ProfileThresholds(thorough=0.2, balanced=0.5, thrifty=0.8),
    bias=0.0,
    signals=(
        WeighedSignal(
            signal=SignalName.UNSURE_CHARACTER_SHARE, lowest=0, highest=1, missing=0, weight=8, neutral=0.5
        ),
    ),
    rules=(HardRule(signal=SignalName.TABLE_RULED_CELLS, side="least", threshold=12),),
)


def page(
    name: str, *, unsure: float | None, needs: bool = False, cells: float = 0.0, **row: object
) -> MeasuredPage:
    label = LabelledPage(
        row=ManifestRow.model_validate({"id": name, "path": f"{name}.png", "needs_vlm": needs} | row),
        path=Path(f"{name}.png"),
        truth_text=None,
        truth_table=None,
    )
    signals = {"unsure_character_share": unsure, "table_ruled_cells": cells}
    return MeasuredPage(label=label, is_read=True, signals=signals, visual_tokens=1000)


def with_truth(one: MeasuredPage, folder: Path, text: str, truth: str) -> MeasuredPage:
    path = folder / f"{one.label.row.id}.txt"
    path.write_text(truth, encoding="utf-8")
    label = one.label.model_copy(update={"truth_text": path})
    return MeasuredPage(label=label, is_read=True, signals=one.signals, visual_tokens=1000, text=text)


def judged(*pages: MeasuredPage) -> tuple[JudgedPage, ...]:
    return judge(pages, POLICY, least_probability=0.5)


PAGES = (
    page("right", unsure=0.9, needs=True),
    page("ruled", unsure=0.0, needs=True, cells=20),
    page("missed", unsure=0.1, needs=True),
    page("needless", unsure=0.8, needs_vlm_strength="borderline"),
    page("clean", unsure=0.0),
    page("drawn", unsure=0.0, synthetic=True),
)


def test_escalations_are_counted_against_labels_real_pages_alone() -> None:
    tables = dict(escalation_tables(judged(*PAGES)))

    clear, everything = tables["clear labels"], tables["all labels"]
    assert (clear.precision, clear.recall) == (1.0, 2 / 3)
    assert (everything.precision, everything.recall, everything.f1) == (2 / 3, 2 / 3, 2 / 3)
    assert everything.pages == 5
    assert tables["all labels, synthetic too"].pages == 6
    assert tables["borderline labels"].recall is None


def test_a_page_that_could_not_be_read_counts_as_missed() -> None:
    lost = MeasuredPage(label=PAGES[0].label, is_read=False)

    assert count_outcomes(judged(lost)).false_negatives == 1
    assert page_calibration(judged(lost)) is None


def test_text_is_summed_over_characters_and_averaged_over_pages(tmp_path: Path) -> None:
    short = page("short", unsure=0.0, primary_class="print", truth_order="natural")
    long = page("long", unsure=0.0, primary_class="print", truth_order="natural")
    pages = judged(
        with_truth(short, tmp_path, "xx", "ab"), with_truth(long, tmp_path, "word word", "word word")
    )
    tables = dict(text_tables(pages))

    assert tables["print"].cer == 2 / 11
    assert tables["print"].bow_f1 == 0.5
    assert tables["print"].cell_f1 is None
    assert tables["real, escalated"].pages == 0
    assert "all" not in tables


def test_calibration_is_the_mean_distance_between_probability_and_share() -> None:
    found = calibration([(0.05, False), (0.05, True), (1.0, True), (0.95, True)])

    assert found is not None
    assert [one.pages for one in found.bins] == [2, 2]
    assert found.ece == pytest.approx((0.45 + 0.025) / 2)
    assert found.brier == pytest.approx((0.05**2 + 0.95**2 + 0.0 + 0.05**2) / 4)


def test_the_oracle_is_cheaper_and_chance_is_worse_than_a_policy_that_knows_something() -> None:
    result = cost_quality(judged(*PAGES[:5]))

    assert result.all_cpu.served == pytest.approx(0.4)
    assert (result.all_vlm.served, result.all_vlm.tokens_per_page) == (1.0, 1000)
    assert (result.oracle.served, result.oracle.tokens_per_page) == (1.0, 600)
    assert (result.ours.served, result.ours.tokens_per_page) == (pytest.approx(0.8), 600)
    assert result.random.served == pytest.approx(0.4 + 0.6 * 0.6)
    assert result.curve[0].tokens_per_page == 200  # the hard rule alone
    assert result.curve[-1] == result.all_vlm


def test_blank_pages_cost_nothing() -> None:
    label = page("blank", unsure=None).label
    blank = MeasuredPage(label=label, is_read=True, signals={"blank": 1.0}, visual_tokens=1000)

    assert cost_quality(judged(blank, PAGES[0])).all_vlm.tokens_per_page == 500


def test_figures_pages_and_pictures_are_written(tmp_path: Path) -> None:
    pages = judged(*PAGES)
    evaluation = evaluation_of(pages, POLICY, TriageProfile.BALANCED)
    written = write_evaluation(evaluation, pages, tmp_path)

    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [one["id"] for one in report["missed"]] == ["missed"]
    assert [one["id"] for one in report["needless"]] == ["needless"]
    assert report["escalation"]["clear labels"]["precision"] == 1.0
    with (tmp_path / "pages.csv").open(encoding="utf-8") as stream:
        rows = {row["id"]: row for row in csv.DictReader(stream)}
    assert rows["ruled"]["reasons"] == "table_ruled_cells"
    assert rows["drawn"]["class"] == "synthetic:page"
    assert set(written) == {"report.json", "pages.csv", "reliability.png", "cost_quality.png"}
    for name in ("reliability.png", "cost_quality.png"):
        with Image.open(tmp_path / name) as picture:
            assert min(picture.size) > 400
            assert len(picture.convert("RGB").getcolors(maxcolors=1 << 24) or ()) > 10
