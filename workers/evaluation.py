"""What a policy does to labelled pages: text figures by class, escalations right and wrong, and calibration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from models.choices import RoutePolicy
from models.page import TriageDecision
from pipeline.policy import Policy
from pipeline.text_metrics import (
    EditCounts,
    Overlap,
    TextFigures,
    compare_cells,
    compare_text,
    csv_cells,
    html_cells,
    piped_cells,
)
from pipeline.triage import triage_page
from workers.corpus_reading import MeasuredPage

CALIBRATION_BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPage:
    """A page with the policy's decision and, where there is truth, how good its text on the CPU is."""

    page: MeasuredPage
    decision: TriageDecision
    text: TextFigures | None
    cells: Overlap | None

    @property
    def needs_vlm(self) -> bool:
        return self.page.label.row.needs_vlm

    @property
    def is_escalated(self) -> bool:
        return self.decision.escalate


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSummary:
    """Of some pages, as ``docs/triage.md`` explains them; None where no page has such a truth."""

    pages: int
    with_truth: int
    with_order: int
    cer: float | None
    wer: float | None
    bow_precision: float | None
    bow_recall: float | None
    bow_f1: float | None
    cell_f1: float | None
    need: int
    escalated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Escalations against labels."""

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def pages(self) -> int:
        wrong = self.false_positives + self.false_negatives
        return self.true_positives + self.true_negatives + wrong

    @property
    def precision(self) -> float | None:
        return _ratio(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float | None:
        return _ratio(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def f1(self) -> float | None:
        wrong = self.false_positives + self.false_negatives
        return _ratio(2 * self.true_positives, 2 * self.true_positives + wrong)

    def f_beta(self, beta: float) -> float | None:
        """The weighted harmonic mean in which recall counts ``beta`` times as much as precision (van Rijsbergen)."""
        precision, recall = self.precision, self.recall
        if precision is None or recall is None or precision + recall == 0:
            return None
        return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Pages with similar probabilities: their mean, and the share of them that needs the model."""

    probability: float
    share: float
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """``ece``: expected calibration error over ten bins of equal width; ``brier``: mean squared error."""

    bins: tuple[Bin, ...]
    ece: float
    brier: float


def judge(
    pages: Iterable[MeasuredPage], policy: Policy, *, least_probability: float
) -> tuple[JudgedPage, ...]:
    """Apply the policy to what was measured. A page that could not be read is not escalated and has no text."""
    return tuple(_judged(page, policy, least_probability) for page in pages)


def _judged(page: MeasuredPage, policy: Policy, least_probability: float) -> JudgedPage:
    row, label = page.label.row, page.label
    if page.is_read:
        decision = triage_page(
            page.score, policy=policy, least_probability=least_probability, route=RoutePolicy.AUTO
        )
    else:
        decision = TriageDecision(escalate=False, reasons=(), policy_version=policy.policy_version)
    text, cells = None, None
    if label.truth_text is not None:
        text = compare_text(
            label.truth_text.read_text(encoding="utf-8"),
            page.text,
            languages=row.languages,
            has_order=row.truth_order == "natural",
        )
    if label.truth_table is not None:
        truth = label.truth_table.read_text(encoding="utf-8")
        is_csv = label.truth_table.suffix == ".csv"
        found = html_cells(" ".join(page.tables)) or piped_cells(page.text)
        cells = compare_cells(csv_cells(truth) if is_csv else html_cells(truth), found)
    return JudgedPage(page=page, decision=decision, text=text, cells=cells)


def summarise_text(pages: Sequence[JudgedPage]) -> TextSummary:
    """Edit rates are over all characters or words together, the others means over pages."""
    texts = [page.text for page in pages if page.text is not None]
    characters = [text.characters for text in texts if text.characters is not None]
    return TextSummary(
        pages=len(pages),
        with_truth=len(texts),
        with_order=len(characters),
        cer=_edit_rate(characters),
        wer=_edit_rate([text.words for text in texts if text.words is not None]),
        bow_precision=_mean([text.bag.precision for text in texts]),
        bow_recall=_mean([text.bag.recall for text in texts]),
        bow_f1=_mean([text.bag.f1 for text in texts]),
        cell_f1=_mean([page.cells.f1 for page in pages if page.cells is not None]),
        need=sum(page.needs_vlm for page in pages),
        escalated=sum(page.is_escalated for page in pages),
    )


def text_tables(pages: Sequence[JudgedPage]) -> Iterator[tuple[str, TextSummary]]:
    """By class, and over all pages; real pages alone where there are synthetic ones too."""
    ordered = sorted(pages, key=lambda page: page.page.label.class_name)
    for name, members in groupby(ordered, key=lambda page: page.page.label.class_name):
        yield name, summarise_text(list(members))
    real = real_pages(pages)
    yield "all real", summarise_text(real)
    if len(real) < len(pages):
        yield "all", summarise_text(pages)
    yield "real, not escalated", summarise_text([page for page in real if not page.is_escalated])
    yield "real, escalated", summarise_text([page for page in real if page.is_escalated])


def escalation_tables(pages: Sequence[JudgedPage]) -> Iterator[tuple[str, Outcomes]]:
    real = real_pages(pages)
    yield "clear labels", count_outcomes(clear_pages(real))
    yield "all labels", count_outcomes(real)
    yield "borderline labels", count_outcomes([page for page in real if not page.page.label.is_clear])
    if len(real) < len(pages):
        yield "all labels, synthetic too", count_outcomes(pages)


def real_pages(pages: Iterable[JudgedPage]) -> list[JudgedPage]:
    return [page for page in pages if not page.page.label.row.synthetic]


def clear_pages(pages: Iterable[JudgedPage]) -> list[JudgedPage]:
    return [page for page in pages if page.page.label.is_clear]


def count_outcomes(pages: Iterable[JudgedPage]) -> Outcomes:
    return outcomes((page.needs_vlm, page.is_escalated) for page in pages)


def outcomes(pairs: Iterable[tuple[bool, bool]]) -> Outcomes:
    """Of pairs: needs the model, was escalated."""
    counted = list(pairs)
    return Outcomes(
        true_positives=counted.count((True, True)),
        false_positives=counted.count((False, True)),
        false_negatives=counted.count((True, False)),
        true_negatives=counted.count((False, False)),
    )


def page_calibration(pages: Iterable[JudgedPage]) -> Calibration | None:
    """Over the pages that have a probability; blank pages have none, as nobody asks the policy about them."""
    return calibration(
        [
            (page.decision.probability, page.needs_vlm)
            for page in pages
            if page.decision.probability is not None
        ]
    )


def calibration(pairs: Sequence[tuple[float, bool]]) -> Calibration | None:
    """Of pairs: probability, needs the model. None without pairs."""
    if not pairs:
        return None
    members: list[list[tuple[float, bool]]] = [[] for _ in range(CALIBRATION_BINS)]
    for pair in pairs:
        members[min(int(pair[0] * CALIBRATION_BINS), CALIBRATION_BINS - 1)].append(pair)
    bins = tuple(
        Bin(
            probability=sum(probability for probability, _ in member) / len(member),
            share=sum(needs for _, needs in member) / len(member),
            pages=len(member),
        )
        for member in members
        if member
    )
    return Calibration(
        bins=bins,
        ece=sum(abs(one.probability - one.share) * one.pages for one in bins) / len(pairs),
        brier=sum((probability - needs) ** 2 for probability, needs in pairs) / len(pairs),
    )


def _edit_rate(counts: Sequence[EditCounts]) -> float | None:
    return _ratio(sum(count.edits for count in counts), sum(count.length for count in counts))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
