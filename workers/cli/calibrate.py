"""``doctriage calibrate``: a policy fitted on your own labelled pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from models.errors import OutputNotWritable
from workers.cli.arguments import named_path
from workers.cli.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.table import Table

    from pipeline.policy import Policy
    from workers.calibrated_policy import CalibratedPolicy
    from workers.calibration import Figures

HEADINGS = ("P clear", "R clear", "F1 clear", "P all", "R all", "F1 all", "ECE", "Brier")


def calibrate_command(
    corpus: Annotated[
        list[Path],
        typer.Option(
            metavar="DIR", help="A folder with a MANIFEST.jsonl; may be given again.", parser=named_path
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the policy is written.", parser=named_path)
    ],
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Pages read at the same time; by default one a CPU.")
    ] = None,
) -> None:
    """Fit the triage policy to labelled pages, and say how well it does on sources it was not fitted on.

    The hard rules are those of the present policy. Use the file with DOCTRIAGE_TRIAGE__POLICY_FILE.
    """
    import tempfile
    from datetime import UTC, datetime

    from pipeline.named_files import named_file
    from pipeline.policy import load_policy, policy_json
    from pipeline.settings import load_settings
    from workers.calibrated_policy import calibrate
    from workers.cli.corpus import measured_pages
    from workers.evaluation_report import draw_pictures

    settings = load_settings({"executor": {"jobs": jobs}} if jobs is not None else None)
    base = load_policy(settings.triage.policy_file)
    _require_folder(out)
    with tempfile.TemporaryDirectory(prefix="doctriage-calibrate-") as folder:
        pages = measured_pages(corpus, Path(folder), settings)
    names = ", ".join(printable(path.absolute().name) for path in corpus)
    found = calibrate(pages, base, corpus=names, fitted_on=datetime.now(UTC).date())
    with named_file(out) as stream:
        stream.write(policy_json(found.policy))
    try:
        pictures = draw_pictures(found.held_out, out.parent, prefix=f"{out.stem}.")
    except OSError as error:
        raise OutputNotWritable(f"{out}: {error.strerror}; name another file with --out") from error
    _print(found)
    typer.echo(f"policy {found.policy.policy_version} written to {printable(str(out))}")
    typer.echo(f"pictures of the cross-validation beside it: {', '.join(map(printable, pictures))}")


def _require_folder(out: Path) -> None:
    """Before minutes are spent on reading."""
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise typer.BadParameter(
            f"{printable(str(out))}: name a file in a folder that is there", param_hint="--out"
        )


def _print(found: CalibratedPolicy) -> None:
    from workers.cli.terminal import open_console

    console = open_console()
    for table in (_signals_table(found.policy), _figures_table(found), _ablation_table(found.ablation)):
        console.print(table)
        console.print()


def _signals_table(policy: Policy) -> Table:
    from workers.cli.corpus import new_table

    table = new_table("What raises the probability", "signal", ("weight", "neutral at", "side"))
    for signal in sorted(policy.signals, key=lambda one: -one.weight):
        table.add_row(signal.signal, f"{signal.weight:.2f}", f"{signal.neutral:.3g}", signal.side)
    return table


def _figures_table(found: CalibratedPolicy) -> Table:
    from workers.cli.corpus import new_table

    table = new_table("Real pages", "profile", ("from", *HEADINGS))
    for name, by_profile in (
        ("cross-validated", found.cross_validated),
        ("in-sample", found.in_sample),
    ):
        for profile, row in by_profile.items():
            threshold = found.policy.thresholds.of(profile)
            table.add_row(f"{profile}, {name}", f"{threshold:.2f}", *_cells(row))
    return table


def _ablation_table(rows: Mapping[str, Figures]) -> Table:
    from workers.cli.corpus import new_table

    table = new_table("Cross-validated, each at the balanced threshold that then results", "policy", HEADINGS)
    for name, row in rows.items():
        table.add_row(name, *_cells(row))
    return table


def _cells(row: Figures) -> Iterator[str]:
    from workers.cli.corpus import percent, three_digits

    for counted in (row.clear, row.all_labels):
        yield from (percent(rate) for rate in (counted.precision, counted.recall, counted.f1))
    yield three_digits(row.calibration.ece)
    yield three_digits(row.calibration.brier)
