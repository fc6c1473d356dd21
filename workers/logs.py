"""Structured logs, one JSON object a line on standard error, for those who ask for them."""

from __future__ import annotations

import dataclasses
import logging
import re
import sys

import structlog

from workers.events import Event

log = structlog.get_logger()


def set_up_logs(level: str) -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )


def log_event(event: Event) -> None:
    """What happens in a run, one line each, at the level ``info``."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(event).__name__.removesuffix("Event")).lower()
    fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    log.info(name, **{field: _plain(value) for field, value in fields.items()})


def _plain(value: object) -> object:
    return [str(path) for path in value] if isinstance(value, tuple) else value
