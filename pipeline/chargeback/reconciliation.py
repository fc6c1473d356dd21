"""The ledger against the counters of the VLM's service: do they agree on the tokens of a window of time?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounters:
    """What a service has counted for one model since it started. ``created_s`` is when it began to count (Unix
    seconds), None where it does not say."""

    prompt_tokens: int
    completion_tokens: int
    created_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterReading:
    """Counters by model, as they stood at ``read_at_s`` (Unix seconds)."""

    read_at_s: float
    url: str
    models: Mapping[str, TokenCounters]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedTokens:
    """What the ledger has for one model in a window, reversals taken off. ``reversals`` are entries,
    ``estimated_calls`` those booked at tokens that the server did not confirm."""

    model_id: str
    prompt_tokens: int
    completion_tokens: int
    reversals: int = 0
    estimated_calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDifference:
    """``counted`` tokens are what the counters grew by. ``restarted``: they fell, or began anew, so they were counted
    from 0."""

    model_id: str
    counted_prompt_tokens: int
    counted_completion_tokens: int
    booked: BookedTokens
    restarted: bool

    @property
    def prompt_tokens(self) -> int:
        """Counted and not booked; below 0 where more was booked than counted."""
        return self.counted_prompt_tokens - self.booked.prompt_tokens

    @property
    def completion_tokens(self) -> int:
        return self.counted_completion_tokens - self.booked.completion_tokens

    def is_within(self, tolerance_tokens: int) -> bool:
        return max(abs(self.prompt_tokens), abs(self.completion_tokens)) <= tolerance_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """``calls_under_way`` at the two readings: the service counts a call's tokens as it works, the ledger once the call
    has ended."""

    since: CounterReading
    until: CounterReading
    models: tuple[ModelDifference, ...]
    calls_under_way: tuple[int, int]

    def is_within(self, tolerance_tokens: int) -> bool:
        return all(model.is_within(tolerance_tokens) for model in self.models)


def reconcile(
    since: CounterReading,
    until: CounterReading,
    booked: Iterable[BookedTokens],
    calls_under_way: tuple[int, int] = (0, 0),
) -> Reconciliation:
    """Every model that the service or the ledger knows of, by name."""
    by_model = {one.model_id: one for one in booked}
    names = sorted({*since.models, *until.models, *by_model})
    models = (
        _difference(
            name,
            since.models.get(name),
            until.models.get(name),
            by_model.get(name) or BookedTokens(model_id=name, prompt_tokens=0, completion_tokens=0),
        )
        for name in names
    )
    return Reconciliation(since=since, until=until, models=tuple(models), calls_under_way=calls_under_way)


def explanations(reconciliation: Reconciliation, tolerance_tokens: int) -> Iterator[str]:
    """What may explain the differences, likeliest first; nothing where there are none."""
    off = [model for model in reconciliation.models if not model.is_within(tolerance_tokens)]
    if not off:
        return
    for model in off:
        if model.restarted:
            yield (
                f"{model.model_id}: the service started again in the window, and what it had counted before is lost"
            )
        if model.booked.estimated_calls:
            yield (
                f"{model.model_id}: {model.booked.estimated_calls:,} calls ended without a bill, abandoned ones among "
                "them, and are booked at estimated tokens"
            )
        if model.booked.reversals:
            yield f"{model.model_id}: {model.booked.reversals:,} entries were taken back; the service knows of none"
    for moment, calls in zip(("start", "end"), reconciliation.calls_under_way, strict=True):
        if calls:
            yield (
                f"{calls:,} calls were under way at the {moment} of the window, or were left open by a process that is "
                "gone; read the counters while nothing runs"
            )
    if any(max(model.prompt_tokens, model.completion_tokens) > 0 for model in off):
        yield "counted and not booked: another client or another database uses the service"
    if any(min(model.prompt_tokens, model.completion_tokens) < 0 for model in off):
        yield "booked and not counted: calls went to another service, or another replica behind the address"


def _difference(
    name: str, before: TokenCounters | None, after: TokenCounters | None, booked: BookedTokens
) -> ModelDifference:
    """A model that is gone from the counters was lost in a restart."""
    nothing = TokenCounters(prompt_tokens=0, completion_tokens=0)
    restarted = before is not None and (after is None or _began_anew(before, after))
    start = nothing if before is None or restarted else before
    end = after or nothing
    return ModelDifference(
        model_id=name,
        counted_prompt_tokens=end.prompt_tokens - start.prompt_tokens,
        counted_completion_tokens=end.completion_tokens - start.completion_tokens,
        booked=booked,
        restarted=restarted,
    )


def _began_anew(before: TokenCounters, after: TokenCounters) -> bool:
    fell = after.prompt_tokens < before.prompt_tokens or after.completion_tokens < before.completion_tokens
    both = before.created_s is not None and after.created_s is not None
    return fell or (both and before.created_s != after.created_s)
