"""Lines joined to running text: words cut at the end of a line made whole where that is safe, Markdown
escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from models.text import Line

_CUT: Final = re.compile(r"(?P<head>[^\W\d_]{2,})[-‐\u00ad]$")
_HYPHEN_END: Final = re.compile(r"\w[-‐]$")
_FIRST_WORD: Final = re.compile(r"^(?P<tail>[^\W_]+)(?P<rest>\S*)")
_WORD: Final = re.compile(r"[^\W_]+(?:[-‐'’][^\W_]+)*")
_CONJUNCTIONS: Final = frozenset(
    {
        "und",
        "oder",
        "bzw",
        "sowie",
        "als",
        "bis",
        "and",
        "or",
        "to",
        "nor",
        "et",
        "ou",
        "y",
        "o",
        "u",
        "e",
        "i",
    }
    | {"en", "of", "och", "eller", "og", "ja", "tai", "a"}
)
"""After a hyphen that stands for a shared second part ("Vor- und Nachteile") a conjunction follows."""

LEAST_PART_LETTERS: Final = 4
"""Shorter parts of a compound are too often syllables ("for", "ing")."""

_ANYWHERE: Final = re.compile(r"([\\`*\[\]])")
_UNDERSCORE: Final = re.compile(r"(?<!\w)_|_(?!\w)")
_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
_ENTITY: Final = re.compile(r"&(?=#?\w+;)")
_STRIKE: Final = re.compile(r"~(?=~)")
_LINE_START: Final = re.compile(r"^(\s{0,3})([#>]|[-+](?=\s|$)|={2,}|-{2,}|~{3,})")
_NUMBERED_START: Final = re.compile(r"^(\s{0,3}\d{1,9})([.)])(?=\s|$)")


def words_in(lines: Iterable[Line]) -> frozenset[str]:
    """The page's words in lower case, hyphenated compounds whole: the evidence for how a cut word is
    spelled.

    The two parts of each cut word are no evidence.
    """
    words: set[str] = set()
    was_cut = False
    for line in lines:
        found = [word.lower() for word in _WORD.findall(line.text)]
        is_cut = ends_cut(line.text)
        words.update(found[was_cut : len(found) - is_cut])
        was_cut = is_cut
    return frozenset(words)


def ends_cut(text: str) -> bool:
    """Whether a line ends in a hyphen that may cut a word."""
    return _CUT.search(text.rstrip()) is not None


def whole_words(texts: Sequence[str], vocabulary: frozenset[str]) -> list[str]:
    """The lines of a paragraph with each word that a line end cuts moved up whole into the line it begins
    in.

    No line is lost, but one that held only the end of a word is dropped. Hyphens stay where the word is a
    compound, by the page's other words, and where a conjunction, a capital or a digit follows.
    """
    result = list(texts[:1])
    for text in texts[1:]:
        before = result[-1].rstrip()
        joined = _joined_word(before, text, vocabulary)
        if joined is None:
            result.append(text)
            continue
        result[-1], rest = joined
        if rest:
            result.append(rest)
    return result


def _joined_word(before: str, text: str, vocabulary: frozenset[str]) -> tuple[str, str] | None:
    """The line with its last word made whole, and what remains of the next; None where the hyphen stays."""
    cut, first = _CUT.search(before), _FIRST_WORD.match(text)
    if cut is None or first is None:
        return None
    head, tail = cut["head"], first["tail"]
    if tail.lower() in _CONJUNCTIONS or not (tail.islower() or (head.isupper() and tail.isupper())):
        return None
    middle = "-" if _is_compound(head.lower(), tail.lower(), vocabulary) else ""
    return before[:-1] + middle + tail + first["rest"], text[first.end() :].lstrip()


def _is_compound(head: str, tail: str, vocabulary: frozenset[str]) -> bool:
    """Whether the page spells the word with its hyphen elsewhere, or knows both parts but not the whole."""
    if head + tail in vocabulary:
        return False
    parts_known = min(len(head), len(tail)) >= LEAST_PART_LETTERS and {head, tail} <= vocabulary
    return parts_known or f"{head}-{tail}" in vocabulary


def paragraph_text(texts: Sequence[str], vocabulary: frozenset[str]) -> str:
    """One paragraph on one line; ideographs are joined without a space."""
    parts: list[str] = []
    for text in whole_words(texts, vocabulary):
        if parts and not _sticks(parts[-1], text):
            parts.append(" ")
        parts.append(text)
    return "".join(parts)


def _sticks(before: str, after: str) -> bool:
    if not before or not after:
        return False
    if _HYPHEN_END.search(before) and after[0].isalnum():
        first = _FIRST_WORD.match(after)
        return first is None or first["tail"].lower() not in _CONJUNCTIONS
    return before[-1] > "\u2e7f" and after[0] > "\u2e7f" and not _is_hangul(before[-1])


def _is_hangul(character: str) -> bool:
    return "\uac00" <= character <= "\ud7a3"


def escaped_markdown(text: str) -> str:
    """``text`` as Markdown that shows just these characters, as one line of a paragraph."""
    escaped = _ANYWHERE.sub(r"\\\1", text)
    for pattern in (_UNDERSCORE, _TAG, _ENTITY, _STRIKE):
        escaped = pattern.sub(lambda match: "\\" + match[0], escaped)
    escaped = _LINE_START.sub(r"\1\\\2", escaped)
    return _NUMBERED_START.sub(r"\1\\\2", escaped)
