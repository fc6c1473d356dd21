"""What triage costs in visual tokens, and what it buys: the share of pages that got what they need.

A page got what it needs when it went to the model, or did not need to. That is measured on labels, not on the
model's answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.signals.names import SignalName
from workers.evaluation import JudgedPage


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPoint:
    """Visual tokens a page over all pages, and the share of pages that got what they need."""

    tokens_per_page: float
    served: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CostQuality:
    """``ours`` is the policy as evaluated, ``random`` the same number of tokens spent on pages drawn at random,
    ``oracle`` every page that needs the model and no other. ``curve`` has the policy at every threshold, from
    hard rules alone to every page that is not blank."""

    all_cpu: CostPoint
    all_vlm: CostPoint
    oracle: CostPoint
    ours: CostPoint
    random: CostPoint
    curve: tuple[CostPoint, ...]


def cost_quality(pages: Sequence[JudgedPage]) -> CostQuality:
    readable = [not page.page.is_blank and page.page.is_read for page in pages]
    all_cpu = _point(pages, [False] * len(pages))
    all_vlm = _point(pages, readable)
    ours = _point(pages, [page.is_escalated for page in pages])
    share = ours.tokens_per_page / all_vlm.tokens_per_page if all_vlm.tokens_per_page else 0.0
    served = all_cpu.served + share * (all_vlm.served - all_cpu.served)
    return CostQuality(
        all_cpu=all_cpu,
        all_vlm=all_vlm,
        oracle=_point(pages, [page.needs_vlm for page in pages]),
        ours=ours,
        random=CostPoint(tokens_per_page=ours.tokens_per_page, served=served),
        curve=tuple(_point(pages, _sent_from(pages, threshold)) for threshold in _thresholds(pages)),
    )


def _thresholds(pages: Sequence[JudgedPage]) -> list[float]:
    measured = {page.decision.probability for page in pages if page.decision.probability is not None}
    return [2.0, *sorted(measured, reverse=True)]


def _sent_from(pages: Sequence[JudgedPage], threshold: float) -> list[bool]:
    return [
        page.decision.probability is not None
        and (page.decision.probability >= threshold or _has_hard_rule(page))
        for page in pages
    ]


def _has_hard_rule(page: JudgedPage) -> bool:
    """Rules are told before the probability."""
    return bool(page.decision.reasons) and (
        page.decision.reasons[0].signal != SignalName.NEEDS_VLM_PROBABILITY
    )


def _point(pages: Sequence[JudgedPage], is_sent: Sequence[bool]) -> CostPoint:
    tokens = sum(page.page.visual_tokens for page, sent in zip(pages, is_sent, strict=True) if sent)
    served = sum(sent or not page.needs_vlm for page, sent in zip(pages, is_sent, strict=True))
    return CostPoint(tokens_per_page=tokens / len(pages), served=served / len(pages))
