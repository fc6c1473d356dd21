"""What arguments must be like, whichever command takes them."""

from __future__ import annotations

from pathlib import Path

import typer


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
