"""How many pages a sample has: a number of them, or a share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from pipeline.chargeback.echoes import echoed

CONFIDENCE_PERCENT: Final = 95
"""Of the interval that a sample gives."""

_SHARE: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%")
_NUMBER: Final = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSize:
    """Just one of the two: ``pages``, at least 1, or a ``share`` above 0 and up to 1."""

    pages: int | None = None
    share: Fraction | None = None

    def of(self, page_count: int) -> int:
        """At least one page, at most all of them; a share is rounded up."""
        wanted = self.pages
        if wanted is None:
            assert self.share is not None
            wanted = -(-page_count * self.share.numerator // self.share.denominator)
        return min(wanted, page_count)


def sample_size(text: str) -> SampleSize:
    """From text such as ``200`` or ``10%``. Raises ValueError for anything else."""
    if _NUMBER.fullmatch(text) and int(text) > 0:
        return SampleSize(pages=int(text))
    share = _SHARE.fullmatch(text)
    if share is not None and 0 < Fraction(share[1]) <= 100:
        return SampleSize(share=Fraction(share[1]) / 100)
    raise ValueError(
        f"{echoed(text)} is no sample; write a number of pages, such as 200, or a share, such as 10%"
    )
