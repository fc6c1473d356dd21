"""Is an answer to be believed? Checked against how it ended, against itself, and against what the OCR saw.

The checks run in one order, and the first that fails gives the verdict, because the verdict decides what is tried
next: a loop that ran into the token limit is a loop (another temperature helps, more tokens do not), and a page that
lies on its side is turned before anybody asks what was lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from models.text import Line
from models.transcription import Evidence, Judgement, PageAnswer, Verdict, VlmReply
from pipeline.answers.agreement import Agreement, is_sure, letters_by_script, sure_words, word_agreement
from pipeline.answers.remarks import echo_of_prompt, refusal, remaining_chat
from pipeline.answers.repetition import Loop, find_endless_tail, find_loop, tokens_of
from pipeline.answers.table_shape import odd_rows

STOPPED: Final = frozenset({"stop", "eos", "eos_token", "end_turn", "stop_sequence", "completed"})
"""How servers and gateways say that the model had finished."""

MOST_SAMPLE_CHARS: Final = 200

LEAST_UPRIGHT_WORDS, LEAST_UPRIGHT_SHARE = 10, 0.8
"""An answer with so many of the OCR's sure words was read from an upright page, whatever it says of rotation."""

MOST_ILLEGIBLE_SHARE: Final = 0.3
"""Of an answer's words: with more of them ``[illegible]``, a larger image may help."""

LEAST_SURE_WORDS: Final = 3
LEAST_PAGE_INK_SHARE: Final = 0.005
"""A page has something on it when the OCR is sure of so many words, or when so much of it is inked: ten times what
specks of a scan leave, a tenth of a page of text."""

LEAST_INK_PER_CHARACTER: Final = 5e-6
"""Of a page's area. On 120 real pages the smallest print had 1.5e-5 for each character that is no space."""

MOST_WORDS_PER_OCR_WORD, SPARE_WORDS = 3, 60
LEAST_SURE_SHARE: Final = 0.5
"""OCR loses words, but not two in three of them where it is sure of half of what it read; a caption or a heading may
come on top."""

MOST_PAGE_CHARS: Final = 60_000
"""A broadsheet page holds 40,000."""

LEAST_SCRIPT_LETTERS: Final = 20
LEAST_SCRIPT_SHARE: Final = 0.3
"""Of the letters in the OCR's main script that an answer mostly in another script has to hold."""

