"""What the fake VLM service is asked, and how it is told to behave."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from models.transcription import TokenUsage


class Fault(StrEnum):
    # Told at the door: the model does no work.
    RATE_LIMITED = "rate_limited"
    RATE_LIMITED_IN_MS = "rate_limited_in_ms"
    RATE_LIMITED_UNTIL = "rate_limited_until"
    """Retry-After is a date, by a clock that is an hour fast."""
    RATE_LIMITED_SILENTLY = "rate_limited_silently"
    OVERLOADED = "overloaded"
    UNAUTHORISED = "unauthorised"
    FORBIDDEN = "forbidden"
    MODEL_NOT_FOUND = "model_not_found"
    UNKNOWN_PARAMETER = "unknown_parameter"
    TOO_MANY_IMAGES = "too_many_images"
    TOO_NARROW = "too_narrow"
    TOO_LONG = "too_long"
    TOO_LARGE = "too_large"
    MOVED = "moved"
    ECHO = "echo"
    """HTTP 422 that quotes the whole request, image and key included."""
    # The model works, but no answer comes of it.
    HANG = "hang"
    DRIP = "drip"
    """The body comes a byte at a time, and never ends."""
    SERVER_ERROR = "server_error"
    BAD_GATEWAY = "bad_gateway"
    """A proxy's HTML page with HTTP 502."""
    RESET = "reset"
    RESET_IN_BODY = "reset_in_body"
    CRASH = "crash"
    """The service dies with all that is in flight, and refuses connections for ``Script.down_s``."""
    INVALID_JSON = "invalid_json"
    WEB_PAGE = "web_page"
    """An HTML page with HTTP 200."""
    NO_CHOICES = "no_choices"
    ERROR_IN_SUCCESS = "error_in_success"
    """HTTP 200 with an error object."""
    # An answer, but no good one.
    SLOW = "slow"
    TRUNCATED = "truncated"
    REPETITION = "repetition"
    LIE = "lie"
    EMPTY = "empty"
    CONTENT_NONE = "content_none"
    REFUSAL = "refusal"
    REFUSAL_APART = "refusal_apart"
    """The refusal stands in a field of its own, as OpenAI has it."""
    CHAT = "chat"
    PROMPT_ECHO = "prompt_echo"
    FENCE = "fence"
    WRONG_SCRIPT = "wrong_script"
    BROKEN_TABLE = "broken_table"
    CONTENT_FILTERED = "content_filtered"
    # A good answer with a bad bill, or in an unusual form.
    CONTENT_PARTS = "content_parts"
    NO_USAGE = "no_usage"
    ZERO_USAGE = "zero_usage"
    WRONG_BILL = "wrong_bill"


RATE_LIMITS = frozenset(
    {
        Fault.RATE_LIMITED,
        Fault.RATE_LIMITED_IN_MS,
        Fault.RATE_LIMITED_UNTIL,
        Fault.RATE_LIMITED_SILENTLY,
    }
)
AT_THE_DOOR = RATE_LIMITS | frozenset(
    {
        Fault.OVERLOADED,
        Fault.UNAUTHORISED,
        Fault.FORBIDDEN,
        Fault.MODEL_NOT_FOUND,
        Fault.UNKNOWN_PARAMETER,
        Fault.TOO_MANY_IMAGES,
        Fault.TOO_NARROW,
        Fault.TOO_LONG,
        Fault.TOO_LARGE,
        Fault.MOVED,
        Fault.ECHO,
    }
)
WITHOUT_ANSWER = frozenset(
    {
        Fault.HANG,
        Fault.DRIP,
        Fault.SERVER_ERROR,
        Fault.BAD_GATEWAY,
        Fault.RESET,
        Fault.RESET_IN_BODY,
        Fault.CRASH,
        Fault.INVALID_JSON,
        Fault.WEB_PAGE,
        Fault.NO_CHOICES,
        Fault.ERROR_IN_SUCCESS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request as it arrived. ``number`` counts from 1. ``images`` are the encoded bytes, ``sizes`` their width
    and height in pixels, in the order of the prompt. ``fields`` is the whole body."""

    number: int
    request_id: str
    key: str | None
    model: str
    system: str
    text: str
    images: tuple[bytes, ...] = field(repr=False)
    sizes: tuple[tuple[int, int], ...]
    temperature: float | None
    max_tokens: int
    priority: int | None
    headers: Mapping[str, str] = field(repr=False)
    fields: Mapping[str, object] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRequest:
    """What is remembered of a request; it holds no image. ``arrived_s`` is on the monotonic clock, ``in_flight``
    counts this one too, ``fields`` names what stood in the body. ``billed`` is what the model worked for,
    whether or not the answer said so; None where it did not work. ``reported`` is the usage in the answer.
    """

    number: int
    request_id: str
    model: str
    arrived_s: float
    in_flight: int
    sizes: tuple[tuple[int, int], ...]
    temperature: float | None
    max_tokens: int
    priority: int | None
    fields: tuple[str, ...]
    fault: Fault | None
    billed: TokenUsage | None
    reported: TokenUsage | None


FaultPicker = Callable[[ChatRequest], Fault | None]


def never(request: ChatRequest) -> Fault | None:
    return None


def always(fault: Fault) -> FaultPicker:
    return lambda request: fault


def first(count: int, fault: Fault) -> FaultPicker:
    """The first ``count`` requests fail, all later ones do well."""
    return lambda request: fault if request.number <= count else None


def numbered(faults: Mapping[int, Fault]) -> FaultPicker:
    return lambda request: faults.get(request.number)


def on_pages(mark: str, fault: Fault) -> FaultPicker:
    """Every request whose id holds ``mark``."""
    return lambda request: fault if mark in request.request_id else None


def at_random(shares: Mapping[Fault, float], *, seed: int) -> FaultPicker:
    """Each fault with its share of the requests, the same requests for the same seed."""

    def picked(request: ChatRequest) -> Fault | None:
        place = random.Random(f"{seed}/{request.number}").random()
        for fault, share in shares.items():
            place -= share
            if place < 0:
                return fault
        return None

    return picked


def plain_answer(request: ChatRequest) -> str:
    """A page of text that differs from request to request but not from attempt to attempt at equal images."""
    size = " by ".join(str(side) for side in request.sizes[0]) if request.sizes else "no image"
    return f"# Harbour log\n\nThe page measures {size}. Wind from the west, calm sea, nine boats at the quay."


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """How the service behaves. ``concurrency`` requests are worked on at once, each for ``seconds_a_request``;
    more wait in a queue, of ``max_queued`` at most, beyond which the answer is 503."""

    answer: Callable[[ChatRequest], str] = plain_answer
    fault: FaultPicker = never
    seconds_a_request: float = 0.0
    concurrency: int = 64
    max_queued: int | None = None
    slow_s: float = 0.3
    retry_after_s: float = 2.0
    down_s: float = 0.5
    wrong_bill_tokens: int = 100
    other_page: str = (
        "# Minutes of the chess club\n\nThe treasurer resigned and the cup was lent to the library."
    )
