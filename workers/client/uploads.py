"""What is sent with a document, and the document itself as it is opened to be sent."""

from __future__ import annotations

import io
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypedDict, cast

from models.choices import RoutePolicy, TriageProfile
from models.document_name import last_part
from models.errors import SourceUnreadable
from workers.client.connection import Form

UNNAMED: Final = "document"


class SubmitOptions(TypedDict, total=False):
    """What is not given, or None, is the server's choice. ``name`` may have folders, ``a/scan.pdf``; the file's own is
    taken without it. ``outputs`` are the formats to make. ``callback_url`` is told
    when the document is over."""

    name: str | None
    route: RoutePolicy | str | None
    profile: TriageProfile | str | None
    languages: str | None
    cost_centre: str | None
    priority: int | None
    outputs: Sequence[str] | None
    password: str | None
    metadata: Mapping[str, Any] | None
    callback_url: str | None


def new_key() -> str:
    """For the header Idempotency-Key."""
    return secrets.token_hex(16)


def form_of(file: Path | str | BinaryIO, options: SubmitOptions, **more: str | None) -> Form:
    """A stream that cannot be wound back is sent once, from where it is; any other from its beginning."""
    fields = {**fields_of(options), **{name: text for name, text in more.items() if text is not None}}
    if isinstance(file, str | Path):
        path = Path(file)
        return Form(
            fields=fields, name=last_part(options.get("name") or path.name), opened=lambda: opened_file(path)
        )
    name = options.get("name") or Path(str(getattr(file, "name", UNNAMED))).name
    is_seekable = file.seekable()
    return Form(
        fields=fields,
        name=last_part(name),
        opened=_lent(file if is_seekable else cast(BinaryIO, ReadOnce(file.read))),
        is_repeatable=is_seekable,
    )


def fields_of(options: SubmitOptions) -> dict[str, str]:
    """As the API's form has them."""
    given = {name: value for name, value in options.items() if value is not None}
    return {name: _text(value) for name, value in given.items()}


@contextmanager
def opened_file(path: Path) -> Iterator[BinaryIO]:
    """Raises ``SourceUnreadable``."""
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise SourceUnreadable(
            f"{path}: cannot be read ({error.strerror}); check that it is there and that you may read it"
        ) from error


@dataclass(frozen=True, slots=True)
class ReadOnce:
    """A stream of which nothing is known but what it reads: its length is not asked."""

    read: Callable[[int], bytes]


def _lent(file: BinaryIO) -> Callable[[], Any]:
    """It stays open: it is the caller's."""

    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        if isinstance(file, io.IOBase) or hasattr(file, "seek"):
            file.seek(0)
        yield file

    return opened


def _text(value: object) -> str:
    match value:
        case str():
            return str(value)
        case Mapping():
            return json.dumps(value, ensure_ascii=False)
        case Sequence():
            return ",".join(map(str, value))
        case _:
            return str(value)
