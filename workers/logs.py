"""Structured logs, one JSON object a line on standard error, for those who ask for them."""

from __future__ import annotations

import dataclasses
import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import structlog
from pydantic import BaseModel, SecretStr

from workers.events import Event

if TYPE_CHECKING:
    from pipeline.settings import Settings

HIDDEN: Final = "***"
SHORTEST_SECRET: Final = 4
"""Shorter ones would be found in half of all words."""

IN_A_URL: Final = re.compile(r"(\w[\w+.-]*://)[^\s/@\"'?#]*:[^\s/@\"']*@")
"""Who may enter, as an address names them."""

A_KEY: Final = re.compile(r"(dt_[a-z0-9]{10}_)[A-Za-z0-9]{8,}")
"""A key of the API, cut short or not; its prefix may be said."""
A_TOKEN: Final = re.compile(r"eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?", re.ASCII)
"""A JSON Web Token."""

LOUD_LIBRARIES: Final = ("celery", "kombu.connection")
"""They say what the pool does. What others say below a warning may quote documents and requests."""

SILENT: Final = logging.NullHandler()
"""Where nothing else listens to a library, Python would print what it logs as an error: of a connection that Ctrl-C
breaks off, a whole traceback."""

log = structlog.get_logger()

Fields = MutableMapping[str, Any]


def set_up_logs(level: str, secrets: Iterable[str] = ()) -> None:
    """``secrets`` are hidden wherever they turn up, as are passwords in addresses, keys of the API and tokens."""
    logging.getLogger("sqlalchemy").addHandler(SILENT)
    structlog.configure(
        processors=[
            *_first_processors(),
            structlog.processors.format_exc_info,
            _Rendered(secrets),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_number(level)),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )


def set_up_service_logs(settings: Settings) -> None:
    """For processes that nobody watches: what Celery and other libraries log comes in the same lines, and no secret of
    the settings in any."""
    secrets = tuple(secrets_of(settings))
    set_up_logs(settings.log_level, secrets)
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_first_processors(), structlog.stdlib.add_logger_name],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _Rendered(secrets),
            ],
        )
    )
    level = _number(settings.log_level)
    root = logging.getLogger()
    root.handlers[:] = [lines]
    root.setLevel(max(level, logging.WARNING))
    for name in LOUD_LIBRARIES:
        logging.getLogger(name).setLevel(level)


def secrets_of(section: BaseModel) -> Iterator[str]:
    """Every secret that the settings hold."""
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from secrets_of(value)
        elif isinstance(value, SecretStr):
            yield from _parts(value.get_secret_value())


def log_event(event: Event) -> None:
    """What happens in a run, one line each, at the level ``info``."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(event).__name__.removesuffix("Event")).lower()
    fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    log.info(name, **{field: _plain(value) for field, value in fields.items()})


def _first_processors() -> tuple[structlog.typing.Processor, ...]:
    return (
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        _with_trace,
    )


def _with_trace(_: Any, __: str, fields: Fields) -> Fields:
    """Where a trace is on, the line can be found in it. Where OpenTelemetry was not imported, none is."""
    trace = sys.modules.get("opentelemetry.trace")
    context = None if trace is None else trace.get_current_span().get_span_context()
    if context is not None and context.is_valid:
        fields["trace_id"] = f"{context.trace_id:032x}"
        fields["span_id"] = f"{context.span_id:016x}"
    return fields


class _Rendered:
    """The line as JSON, with nothing in it that must not be seen."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._render = structlog.processors.JSONRenderer()
        spelled = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1])}
        long_enough = sorted((one for one in spelled if len(one) >= SHORTEST_SECRET), key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, long_enough))) if long_enough else None

    def __call__(self, logger: Any, name: str, fields: Fields) -> str:
        line = str(self._render(logger, name, fields))
        if self._secrets is not None:
            line = self._secrets.sub(HIDDEN, line)
        line = IN_A_URL.sub(rf"\1{HIDDEN}@", line)
        return A_TOKEN.sub(HIDDEN, A_KEY.sub(rf"\1{HIDDEN}", line))


def _parts(secret: str) -> Iterator[str]:
    """Of an address just the password: where it leads may be said."""
    try:
        password = urlsplit(secret).password if "://" in secret else secret
    except ValueError:
        password = secret
    if password is not None:
        yield password
        yield unquote(password)


def _number(level: str) -> int:
    return logging.getLevelNamesMapping()[level.upper()]


def _plain(value: object) -> object:
    return [str(path) for path in value] if isinstance(value, tuple) else value
