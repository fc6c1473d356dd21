"""Scripts that Tesseract can read, the languages written in each, and how much of a text is in one."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from models.text import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """``name`` is Tesseract's. ``languages`` are codes of trained data, the one that tells the script best first.
    ``letters`` are the first words of its letters' Unicode names, ``own_letters`` those that tell it from scripts with
    which it shares the others."""

    name: str
    languages: tuple[str, ...]
    letters: frozenset[str]
    own_letters: frozenset[str] = frozenset()


def _script(name: str, languages: str, *, letters: str = "", own: str = "", models: str = "") -> Script:
    """``models`` are the script models that hold all its languages, ``name`` unless given."""
    script_models = [code for model in (models or name).split() for code in (model, f"script/{model}")]
    return Script(
        name=name,
        languages=(*languages.split(), *script_models),
        letters=frozenset(f"{letters or name.upper()} {own}".split()),
        own_letters=frozenset(own.split()),
    )


SCRIPTS: Final = (
    _script("Arabic", "ara fas urd pus snd uig"),
    _script("Armenian", "hye"),
    _script("Bengali", "ben asm"),
    _script("Cyrillic", "rus ukr bul srp bel mkd kaz kir tgk mon"),
    _script("Devanagari", "hin mar nep san"),
    _script("Ethiopic", "amh tir"),
    _script("Georgian", "kat"),
    _script("Greek", "ell grc"),
    _script("Gujarati", "guj"),
    _script("Gurmukhi", "pan"),
    _script("Han", "chi_sim", letters="CJK", models="HanS"),
    _script("Han", "chi_tra", letters="CJK", models="HanT"),
    _script("Hebrew", "heb yid"),
    _script("Japanese", "jpn", letters="CJK", own="HIRAGANA KATAKANA KATAKANA-HIRAGANA"),
    _script("Kannada", "kan"),
    _script("Khmer", "khm"),
    _script("Korean", "kor", letters="CJK", own="HANGUL", models="Hangul"),
    _script("Lao", "lao"),
    _script("Malayalam", "mal"),
    _script("Myanmar", "mya"),
    _script("Oriya", "ori"),
    _script("Sinhala", "sin"),
    _script("Tamil", "tam"),
    _script("Telugu", "tel"),
    _script("Thai", "tha"),
    _script("Tibetan", "bod dzo"),
)
"""All but Latin, which a page is read in first. Simplified and traditional Chinese are told like two scripts: neither
model reads the other, and Japanese lies between them."""


def installed_scripts(installed_languages: Collection[str]) -> tuple[Script, ...]:
    """The scripts that can be read, each with its installed languages."""
    able = (
        replace(script, languages=tuple(code for code in script.languages if code in installed_languages))
        for script in SCRIPTS
    )
    return tuple(script for script in able if script.languages)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptShare:
    """How much of a reading is in one script: the share of its letters among all characters, and the confidence of
    the words that hold them, by letter; both 0 to 1."""

    letters: float
    confidence: float


def script_share(lines: Iterable[Line], script: Script) -> ScriptShare:
    return _share(lines, script.letters)


def own_share(lines: Iterable[Line], script: Script) -> ScriptShare:
    """The same for the letters that no other script has."""
    return _share(lines, script.own_letters)


def _share(lines: Iterable[Line], alphabets: frozenset[str]) -> ScriptShare:
    characters, letters, confidence = 0, 0, 0.0
    for word in (word for line in lines for word in line.words):
        in_script = sum(_alphabet(character) in alphabets for character in word.text)
        characters += len(word.text)
        letters += in_script
        confidence += in_script * (word.confidence or 0.0)
    if not letters:
        return ScriptShare(letters=0.0, confidence=0.0)
    return ScriptShare(letters=letters / characters, confidence=confidence / letters)


def _alphabet(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]
