"""``doctriage evaluate`` and ``calibrate`` as a user starts them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.acceptance.test_command_line import run_doctriage

SAMPLES = Path(__file__).parent.parent.parent / "samples"


def write_corpus(folder: Path) -> Path:
    """Three samples that are read in a moment: two that need nothing, a table that does."""
    (folder / "pages").mkdir(parents=True)
    (folder / "truth.txt").write_text("", encoding="utf-8")
    rows = []
    for name, needs, kind in (
        ("blank_page.pdf", False, "blank"),
        ("russian_novel.pdf", False, "born_digital"),
        ("ruled_table.pdf", True, "table"),
    ):
        shutil.copy(SAMPLES / name, folder / "pages" / name)
        rows.append({"id": name, "path": f"pages/{name}", "needs_vlm": needs, "primary_class": kind})
    rows[0]["truth_text"] = "truth.txt"
    text = "\n".join(json.dumps(row) for row in rows)
    (folder / "MANIFEST.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_evaluate_prints_figures_and_writes_them(tmp_path: Path) -> None:
    corpus, out = write_corpus(tmp_path / "corpus"), tmp_path / "out"
    answer = run_doctriage("evaluate", "--corpus", corpus, "--out", out, home=tmp_path / "home")

    assert answer.returncode == 0, answer.stderr
    for said in ("born_digital", "clear labels", "by the policy (balanced)", "missed (clear): none", "ECE"):
        assert said in answer.stdout
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert report["escalation"]["clear labels"]["f1"] == 1.0
    assert report["text"]["blank"]["bow_f1"] == 1.0
    assert (out / "cost_quality.png").is_file()


def test_calibrate_wants_more_than_three_pages_and_evaluate_a_manifest(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    few = run_doctriage("calibrate", "--corpus", corpus, "--out", tmp_path / "p.json", home=tmp_path / "home")
    none = run_doctriage("evaluate", "--corpus", tmp_path, "--out", tmp_path / "o", home=tmp_path / "home")
    nowhere = run_doctriage("calibrate", "--corpus", corpus, "--out", tmp_path, home=tmp_path / "home")

    assert (few.returncode, none.returncode, nowhere.returncode) == (2, 2, 2)
    assert "a policy takes 20 of each kind" in few.stderr
    assert "MANIFEST.jsonl" in none.stderr
    assert "name a file" in nowhere.stderr
    assert not (tmp_path / "p.json").exists()


def test_a_policy_of_one_s_own_decides(tmp_path: Path) -> None:
    policy = tmp_path / "mine.json"
    shutil.copy(Path(__file__).parents[2] / "pipeline" / "policies" / "default.json", policy)
    mine = json.loads(policy.read_text(encoding="utf-8")) | {
        "policy_version": "mine",
        "rules": [],
        "bias": -50,
    }
    policy.write_text(json.dumps(mine), encoding="utf-8")
    answers = [
        run_doctriage(
            "ingest",
            SAMPLES / "ruled_table.pdf",
            "--out",
            tmp_path / f"out-{number}",
            home=tmp_path / "home",
            **environment,
        )
        for number, environment in enumerate(({}, {"DOCTRIAGE_TRIAGE__POLICY_FILE": str(policy)}))
    ]
    rows = [
        json.loads((tmp_path / f"out-{number}" / "pages.jsonl").read_text(encoding="utf-8"))
        for number in range(2)
    ]

    assert [answer.returncode for answer in answers] == [0, 0]
    assert [row["escalate"] for row in rows] == [True, False]
    broken = run_doctriage(
        "ingest",
        SAMPLES / "ruled_table.pdf",
        "--out",
        tmp_path / "out-3",
        home=tmp_path / "home",
        DOCTRIAGE_TRIAGE__POLICY_FILE=str(tmp_path / "none.json"),
    )
    assert broken.returncode == 2
    assert "none.json" in broken.stderr
