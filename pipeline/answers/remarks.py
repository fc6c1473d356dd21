"""What in an answer is no transcript: the prompt said back, a refusal, talk about the page.

Pages hold such words as well: a letter is sorry, a manual talks of markup. What the OCR read on the page is page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from pipeline.answers.phrases import DESCRIPTION, LEAD_IN, MOST_CHAT_CHARS, OFFER, REFUSAL, REMARK, plain_line
from pipeline.answers.prompt import SEVERAL_PAGES, SYSTEM_PROMPT

MOST_ECHOED_WORDS: Final = 9
"""Of the prompt in a row. By chance a page has four or five."""

MOST_REFUSAL_CHARS: Final = 600
REFUSAL_START_CHARS: Final = 300
"""A refusal is short and begins as one; a long answer that is sorry somewhere is a page."""

CONFIRMED_SHARE: Final = 0.5
"""Of a paragraph's longer words that the OCR has read: then it is on the page."""
LEAST_WORD_LETTERS: Final = 4

_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Echo:
    words: int
    limit: int
    sample: str


def echo_of_prompt(text: str, ocr_text: str) -> Echo | None:
    """The longest run of words that the answer has from the prompt and not from the page."""
    words = _WORD.findall(text.casefold())
    size = MOST_ECHOED_WORDS + 1
    hits = _shingles(words, size) & _prompt_shingles(size)
    hits -= _shingles(_WORD.findall(ocr_text.casefold()), size)
    if not hits:
        return None
    first = next(n for n in range(len(words)) if tuple(words[n : n + size]) in hits)
    end = first
    while tuple(words[end : end + size]) in hits:
        end += 1
    return Echo(
        words=end - first + size - 1, limit=MOST_ECHOED_WORDS, sample=" ".join(words[first : end + size])
    )


def refusal(text: str, seen: Counter[str]) -> str | None:
    """The answer, where all it does is to decline."""
    start = plain_line(" ".join(text[:REFUSAL_START_CHARS].split()))
    is_refusal = len(text) <= MOST_REFUSAL_CHARS and REFUSAL.search(start) is not None
    return text if is_refusal and not _is_on_page(text, seen) else None


def remaining_chat(markdown: str, seen: Counter[str]) -> str | None:
    """A paragraph at the beginning or the end that talks about the work or the picture."""
    paragraphs = markdown.split("\n\n")
    for number, paragraph in enumerate(paragraphs):
        if 2 <= number < len(paragraphs) - 2 or len(paragraph) > 3 * MOST_CHAT_CHARS:
            continue
        line = plain_line(" ".join(paragraph[:MOST_CHAT_CHARS].split()))
        is_first, is_last = number < 2, number >= len(paragraphs) - 2
        is_chat = is_first and (LEAD_IN.fullmatch(line) or DESCRIPTION.match(line))
        is_offer = is_last and (OFFER.search(line) or REMARK.match(line))
        if (is_chat or is_offer) and not _is_on_page(paragraph, seen):
            return paragraph
    return None


def _is_on_page(text: str, seen: Counter[str]) -> bool:
    words = [word for word in _WORD.findall(text.casefold()) if len(word) >= LEAST_WORD_LETTERS]
    return bool(words) and sum(word in seen for word in words) >= CONFIRMED_SHARE * len(words)


@cache
def _prompt_shingles(size: int) -> frozenset[tuple[str, ...]]:
    prompts = (SYSTEM_PROMPT, SEVERAL_PAGES)
    return frozenset().union(*(_shingles(_WORD.findall(prompt.casefold()), size) for prompt in prompts))


def _shingles(words: Sequence[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(words[start : start + size]) for start in range(len(words) - size + 1)}
