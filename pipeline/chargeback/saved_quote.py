"""The JSON of a quote, as types. Importing this is cheap. ``docs/chargeback.md`` documents its keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from models.page import Route


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SavedEstimate(_Part):
    low: int = Field(ge=0)
    about: int = Field(ge=0)
    high: int = Field(ge=0)


class SavedPrices(_Part):
    """Amounts are text, as in the price book; None where it has no price."""

    per_million_prompt_tokens: str | None
    per_million_cached_tokens: str | None
    per_million_completion_tokens: str | None
    per_cpu_page: str | None


class SavedSample(_Part):
    pages: int = Field(ge=1)
    confidence_percent: int


class SavedTotals(_Part):
    calls: SavedEstimate
    cpu_pages: SavedEstimate
    visual_tokens: SavedEstimate
    prompt_tokens: SavedEstimate
    completion_tokens: SavedEstimate
    cpu_micro: SavedEstimate | None
    vlm_micro: SavedEstimate | None
    total_micro: SavedEstimate | None


class SavedPage(_Part):
    """``route`` is None for a page that could not be read. What follows ``was_read`` is None for a page that is not
    sent."""

    page_number: int = Field(ge=1)
    route: Route | None = Field(strict=False)
    was_read: bool
    visual_tokens: Annotated[int, Field(ge=0)] | None
    prompt_tokens: SavedEstimate | None
    completion_tokens: SavedEstimate | None


class SavedDocument(_Part):
    document_id: str = Field(pattern=r"^[0-9a-f]{64}$")
    sources: tuple[str, ...] = Field(strict=False)
    page_count: int = Field(ge=1)
    pages: tuple[SavedPage, ...] = Field(strict=False)


class SavedRefusal(_Part):
    source: str
    code: str
    message: str


class SavedQuote(_Part):
    schema_version: Literal[1]
    begun_at: AwareDatetime = Field(strict=False)
    created_at: AwareDatetime = Field(strict=False)
    cost_centre: str
    model_id: str
    currency: str
    price_book_version: str
    prices: SavedPrices
    page_count: int
    sample: SavedSample | None
    pages_by_route: Mapping[str, SavedEstimate]
    ways: Mapping[str, SavedTotals]
    documents: tuple[SavedDocument, ...] = Field(strict=False)
    refusals: tuple[SavedRefusal, ...] = Field(strict=False)
