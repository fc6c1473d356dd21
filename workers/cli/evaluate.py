"""``doctriage evaluate``: how well a policy does on labelled pages."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from models.choices import TriageProfile
from workers.cli.arguments import named_path
from workers.cli.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from workers.evaluation import JudgedPage
    from workers.evaluation_report import Evaluation

READ_FOLDER = "pages"


class _Label(StrEnum):
    CLEAR = "clear"
    BORDERLINE = "borderline"


def evaluate_command(
    corpus: Annotated[
        list[Path],
        typer.Option(
            metavar="DIR", help="A folder with a MANIFEST.jsonl; may be given again.", parser=named_path
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where figures and pictures are written.", parser=named_path)
    ],
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The policy to judge; by default that of the settings.", parser=named_path
        ),
    ] = None,
    profile: Annotated[TriageProfile | None, typer.Option(help="By default that of the settings.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Pages read at the same time; by default one a CPU.")
    ] = None,
) -> None:
    """Compare what triage decides on labelled pages with their labels, and their text with its truth.

    Pages that an earlier evaluation read are not read again, whatever the policy. Exits with 1 when a page could
    not be read.
    """
    from pipeline.policy import load_policy
    from pipeline.settings import load_settings
    from workers.cli.corpus import measured_pages
    from workers.evaluation import judge
    from workers.evaluation_report import evaluation_of, write_evaluation

    settings = load_settings({"executor": {"jobs": jobs}} if jobs is not None else None)
    chosen = profile or settings.triage.profile
    judged_policy = load_policy(policy or settings.triage.policy_file)
    measured = measured_pages(corpus, out / READ_FOLDER, settings)
    pages = judge(measured, judged_policy, least_probability=judged_policy.thresholds.of(chosen))
    evaluation = evaluation_of(pages, judged_policy, chosen)
    written = write_evaluation(evaluation, pages, out)
    _print(evaluation)
    typer.echo(f"written to {printable(str(out))}: {', '.join(written)}")
    raise typer.Exit(1 if evaluation.not_read else 0)


def _print(evaluation: Evaluation) -> None:
    from workers.cli.terminal import open_console

    console = open_console()
    for table in (_text_table(evaluation), _escalation_table(evaluation), _cost_table(evaluation)):
        console.print(table)
        console.print()
    for line in _closing_lines(evaluation):
        typer.echo(line)


def _text_table(evaluation: Evaluation) -> Table:
    from workers.cli.corpus import new_table, percent

    headings = ("pages", "truth", "CER", "WER", "BoW P", "BoW R", "BoW F1", "cell F1", "need", "esc", "esc %")
    table = new_table("Text read on the CPU, and escalations", "class", headings)
    for name, row in evaluation.text.items():
        table.add_row(
            name,
            str(row.pages),
            str(row.with_truth),
            percent(row.cer),
            percent(row.wer),
            percent(row.bow_precision),
            percent(row.bow_recall),
            percent(row.bow_f1),
            percent(row.cell_f1),
            str(row.need),
            str(row.escalated),
            percent(row.escalated / row.pages if row.pages else None),
            style="bold" if name.startswith("all") else "",
        )
    return table


def _escalation_table(evaluation: Evaluation) -> Table:
    from workers.cli.corpus import new_table, percent

    headings = ("pages", "right", "needless", "missed", "left alone", "precision", "recall", "F1")
    table = new_table("Escalations against labels", "real pages", headings)
    for name, row in evaluation.escalation.items():
        table.add_row(
            name,
            str(row.pages),
            str(row.true_positives),
            str(row.false_positives),
            str(row.false_negatives),
            str(row.true_negatives),
            percent(row.precision),
            percent(row.recall),
            percent(row.f1),
        )
    return table


def _cost_table(evaluation: Evaluation) -> Table:
    from workers.cli.corpus import new_table, percent

    table = new_table("Cost and quality", "pages sent", ("visual tokens a page", "got what they need"))
    result = evaluation.cost_quality
    if result is not None:
        for name, point in (
            ("none", result.all_cpu),
            ("at random, for the same cost", result.random),
            (f"by the policy ({evaluation.profile})", result.ours),
            ("by the labels", result.oracle),
            ("all that are not blank", result.all_vlm),
        ):
            table.add_row(name, f"{point.tokens_per_page:,.0f}", percent(point.served))
    return table


def _closing_lines(evaluation: Evaluation) -> Iterator[str]:
    for strength in _Label:
        yield f"missed ({strength}): {_names(evaluation.missed, strength)}"
        yield f"needless ({strength}): {_names(evaluation.needless, strength)}"
    if evaluation.not_read:
        yield f"not read: {' '.join(printable(name) for name in evaluation.not_read)}"
    if evaluation.calibration is not None:
        yield f"calibration: ECE {evaluation.calibration.ece:.3f}, Brier {evaluation.calibration.brier:.3f}"
    policy = evaluation.policy
    threshold = policy.thresholds.of(evaluation.profile)
    yield f"policy {printable(policy.policy_version)}, profile {evaluation.profile} (from {threshold:.2f})"
    if corpus := policy.provenance.get("corpus"):
        yield f"the policy was fitted on {printable(str(corpus))}; on those pages trust its cross-validation only"


def _names(pages: Sequence[JudgedPage], strength: _Label) -> str:
    rows = [page.page.label.row for page in pages]
    names = [f"{row.id}:{row.primary_class}" for row in rows if row.needs_vlm_strength == strength]
    return " ".join(printable(name) for name in names) or "none"
