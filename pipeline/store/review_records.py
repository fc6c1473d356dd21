"""What people said of pages, as values. Times are Unix seconds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from models.document import MediaType
from models.page import Route


class PagesShown(StrEnum):
    """``escalated``: the page was found to need the VLM, whether or not it got it."""

    ESCALATED = "escalated"
    ACCEPTED = "accepted"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """``classes`` as a corpus names them, the one that matters most first."""

    reviewer: str
    needs_vlm: bool
    classes: tuple[str, ...]
    remark: str | None
    cost_centre: str
    reviewed_at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPlace:
    """A page in the list of those to review: newest uploads first, their pages in order."""

    created_at_s: float
    upload_id: str
    page_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageToReview:
    """``summary`` is its row of ``pages.jsonl``; ``needs_vlm`` what this reviewer said, None before."""

    place: ReviewPlace
    name: str
    cost_centre: str
    route: Route
    summary: Mapping[str, Any]
    needs_vlm: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFilter:
    """``cost_centre`` is seen with those below it; None sees all. ``is_reviewed`` by the reviewer, None for both."""

    reviewer: str
    cost_centre: str | None = None
    show: PagesShown = PagesShown.ALL
    is_reviewed: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewProgress:
    """``reviewed`` of ``pages``, by one reviewer."""

    pages: int
    reviewed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedPage:
    """A page by its bytes, with what was said of it last. Reviewers ``differ`` when not all said the same of the VLM.
    ``name`` is one that the document came under."""

    document_id: str
    media_type: MediaType
    page_number: int
    name: str
    needs_vlm: bool
    differ: bool
    reviewers: int
    classes: tuple[str, ...]
    remark: str | None
    reviewed_at_s: float


def new_review(
    *,
    reviewer: str,
    needs_vlm: bool,
    classes: tuple[str, ...],
    remark: str | None,
    cost_centre: str,
) -> Review:
    """Said now."""
    return Review(
        reviewer=reviewer,
        needs_vlm=needs_vlm,
        classes=classes,
        remark=remark,
        cost_centre=cost_centre,
        reviewed_at_s=time.time(),
    )
