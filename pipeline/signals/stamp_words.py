"""Rubber stamps without a ring or a frame, known by what they say: "RECEIVED" over a date, "PAID" beside one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from rapidfuzz import fuzz, process

from models.geometry import Box
from models.text import Line, Word

STAMP_WORDS: Final = frozenset(
    [
        "ACCEPTED",
        "APPROVED",
        "CANCELED",
        "CANCELLED",
        "CERTIFIED",
        "CHECKED",
        "COMPLETED",
        "COPY",
        "ENTERED",
        "FAXED",
        "FILED",
        "INSPECTED",
        "MAILED",
        "PAID",
        "POSTED",
        "PROCESSED",
        "RECD",
        "RECEIVED",
        "RECORDED",
        "REJECTED",
        "RELEASED",
        "SCANNED",
        "SENT",
        "VERIFIED",
        "VOID",
        "BEZAHLT",
        "EINGANG",
        "EINGEGANGEN",
        "ENTWERTET",
        "ERHALTEN",
        "ERLEDIGT",
        "GEBUCHT",
        "GEPRUEFT",
        "GEPRÜFT",
        "ACQUITTÉ",
        "ANNULÉ",
        "APPROUVÉ",
        "ARRIVÉ",
        "COPIE",
        "PAYE",
        "PAYÉ",
        "RECU",
        "REÇU",
        "VALIDÉ",
        "ANULADO",
        "APROBADO",
        "COPIA",
        "PAGADO",
        "RECIBIDO",
        "ANNULLATO",
        "APPROVATO",
        "PAGATO",
        "RICEVUTO",
        "BETAALD",
        "ONTVANGEN",
    ]
)
MOST_WORDS: Final = 3
"""Stamps say little on a line; a sentence about something received is no stamp."""

LEAST_LONG_WORD: Final = 7
LEAST_LIKENESS: Final = 85.0
"""One wrong letter of eight, in percent."""

NEAR_HEIGHTS: Final = 2.0
MONTH: Final = (
    "(?:JAN|FEB|F[ÉE]V|MAR|M[ÄA]R|APR|AVR|MAY|MAI|JUN|JUIN|JUL|JUIL|AUG|AO[ÛU]|SEP|OCT|OKT|NOV|DEC|DEZ|D[ÉE]C)"
    r"[A-Z]*\.?"
)
DATE: Final = re.compile(
    rf"\b\d{{1,2}}\.?[\s/-]*{MONTH}|\b{MONTH}[\s,./-]*\d{{1,2}}\b|\b\d{{1,4}}[./-]\d{{1,2}}[./-]\d{{1,4}}\b"
)


def count_stamp_words(lines: Iterable[Line]) -> int:
    """Lines that say a stamp's word in capitals and nothing else, over, under or beside a date."""
    read = tuple(lines)
    words = [word for line in read for word in line.words]
    return sum(_has_date_near(line.box, words) for line in read if _says_stamp_word(line))


def _says_stamp_word(line: Line) -> bool:
    words = [re.sub(r"[^\w]", "", word.text) for word in line.words]
    words = [word for word in words if any(map(str.isalpha, word))]
    return 0 < len(words) <= MOST_WORDS and all(map(_is_stamp_word, words))


def _is_stamp_word(word: str) -> bool:
    """Long words may have a letter wrong: ink of stamps is uneven."""
    if word in STAMP_WORDS:
        return True
    if len(word) < LEAST_LONG_WORD or not word.isupper():
        return False
    return process.extractOne(word, STAMP_WORDS, scorer=fuzz.ratio, score_cutoff=LEAST_LIKENESS) is not None


def _has_date_near(box: Box, words: Iterable[Word]) -> bool:
    near = sorted((word for word in words if _stand_near(box, word.box)), key=lambda word: word.box.left)
    by_row: dict[bool, list[str]] = {False: [], True: []}
    for word in near:
        by_row[word.box.top > box.bottom].append(word.text.upper())
    return any(DATE.search(" ".join(texts)) for texts in by_row.values())


def _stand_near(one: Box, other: Box) -> bool:
    reach = NEAR_HEIGHTS * one.height
    across = max(one.left, other.left) - min(one.right, other.right)
    down = max(one.top, other.top) - min(one.bottom, other.bottom)
    return (across <= 0 and down <= reach) or (down <= 0 and across <= reach)