AGREEMENT_LIMITS: Final = ((60, 0.82), (30, 0.8), (12, 0.65), (4, 0.4))
"""From so many sure words of the OCR on, this share has to be in the answer. On real pages with 30 and more, true
transcripts hold 0.86 to 1 of them. Few words say little: one logo misread among four is a quarter. Fewer than four
are no evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEvidence:
    """What is known of the page that an answer is about.

    ``lines`` are the OCR's. ``ink_share`` is the share of the upright page's area that is inked, as
    ``find_letters(image).ink.mean()`` gives it, None where it was not measured. ``language`` is the OCR's (ISO 639-1).
    ``has_visual_elements``: there is handwriting, a stamp or a table, of which OCR misses words, so that words it did
    not see are no invention. ``max_tokens`` is what the answer was allowed.
    """

    lines: tuple[Line, ...]
    ink_share: float | None
    language: str | None
    max_tokens: int
    has_visual_elements: bool


class _Case:
    """One answer before the checks; what several of them need is worked out once."""

    def __init__(self, reply: VlmReply, answer: PageAnswer, page: PageEvidence) -> None:
        self.reply = reply
        self.answer = answer
        self.page = page

    @cached_property
    def ocr_text(self) -> str:
        return "\n".join(line.text for line in self.page.lines)

    @cached_property
    def ocr_tokens(self) -> Counter[str]:
        return Counter(tokens_of(self.ocr_text))

    @cached_property
    def is_ocr_sure(self) -> bool:
        """Whether the OCR knows how much there is to read."""
        words = [is_sure(word) for line in self.page.lines for word in line.words]
        return bool(words) and sum(words) >= LEAST_SURE_SHARE * len(words)

    @cached_property
    def agreement(self) -> Agreement:
        return word_agreement(self.page.lines, self.answer.text)

    @cached_property
    def has_content(self) -> bool:
        """Some text, or at least a mark: a page may hold a signature and nothing else."""
        marks = ("<stamp>", "<signature/>", "<figure>")
        return bool(self.answer.text) or any(mark in self.answer.markdown for mark in marks)

    @cached_property
    def is_cut_off(self) -> bool:
        """Whether the answer ended for any other reason than its own. A server that gives no reason is believed,
        unless the answer is as long as it was allowed to be."""
        reason, usage = self.reply.finish_reason, self.reply.usage
        if reason is None:
            return usage is not None and usage.completion_tokens >= self.page.max_tokens
        return reason.casefold() not in STOPPED


def judge_answer(reply: VlmReply, answer: PageAnswer, page: PageEvidence) -> Judgement:
    """``accepted``, or the first fault found, with the numbers behind it. The order is that of ``CHECKS``."""
    case = _Case(reply, answer, page)
    for verdict, check in CHECKS:
        evidence = tuple(check(case))
        if evidence:
            return Judgement(verdict=verdict, evidence=evidence)
    return Judgement(verdict=Verdict.ACCEPTED, evidence=tuple(_support(case)))


def _filtered(case: _Case) -> Iterator[Evidence]:
    if (case.reply.finish_reason or "").casefold() == "content_filter":
        yield _evidence("finish_reason", 1, 0, case.reply.finish_reason)


def _not_upright(case: _Case) -> Iterator[Evidence]:
    turn, agreement = case.answer.rotation_deg, case.agreement
    was_read = agreement.wanted >= LEAST_UPRIGHT_WORDS and agreement.share >= LEAST_UPRIGHT_SHARE
    if turn and not was_read:
        yield _evidence("rotation_deg", turn, 0)


def _repetition(case: _Case) -> Iterator[Evidence]:
    loop = find_loop(case.answer.markdown, case.ocr_tokens)
    if loop is None and case.is_cut_off:
        loop = find_endless_tail(case.reply.text)
    if loop is not None:
        yield _of_loop(loop)
        yield from _truncated(case)


def _of_loop(loop: Loop) -> Evidence:
    return _evidence(loop.name, loop.repeats, loop.limit, loop.unit)


def _truncated(case: _Case) -> Iterator[Evidence]:
    if case.is_cut_off:
        yield _evidence("finish_reason", 1, 0, str(case.reply.finish_reason))
        if case.reply.usage is not None:
            yield _evidence("completion_tokens", case.reply.usage.completion_tokens, case.page.max_tokens)


def _prompt_echo(case: _Case) -> Iterator[Evidence]:
    echo = echo_of_prompt(case.answer.text, case.ocr_text)
    if echo is not None:
        yield _evidence("echoed_words", echo.words, echo.limit, echo.sample)


def _refusal(case: _Case) -> Iterator[Evidence]:
    declined = refusal(case.answer.text, case.ocr_tokens)
    chat = remaining_chat(case.answer.markdown, case.ocr_tokens)
    if declined is not None:
        yield _evidence("refusal", 1, 0, declined)
    elif chat is not None:
        yield _evidence("chat", 1, 0, chat)


def _empty(case: _Case) -> Iterator[Evidence]:
    if case.has_content:
        return
    words, ink = sure_words(case.page.lines), case.page.ink_share
    if words.total() >= LEAST_SURE_WORDS:
        yield _evidence("sure_ocr_words", words.total(), LEAST_SURE_WORDS, " ".join(words))
    if ink is not None and ink >= LEAST_PAGE_INK_SHARE:
        yield _evidence("ink_share", ink, LEAST_PAGE_INK_SHARE)
    if ink is None and not words and not case.answer.is_blank:
        yield _evidence("characters", 0, 1)


def _illegible(case: _Case) -> Iterator[Evidence]:
    marks = case.answer.text.count("[illegible]")
    words = len(case.answer.text.split())
    if marks and (marks == words or marks >= 2) and marks / words > MOST_ILLEGIBLE_SHARE:
        yield _evidence("illegible_share", marks / words, MOST_ILLEGIBLE_SHARE, case.answer.text)


def _invented(case: _Case) -> Iterator[Evidence]:
    ink = case.page.ink_share
    letters = sum(sign.isalnum() for sign in case.answer.text)
    if ink is not None and letters * LEAST_INK_PER_CHARACTER > ink:
        yield _evidence("characters", letters, ink / LEAST_INK_PER_CHARACTER, case.answer.text)


def _overlong(case: _Case) -> Iterator[Evidence]:
    length = len(case.answer.text)
    if length > MOST_PAGE_CHARS or "excess" in case.answer.removed:
        yield _evidence("characters", max(length, len(case.reply.text)), MOST_PAGE_CHARS)
    words, limit = _words(case.answer.text), MOST_WORDS_PER_OCR_WORD * _words(case.ocr_text) + SPARE_WORDS
    if words > limit and not case.page.has_visual_elements and case.is_ocr_sure:
        yield _evidence("words", words, limit, case.answer.text[-MOST_SAMPLE_CHARS:])


def _words(text: str) -> int:
    """Words with letters or digits; ideographs count one by one."""
    return sum(1 for token in tokens_of(text) if token[0].isalnum())


def _wrong_script(case: _Case) -> Iterator[Evidence]:
    wanted = letters_by_script(" ".join(sure_words(case.page.lines).elements()))
    answered = letters_by_script(case.answer.text)
    if not wanted or not answered:
        return
    (script, letters), (main, most) = wanted.most_common(1)[0], answered.most_common(1)[0]
    share = answered[script] / letters
    is_enough = letters >= LEAST_SCRIPT_LETTERS and most >= LEAST_SCRIPT_LETTERS
    if is_enough and main != script and share < LEAST_SCRIPT_SHARE:
        yield _evidence(
            "script_share", share, LEAST_SCRIPT_SHARE, f"{script} became {main}: {case.answer.text}"
        )


def _lost_words(case: _Case) -> Iterator[Evidence]:
    found = case.agreement
    limit = _agreement_limit(found.wanted)
    if limit is not None and found.share < limit:
        yield _evidence("word_agreement", found.share, limit, " ".join(found.missing))
        if case.page.language and case.answer.language and case.page.language != case.answer.language:
            yield _evidence("language_differs", 1, 0, f"{case.page.language} became {case.answer.language}")


def _agreement_limit(words: int) -> float | None:
    return next((limit for least, limit in AGREEMENT_LIMITS if words >= least), None)


def _broken_table(case: _Case) -> Iterator[Evidence]:
    for table in case.answer.tables:
        rows = odd_rows(table)
        if rows:
            first = rows[0]
            yield _evidence("row_width", first.width, first.expected, f"row {first.row_number}: {first.text}")
            yield _evidence("odd_rows", len(rows), 0)
            return


def _support(case: _Case) -> Iterator[Evidence]:
    """What speaks for an accepted answer."""
    limit = _agreement_limit(case.agreement.wanted)
    if limit is not None:
        yield _evidence("word_agreement", case.agreement.share, limit)


def _evidence(name: str, measured: float, limit: float, sample: str | None = None) -> Evidence:
    text = None if sample is None else " ".join(sample.split())[:MOST_SAMPLE_CHARS]
    return Evidence(name=name, measured=round(float(measured), 4), limit=round(float(limit), 4), sample=text)


CHECKS: Final[tuple[tuple[Verdict, Callable[[_Case], Iterator[Evidence]]], ...]] = (
    (Verdict.CONTENT_FILTERED, _filtered),
    (Verdict.NOT_UPRIGHT, _not_upright),
    (Verdict.REPETITION, _repetition),
    (Verdict.TRUNCATED, _truncated),
    (Verdict.PROMPT_ECHO, _prompt_echo),
    (Verdict.REFUSAL, _refusal),
    (Verdict.EMPTY, _empty),
    (Verdict.ILLEGIBLE, _illegible),
    (Verdict.INVENTED_TEXT, _invented),
    (Verdict.OVERLONG, _overlong),
    (Verdict.WRONG_SCRIPT, _wrong_script),
    (Verdict.LOST_WORDS, _lost_words),
    (Verdict.BROKEN_TABLE, _broken_table),
)
