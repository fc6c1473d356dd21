"""From what a model wrote to the page it describes: unwrapped, cleaned, in the terms of the output contract.

Nothing here knows the page: whether the answer is to be believed is for ``vlm_judge``.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from typing import Final

from models.transcription import PageAnswer
from pipeline.answers.facts import PageFacts, split_facts
from pipeline.answers.frame import (
    says_blank,
    without_fence,
    without_first_rule,
    without_lead_in,
    without_preface,
    without_reasoning,
    without_special_tokens,
    without_tail,
)
from pipeline.answers.markup import as_plain, clean_markup
from pipeline.answers.plain_text import plain_text

MOST_CHARS: Final = 100_000
"""Of an answer; what comes after is cut off, which ``removed`` tells as "excess". The densest newspaper page holds
40,000 characters, and 16,000 tokens of Latin text are about 64,000."""

MOST_ROUNDS: Final = 12
"""Taking off one wrapping may show another. Real answers need two rounds; after this many all tags become text."""

_DROPPED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_KEPT: Final = frozenset("\n\t\u200c\u200d")
"""Zero-width joiner and non-joiner spell words in Persian and in the Indic scripts."""

NO_FACTS: Final = PageFacts()
_TABLE_LINE: Final = re.compile(r"^<table>.*</table>$", re.MULTILINE)


_PAGE_MARK: Final = re.compile(
    r"^[ \t]*<!--[ \t]*page[ \t]+(\d{1,3})[ \t]*-->[ \t]*$", re.MULTILINE | re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    text: str
    facts: PageFacts = NO_FACTS
    removed: tuple[str, ...] = ()

    def cut(self, name: str, text: str) -> _Draft:
        """With ``text`` in place of its own, and ``name`` among what was removed where more than spaces differ."""
        text = text.strip()
        is_same = text == self.text or text.split() == self.text.split()
        removed = self.removed if is_same else tuple(dict.fromkeys((*self.removed, name)))
        return replace(self, text=text, removed=removed)


def parse_answer(text: str) -> PageAnswer:
    """The page that ``text`` describes. Never fails: whatever isn't known is text. Parsing the Markdown of an answer
    gives the same Markdown again.

    ``removed`` names what was taken off: excess, characters, reasoning, special_tokens, chat, fence, blank_note,
    markup.
    """
    draft = _Draft(text=text[:MOST_CHARS], removed=("excess",) if len(text) > MOST_CHARS else ())
    for _ in range(MOST_ROUNDS):
        before = draft.text
        draft = _unwrapped(draft.cut("characters", clean_characters(draft.text)))
        draft = draft.cut("markup", clean_characters(clean_markup(draft.text)))
        if draft.text == before:
            break
    else:
        draft = draft.cut("markup", as_plain(draft.text))
    return PageAnswer(
        markdown=draft.text,
        text=clean_characters(plain_text(draft.text)),
        tables=tuple(_TABLE_LINE.findall(draft.text)),
        language=draft.facts.language,
        rotation_deg=draft.facts.rotation_deg,
        is_blank=not draft.text and ("blank_note" in draft.removed or draft.facts.is_blank is True),
        removed=draft.removed,
    )


def split_pages(text: str, page_count: int) -> tuple[str, ...] | None:
    """The parts of an answer to a prompt of several pages, in order; None where the lines ``<!-- page N -->`` are not
    there once each and in order, so that no page gets another one's text."""
    if page_count == 1:
        return (text,)
    marks = list(_PAGE_MARK.finditer(text))
    if [int(mark[1]) for mark in marks] != list(range(1, page_count + 1)):
        return None
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return tuple(text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True))


def clean_characters(text: str) -> str:
    """``text`` in NFC, without control, format and unassigned characters, lone surrogates and replacement characters;
    every kind of space a plain one, every line end a line feed."""
    if text.isascii() and (text.isprintable() or not re.search(r"[^\n\t -~]", text)):
        return text
    text = re.sub(r"\r\n?|[\u0085\u2028\u2029]", "\n", text)
    spaced = (" " if sign.isspace() and sign not in "\n\t" else sign for sign in text.replace("\ufffd", ""))
    kept = "".join(sign for sign in spaced if sign in _KEPT or unicodedata.category(sign) not in _DROPPED)
    return unicodedata.normalize("NFC", kept)


def _unwrapped(draft: _Draft) -> _Draft:
    draft = draft.cut("reasoning", without_reasoning(draft.text))
    draft = _without_facts(draft.cut("special_tokens", without_special_tokens(draft.text)))
    draft = draft.cut("chat", without_preface(draft.text))
    draft = _without_facts(draft.cut("fence", without_fence(draft.text)))
    greeted = draft.cut("chat", without_lead_in(draft.text))
    if greeted is not draft and greeted.text != draft.text and split_facts(greeted.text)[0] is None:
        draft = replace(greeted, text=without_first_rule(greeted.text))
    else:
        draft = greeted
    draft = draft.cut("chat", without_tail(draft.text, is_chat="chat" in draft.removed))
    return draft.cut("blank_note", "") if says_blank(draft.text) else draft


def _without_facts(draft: _Draft) -> _Draft:
    facts, rest = split_facts(draft.text)
    return draft if facts is None else replace(draft, text=rest.strip(), facts=draft.facts.or_else(facts))
