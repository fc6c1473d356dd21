"""What arguments must be like, whichever command takes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import typer

from pipeline.chargeback.echoes import echoed

MOST_DIGITS = 18
Word = TypeVar("Word", bound=StrEnum)


def named_path(text: str) -> Path:
    """An empty string is a variable of a script that was not set, and not the current folder."""
    if not text:
        raise typer.BadParameter("it is empty; name a file or a folder")
    return Path(text)


def password_text(text: str) -> str:
    """Bytes that are no UTF-8 arrive as surrogates, which no PDF library takes."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise typer.BadParameter(
            "not UTF-8 text; write it into a file saved as UTF-8 and give that with --password-file"
        ) from error
    return text


def day(text: str) -> date:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError as error:
        raise typer.BadParameter(f"{echoed(text)} is no day; write one like 2026-11-30") from error


def cost_centre(text: str) -> str:
    """A team, or a project of a team."""
    from models.errors import SettingsError
    from pipeline.chargeback.cost_centres import cost_centre_name

    try:
        return cost_centre_name(text)
    except SettingsError as error:
        raise typer.BadParameter(str(error)) from error


def one_of(words: type[Word]) -> Callable[[str], Word]:
    def parse(text: str) -> Word:
        try:
            return words(text)
        except ValueError as error:
            raise typer.BadParameter(f"{echoed(text)} is none of {', '.join(words)}") from error

    return parse


def alternatives(words: type[StrEnum]) -> str:
    """For the help."""
    return f"<{'|'.join(words)}>"


def whole_number(least: int, greatest: int | None = None) -> Callable[[str | int], int]:
    """Typer hands defaults over too, as they are."""
    limits = f"of {least:,} or more" if greatest is None else f"from {least:,} to {greatest:,}"

    def parse(given: str | int) -> int:
        text = str(given)
        is_number = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
        if not is_number or int(text) < least or (greatest is not None and int(text) > greatest):
            raise typer.BadParameter(f"{echoed(text)} is no whole number {limits}")
        return int(text)

    return parse
