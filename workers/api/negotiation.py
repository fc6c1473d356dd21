"""Which format a document is sent in: the one that is named, or what the header Accept wants most (RFC 9110)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.errors import FormatNotAcceptable
from pipeline.exports.formats import FORMATS, OutputFormat

ANYTHING = "*/*"


def chosen_format(own: Sequence[str], named: str | None, accept: str | None) -> OutputFormat:
    """``own`` are the names of those that were asked for with the document. Raises ``FormatNotAcceptable``."""
    if named is not None:
        if named not in FORMATS:
            raise FormatNotAcceptable(f"there is no format {named[:40]!r}; name one of {', '.join(FORMATS)}")
        return FORMATS[named]
    ranges = _ranges(accept or ANYTHING)
    ranked = [
        (_rank(wanted, one.name in own), one)
        for one in _own_first(own)
        if (wanted := _range_of(one.media_type, ranges)) is not None and wanted.weight > 0
    ]
    if not ranked:
        kinds = ", ".join(dict.fromkeys(one.media_type for one in FORMATS.values()))
        raise FormatNotAcceptable(f"no format has a kind that Accept has; accept one of {kinds}")
    return min(ranked, key=lambda one: one[0])[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range:
    """``place`` is where it stands in the header, ``stars`` how little it says."""

    kind: str
    weight: float
    place: int

    @property
    def stars(self) -> int:
        return self.kind.count("*")

    def matches(self, media_type: str) -> bool:
        wanted, _, part = self.kind.partition("/")
        kind, _, own_part = media_type.partition("/")
        return wanted in ("*", kind) and part in ("*", own_part)


def _rank(wanted: _Range, is_own: bool) -> tuple[float, int, bool, int]:
    """The greatest weight first, then what is named more closely, then the document's own, then as Accept stands."""
    return -wanted.weight, wanted.stars, not is_own, wanted.place


def _range_of(media_type: str, ranges: Sequence[_Range]) -> _Range | None:
    """The closest one that it is in, whose weight is its own."""
    return min(
        (one for one in ranges if one.matches(media_type)),
        key=lambda one: (one.stars, one.place),
        default=None,
    )


def _own_first(own: Sequence[str]) -> Sequence[OutputFormat]:
    known: Mapping[str, OutputFormat] = {name: FORMATS[name] for name in own if name in FORMATS}
    return tuple({**known, **FORMATS}.values())


def _ranges(accept: str) -> list[_Range]:
    """What is no weight is passed over with its range."""
    ranges = []
    for place, part in enumerate(accept.split(",")):
        kind, *parameters = (piece.strip() for piece in part.lower().split(";"))
        weight = next((piece[2:] for piece in parameters if piece.startswith("q=")), "1")
        try:
            ranges.append(_Range(kind=kind, weight=float(weight), place=place))
        except ValueError:
            continue
    return ranges
