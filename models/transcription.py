"""A page on its way through the VLM, as values: the image sent, the reply, the verdict, the attempt."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """What a call cost. ``prompt_tokens`` include ``cached_tokens``, ``completion_tokens`` include
    ``reasoning_tokens``; None where the server does not tell them apart. ``is_estimated``: the server did not
    say, and these are the tokens predicted."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    is_estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedImage:
    """A page, or a strip of one, as it is sent: whole cells a side, so that the server leaves its size alone.

    ``encoded`` is a PNG; ``visual_tokens`` is what the server will bill for it, without the two tokens that open
    and close an image in the prompt. ``tier`` names the pixel budget it was fitted to.
    """

    encoded: bytes = field(repr=False)
    width_px: int
    height_px: int
    visual_tokens: int
    tier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VlmRequest:
    """One call. ``request_id`` names page and attempt. A lower ``priority`` is served first. ``page_count`` is
    the number of pages that the images show: several images may be the strips of one page."""

    request_id: str
    images: tuple[FittedImage, ...]
    temperature: float
    max_tokens: int
    priority: int = 0
    page_count: int = 1

    @property
    def visual_tokens(self) -> int:
        return sum(image.visual_tokens for image in self.images)


@dataclass(frozen=True, slots=True, kw_only=True)
class VlmReply:
    """What came back, unjudged. ``usage`` is None where the server did not say. ``finish_reason`` is the
    protocol's: ``stop``, ``length``, ``content_filter``, …"""

    text: str
    finish_reason: str | None
    usage: TokenUsage | None
    model_id: str
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAnswer:
    """A reply in the terms of the output contract, cleaned: no fence, no chat, no unsafe HTML.

    ``markdown`` may hold HTML tables and the marks ``<handwriting>``, ``<stamp>``, ``<signature/>`` and
    ``<figure>``; ``text`` is the same without markup; ``tables`` are the ``<table>`` elements in order.
    ``rotation_deg`` (0, 90, 180, 270) is the clockwise turn that would make the image upright, ``language`` an
    ISO 639-1 code; both None where the reply does not say. ``is_blank``: the reply says that there is nothing on
    the page. ``removed`` names what was cut away, such as "chat" or "fence".
    """

    markdown: str
    text: str
    tables: tuple[str, ...] = ()
    language: str | None = None
    rotation_deg: int | None = None
    is_blank: bool = False
    removed: tuple[str, ...] = ()


class DegradedCode(StrEnum):
    """Why a page that needs the VLM has the CPU's text."""

    NO_VLM = "no_vlm"
    """None is configured."""
    AWAITING_VLM = "awaiting_vlm"
    """Its turn has not come; the run that it belongs to is not over."""
    VLM_UNAVAILABLE = "vlm_unavailable"
    """The service did not answer for as long as a page waits."""
    WORKER_LOST = "worker_lost"
    """The pool's workers that had it transcribed were lost, again and again."""
    VLM_REFUSED = "vlm_refused"
    """The service takes no such request: wrong key, wrong model, wrong size."""
    ANSWERS_REFUSED = "answers_refused"
    """It answered, and every answer was judged to be no transcript of the page."""
    PAGE_NOT_SENT = "page_not_sent"
    """The page could not be drawn again for it."""
    BUDGET_SPENT = "budget_spent"
    """The budget of its cost centre has no room for it."""
    BUDGET_HELD = "budget_held"
    """The same, and it is held until there is."""


DEGRADED_FOR_NOW = frozenset(
    {
        DegradedCode.AWAITING_VLM,
        DegradedCode.VLM_UNAVAILABLE,
        DegradedCode.WORKER_LOST,
        DegradedCode.VLM_REFUSED,
        DegradedCode.BUDGET_HELD,
    }
)
"""A later run tries these pages again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degradation:
    code: DegradedCode
    message: str


class Verdict(StrEnum):
    """What became of a call. All but ``accepted`` leave the page without the VLM's text."""

    ACCEPTED = "accepted"
    # The answer is no good.
    TRUNCATED = "truncated"
    REPETITION = "repetition"
    OVERLONG = "overlong"
    EMPTY = "empty"
    ILLEGIBLE = "illegible"
    WRONG_SCRIPT = "wrong_script"
    REFUSAL = "refusal"
    PROMPT_ECHO = "prompt_echo"
    LOST_WORDS = "lost_words"
    INVENTED_TEXT = "invented_text"
    BROKEN_TABLE = "broken_table"
    NOT_UPRIGHT = "not_upright"
    CONTENT_FILTERED = "content_filtered"
    # There is no answer.
    UNREACHABLE = "unreachable"
    CONNECTION_LOST = "connection_lost"
    TIMED_OUT = "timed_out"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    REQUEST_REFUSED = "request_refused"
    UNAUTHORISED = "unauthorised"
    MODEL_NOT_FOUND = "model_not_found"
    BAD_RESPONSE = "bad_response"
    ABANDONED = "abandoned"
    """The process that made the call ended before it was booked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One number behind a verdict, with the limit it crossed; ``sample`` quotes the answer (at most 200
    characters) where a number says too little."""

    name: str
    measured: float
    limit: float
    sample: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    verdict: Verdict
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that is about to be made, ``attempt`` counting from 1 within the page. ``predicted_prompt_tokens`` are
    those of the images and of the text around them. ``cost_centre`` pays, at the prices of when it started.
    ``reserved_tokens`` of prompt and answer are the most that it may take, ``reserved_micro`` what they cost; None
    without a price."""

    reading_id: int
    page_number: int
    attempt: int
    submission_id: int | None
    cost_centre: str
    request_id: str
    model_id: str
    tier: str
    width_px: int
    height_px: int
    predicted_visual_tokens: int
    predicted_prompt_tokens: int
    temperature: float
    started_at_s: float
    reserved_tokens: int
    reserved_micro: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """What came of a call."""

    verdict: Verdict
    usage: TokenUsage
    evidence: tuple[Evidence, ...] = ()
    message: str | None = None
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One call, booked. ``attempt`` counts from 1 within a page. ``width_px`` and ``height_px`` are those of the
    first image sent; ``message`` is the error's where there was no answer;
    ``elapsed_s`` is None for a call that was abandoned."""

    attempt: int
    request_id: str
    model_id: str
    tier: str
    width_px: int
    height_px: int
    predicted_visual_tokens: int
    usage: TokenUsage
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    temperature: float
    elapsed_s: float | None
    message: str | None = None
