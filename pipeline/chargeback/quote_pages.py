"""The pages of a quote: which way each goes, and what it takes to send it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from models.page import Route
from pipeline.chargeback.call_estimate import CallEstimate, call_estimate
from pipeline.escalated_page import Json
from pipeline.planning.serving_plan import ServingPlan

FOR_THE_VLM: Final = frozenset({Route.VLM, Route.OCR_DEGRADED})


class Way(StrEnum):
    """How the pages could be read."""

    TRIAGED = "triaged"
    """The VLM sees those that triage gives it."""
    ALL_VLM = "all_vlm"
    """It sees every page that is not blank, after the CPU, as with ``--route vlm``."""
    ALL_CPU = "all_cpu"
    """It sees none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedPage:
    """``route`` is the one that the page has or will have; None for a page that could not be read. ``call`` is what
    sending it takes or would take. ``is_due``: a run would send it, and none has. ``was_read``: an earlier run read it
    on the CPU, and paid for that."""

    page_number: int
    route: Route | None
    call: CallEstimate | None
    is_due: bool
    was_read: bool

    def is_called(self, way: Way) -> bool:
        """Whether it is paid for that the VLM sees it. What an earlier run paid for is paid for whatever the way."""
        if way is Way.ALL_CPU or self.call is None:
            return False
        return self.is_due or (way is Way.ALL_VLM and self.route not in FOR_THE_VLM)

    def as_new(self) -> QuotedPage:
        """The page as if no run had seen it before."""
        return replace(self, is_due=self.route in FOR_THE_VLM and self.call is not None, was_read=False)


def quoted_page(page: Json, plan: ServingPlan, *, is_final: bool, was_read: bool) -> QuotedPage:
    """Of a page's JSON. ``is_final``: the page does not wait for the VLM."""
    call = call_estimate(page, plan)
    is_due = not is_final and call is not None
    return QuotedPage(
        page_number=page["page_number"],
        route=Route.VLM if is_due else Route(page["route"]),
        call=call,
        is_due=is_due,
        was_read=was_read,
    )


def unread_page(page_number: int) -> QuotedPage:
    """One that could not be read: the attempt is paid for all the same."""
    return QuotedPage(page_number=page_number, route=None, call=None, is_due=False, was_read=False)
