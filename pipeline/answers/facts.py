"""The few lines of page facts that open an answer: YAML front matter, read with patience."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import yaml

MOST_FACTS_CHARS: Final = 2_000
MOST_FACTS_LINES: Final = 30
"""Front matter is looked for no further than this; three lines are asked for."""

KEYS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("language", "lang", "primary_language", "page_language"), "language"),
    **dict.fromkeys(("rotation", "rotation_deg", "rotation_needed", "rotation_correction"), "rotation"),
    **dict.fromkeys(("blank", "is_blank", "page_is_blank"), "blank"),
    **dict.fromkeys(("is_rotation_valid", "is_table", "is_diagram", "page", "page_number", "title"), ""),
}
"""Ours, the names that models trained on other contracts use for them, and keys that are known and not needed."""

NAMED_LANGUAGES: Final[Mapping[str, str]] = {
    word: line.split()[0]
    for line in """\
ar ara arabic
bg bul bulgarian
cs ces cze czech
da dan danish
de deu ger german deutsch
el ell gre greek
en eng english
es spa spanish español
et est estonian
fa fas per persian farsi
fi fin finnish
fr fra fre french français
he heb hebrew
hi hin hindi
hr hrv croatian
hu hun hungarian
id ind indonesian
it ita italian italiano
ja jpn japanese
ko kor korean
la lat latin
lt lit lithuanian
lv lav latvian
nl nld dut dutch nederlands
no nor norwegian
pl pol polish
pt por portuguese português
ro ron rum romanian
ru rus russian
sk slk slo slovak
sl slv slovenian
sr srp serbian
sv swe swedish
th tha thai
tr tur turkish
uk ukr ukrainian
vi vie vietnamese
zh zho chi chinese""".splitlines()
    for word in line.split()[1:]
}

_RULE: Final = re.compile(r"-{3,}")
_END: Final = re.compile(r"-{3,}|\.{3}|`{3,}")
_YAML_FENCE: Final = re.compile(r"`{3,}ya?ml")
_FENCE_END: Final = re.compile(r"`{3,}")
_PAIR: Final = re.compile(r"[\s*`\"'{-]*([A-Za-z_]\w*(?: \w+)?)[*`\"']*\s*[:=][\s*`]*(.*)")
_FACT_LINE: Final = re.compile(_PAIR.pattern + r"|\s*(?:- |\{|\}|#)")
_COSTLY: Final = re.compile(r"[&*!<|>%@]|[\[{][^\]}]*[\[{]")
"""Anchors, aliases, tags, merges and nesting, with which a few lines of YAML grow without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """What an answer says of its page; None where it does not. ``rotation_deg`` is the clockwise turn that would make
    the image upright."""

    language: str | None = None
    rotation_deg: int | None = None
    is_blank: bool | None = None

    def or_else(self, other: PageFacts) -> PageFacts:
        """These, and the other's where there are none."""
        return PageFacts(
            language=self.language or other.language,
            rotation_deg=other.rotation_deg if self.rotation_deg is None else self.rotation_deg,
            is_blank=other.is_blank if self.is_blank is None else self.is_blank,
        )


def split_facts(text: str) -> tuple[PageFacts | None, str]:
    """The facts that ``text`` begins with, and what follows them; None, and all of the text, where it begins with
    something else.

    Rules may be missing, and a fence marked as YAML may stand around. A block that holds none of our keys is text of
    the page, and so is a lone ``Language: …`` without any rule.
    """
    lines = text[:MOST_FACTS_CHARS].splitlines(keepends=True)[:MOST_FACTS_LINES]
    has_fence = bool(lines) and _matches(_YAML_FENCE, lines[0])
    opening = 1 if has_fence else 0
    start = opening + 1 if opening < len(lines) and _matches(_RULE, lines[opening]) else opening
    end = next((n for n in range(start, len(lines)) if _matches(_END, lines[n])), None)
    could_be = _known_pair if start == opening else _FACT_LINE.match
    if end is None or not all(could_be(line) for line in lines[start:end] if line.strip()):
        end = next((n for n in range(start, len(lines)) if not _known_pair(lines[n])), len(lines))
    values = _values("".join(lines[start:end]))
    if len(values) < (1 if start else 2):
        return None, text
    return _facts(values), text[sum(map(len, lines[: _after(lines, end, has_fence=has_fence)])) :]


def _matches(pattern: re.Pattern[str], line: str) -> bool:
    return pattern.fullmatch(line.rstrip()) is not None


def _after(lines: Sequence[str], end: int, *, has_fence: bool) -> int:
    """Where the page begins when the last fact stands before ``end``."""
    if end < len(lines) and _matches(_END, lines[end]):
        end += 1
    if has_fence and end < len(lines) and _matches(_FENCE_END, lines[end]):
        end += 1
    return end


def _known_pair(line: str) -> tuple[str, str] | None:
    pair = _PAIR.match(line.strip())
    name = None if pair is None else KEYS.get(_key(pair[1]))
    return None if pair is None or name is None else (name, pair[2])


def _key(written: str) -> str:
    return written.strip().casefold().replace(" ", "_")


def _values(block: str) -> dict[str, str]:
    """By our names. What is no YAML, or YAML that could be costly, is read line by line."""
    loaded = None if _COSTLY.search(block) else _loaded(block)
    if isinstance(loaded, Mapping):
        found = {KEYS.get(_key(str(key)), ""): _first(value) for key, value in loaded.items()}
    else:
        found = dict(pair for line in block.splitlines() if (pair := _known_pair(line)))
    return {name: value.strip(" \t\"'`*,}°.").casefold() for name, value in found.items() if name}


def _loaded(block: str) -> object:
    """Scalars stay text: ``no`` is Norwegian, not false. None for what is no YAML."""
    try:
        return yaml.load(block, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError):
        return None


def _first(value: object) -> str:
    if isinstance(value, list):
        return str(value[0]) if value else ""
    return str(value)


def _facts(values: Mapping[str, str]) -> PageFacts:
    return PageFacts(
        language=_language(values.get("language", "")),
        rotation_deg=_rotation_deg(values.get("rotation", "")),
        is_blank=_boolean(values.get("blank", "")),
    )


def _language(value: str) -> str | None:
    word = re.split(r"[\s,;/()_-]+", value.strip())[0]
    if re.fullmatch(r"[a-z]{2}", word):
        return word
    return NAMED_LANGUAGES.get(word)


def _rotation_deg(value: str) -> int | None:
    if value in ("none", "null", "false", "upright"):
        return 0 if value in ("none", "upright") else None
    number = re.search(r"[-+−]?\d{1,3}", value)
    if number is None:
        return None
    degrees = int(number[0].replace("−", "-"))
    is_left = re.search(r"counter|anti|\bccw\b|\bleft\b", value) is not None
    turn = (-degrees if is_left else degrees) % 360
    return turn if turn in (0, 90, 180, 270) else None


def _boolean(value: str) -> bool | None:
    word = re.split(r"[\s,;(#]+", value)[0]
    return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(word)
