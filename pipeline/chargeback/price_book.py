"""The price book: what a million tokens and a page read on the CPU cost, from which day on.

A price book is a TOML file: the one shipped beside this module, or the user's own. ``docs/chargeback.md``
documents its keys. All arithmetic is on integers: amounts are micro-units of the book's currency (a millionth
of a dollar, of a yen), and a price is micro-units for a million tokens or pages.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from models.errors import PriceBookInvalid
from models.transcription import TokenUsage
from pipeline.chargeback.amounts import MILLION, cpu_page_price_micro, half_even, token_price_micro
from pipeline.chargeback.currencies import CURRENCY_CODES
from pipeline.chargeback.echoes import echoed

ANY_MODEL: Final = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPrices:
    """What one model's tokens and a CPU page cost on one day. Micro-units of ``currency`` for a million; None where
    the book has no price. ``book_version`` names the book and its content."""

    currency: str
    book_version: str
    prompt_micro_per_million: int | None = None
    cached_micro_per_million: int | None = None
    completion_micro_per_million: int | None = None
    cpu_page_micro_per_million: int | None = None


def currency_code(code: str) -> str:
    """The code itself. Raises ValueError where ISO 4217 has no such currency."""
    if code not in CURRENCY_CODES:
        raise ValueError(f"{echoed(code)} is no currency of ISO 4217; write its code, such as USD")
    return code


def model_name(name: str) -> str:
    """The name itself. Raises ValueError for one that nothing can be called."""
    if not name.isprintable() or name != name.strip() or not name:
        raise ValueError(f"{echoed(name)} is no model; write the name that requests use, or {ANY_MODEL}")
    return name


TokenPrice = Annotated[int, BeforeValidator(token_price_micro)]
CpuPrice = Annotated[int, BeforeValidator(cpu_page_price_micro)]
ModelName = Annotated[str, AfterValidator(model_name)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ModelPrices(_Table):
    """Of one model, in micro-units for a million tokens. Without a price of their own, cached tokens cost what other
    prompt tokens do. They may not cost more, so that a call without any is the dearest."""

    prompt_micro: TokenPrice = Field(alias="per_million_prompt_tokens")
    cached_micro: TokenPrice | None = Field(default=None, alias="per_million_cached_tokens")
    completion_micro: TokenPrice = Field(alias="per_million_completion_tokens")

    @model_validator(mode="after")
    def _cached_tokens_cost_no_more(self) -> Self:
        if self.cached_micro is not None and self.cached_micro > self.prompt_micro:
            raise ValueError("per_million_cached_tokens is above per_million_prompt_tokens")
        return self

    @property
    def cached_tokens_micro(self) -> int:
        return self.prompt_micro if self.cached_micro is None else self.cached_micro


class PriceEntry(_Table):
    """The whole price list from the day ``effective_from`` on, which begins at midnight UTC. ``cpu_page_micro`` is in
    micro-units for a million pages read on the CPU."""

    effective_from: date
    cpu_page_micro: CpuPrice | None = Field(default=None, alias="per_cpu_page")
    models: Mapping[ModelName, ModelPrices] = Field(default_factory=dict)

    def prices_of(self, model_id: str) -> ModelPrices | None:
        return self.models.get(model_id, self.models.get(ANY_MODEL))


class PriceBook(_Table):
    schema_version: Literal[1]
    name: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    currency: Annotated[str, AfterValidator(currency_code)]
    entries: tuple[PriceEntry, ...] = Field(strict=False)

    @model_validator(mode="after")
    def _days_are_distinct(self) -> Self:
        if not self.entries:
            raise ValueError("entries is empty; write at least one")
        days = [entry.effective_from for entry in self.entries]
        twice = sorted({day.isoformat() for day in days if days.count(day) > 1})
        if twice:
            raise ValueError(f"two entries are effective_from {twice[0]}; make them one")
        return self

    @cached_property
    def version(self) -> str:
        """The book's name, and the start of a SHA-256 over all that decides a price. Comments, the order of keys and
        zeros at the end of an amount change nothing."""
        entries = {entry.effective_from.isoformat(): _deciding(entry) for entry in self.entries}
        content = json.dumps({"currency": self.currency, "entries": entries}, sort_keys=True)
        return f"{self.name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"

    def entry_on(self, day: date) -> PriceEntry | None:
        """The one in force: the latest that has begun. None before the first."""
        begun = [entry for entry in self.entries if entry.effective_from <= day]
        return max(begun, key=lambda entry: entry.effective_from, default=None)

    def entries_after(self, day: date) -> tuple[PriceEntry, ...]:
        """Those to come, the next first."""
        coming = [entry for entry in self.entries if entry.effective_from > day]
        return tuple(sorted(coming, key=lambda entry: entry.effective_from))


def _deciding(entry: PriceEntry) -> dict[str, object]:
    models = {
        name: (prices.prompt_micro, prices.cached_tokens_micro, prices.completion_micro)
        for name, prices in entry.models.items()
    }
    return {"cpu_page": entry.cpu_page_micro, "models": models}


def load_price_book(path: Path | None = None) -> PriceBook:
    """The book in the file, or the one that is shipped. Raises PriceBookInvalid, which names file and key."""
    if path is None:
        shipped = resources.files("pipeline").joinpath("chargeback/default_prices.toml")
        return parse_price_book(shipped.read_text(encoding="utf-8"), shipped.name)
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise PriceBookInvalid(f"{path}: {error.strerror}; name a price book, docs/chargeback.md") from error
    except UnicodeDecodeError as error:
        raise PriceBookInvalid(f"{path}: no text in UTF-8; name a price book, docs/chargeback.md") from error
    return parse_price_book(text, str(path))


def parse_price_book(text: str, source: str) -> PriceBook:
    """The book of this text; ``source`` names it in the message of PriceBookInvalid."""
    try:
        content = tomllib.loads(text, parse_float=Decimal)
    except ValueError as error:
        raise PriceBookInvalid(f"{source}: no TOML: {error}") from error
    try:
        return PriceBook.model_validate(content)
    except ValidationError as error:
        faults = "; ".join(_fault(fault) for fault in error.errors())
        raise PriceBookInvalid(f"{source}: {faults}; docs/chargeback.md has the format") from error


def price_at(book: PriceBook, model_id: str | None, when: datetime) -> UnitPrices:
    """The prices in force at a moment, for the model of that name, else for ``*``. A price that the book does not have
    is None and raises nothing: no call is left out of the books for want of a price. ``model_id`` is None for a page
    that only the CPU reads. Raises ValueError where ``when`` has no time zone: its day would not be known."""
    if when.tzinfo is None:
        raise ValueError(f"{when} has no time zone; prices begin at midnight UTC")
    entry = book.entry_on(when.astimezone(UTC).date())
    prices = None if entry is None or model_id is None else entry.prices_of(model_id)
    return UnitPrices(
        currency=book.currency,
        book_version=book.version,
        prompt_micro_per_million=None if prices is None else prices.prompt_micro,
        cached_micro_per_million=None if prices is None else prices.cached_tokens_micro,
        completion_micro_per_million=None if prices is None else prices.completion_micro,
        cpu_page_micro_per_million=None if entry is None else entry.cpu_page_micro,
    )


def cost_of(prices: UnitPrices, usage: TokenUsage | None = None, *, cpu_pages: int = 0) -> int | None:
    """What a call, or a page read on the CPU, costs: whole micro-units, rounded once, half to even.

    Cached tokens are part of the prompt's: they have the cached price, the rest of the prompt has the prompt price.
    None cached tokens are none. Reasoning tokens are part of the completion's and cost the same. Estimated usage costs
    what billed usage does. No count may be below 0. None, for unpriced, where something was used that has no price;
    what was not used needs none. Nothing is lost before the end: the sum of counts times prices is exact, and is
    divided by a million at last.
    """
    total = 0
    charges = (*_charges(prices, usage), (cpu_pages, prices.cpu_page_micro_per_million))
    for count, micro_per_million in charges:
        if count and micro_per_million is None:
            return None
        total += count * (micro_per_million or 0)
    return half_even(total, MILLION)


def _charges(prices: UnitPrices, usage: TokenUsage | None) -> tuple[tuple[int, int | None], ...]:
    """Counts of tokens with their prices."""
    if usage is None:
        return ()
    cached_tokens = min(usage.cached_tokens or 0, usage.prompt_tokens)
    return (
        (usage.prompt_tokens - cached_tokens, prices.prompt_micro_per_million),
        (cached_tokens, prices.cached_micro_per_million),
        (usage.completion_tokens, prices.completion_micro_per_million),
    )


_KEYS: Final = tuple(
    field.alias or name
    for table in (PriceBook, PriceEntry, ModelPrices)
    for name, field in table.model_fields.items()
)


def _fault(fault: ErrorDetails) -> str:
    """One fault with its place, such as ``entries.1.per_cpu_pages: no such key (did you mean per_cpu_page?)``.
    Entries count from 1."""
    place = ".".join(str(part + 1) if isinstance(part, int) else part for part in fault["loc"]) or "file"
    match fault["type"]:
        case "extra_forbidden":
            close = difflib.get_close_matches(str(fault["loc"][-1]), _KEYS, n=1)
            return f"{place}: no such key" + (f" (did you mean {close[0]}?)" if close else "")
        case "missing":
            return f"{place}: missing"
        case "value_error":
            return f"{place}: {fault['msg'].removeprefix('Value error, ')}"
        case "date_type":
            return (
                f"{place}: {fault['input']} is no day; write one without quotes and time, such as 2026-01-01"
            )
        case _:
            return f"{place}: {fault['msg']}, not {echoed(fault['input'])}"
