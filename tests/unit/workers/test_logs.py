"""What a run logs for those who ask for it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
import structlog

from models.page import Route
from pipeline.settings import Settings, load_settings
from workers.api_keys import new_key
from workers.events import DocumentFinished, DocumentRejectedEvent, PageFinished
from workers.logs import log_event, secrets_of, set_up_logs, set_up_service_logs

EVENTS = (
    PageFinished(source="a.pdf", page_number=2, route=Route.OCR, elapsed_s=1.5, from_earlier_run=False),
    DocumentRejectedEvent(source="b.pdf", code="empty_file", message="b.pdf: empty"),
    DocumentFinished(
        source="a.pdf", document_id="ab", page_count=2, failed_pages=0, outputs=(Path("out/a.pdf.md"),)
    ),
)


SECRETS = {
    "DOCTRIAGE_POOL__BROKER_URL": "amqp://rabbit:broker-word@broker:5672//",
    "DOCTRIAGE_DATABASE_URL": "postgresql://harbour:data%40base-word@db/doctriage",
    "DOCTRIAGE_VLM__API_KEY": 'api-"quoted"-key',
    "DOCTRIAGE_POOL__SECRET_KEY": "sealing-key",
    "DOCTRIAGE_BLOBS__SECRET": "bucket-secret",
}


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("celery", "kombu.connection"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    structlog.contextvars.clear_contextvars()
    structlog.reset_defaults()


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    return load_settings({"log_level": "debug"})


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def logged(level: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    set_up_logs(level)
    for event in EVENTS:
        log_event(event)
    return lines_of(capsys)


def test_info_has_a_line_for_every_event(capsys: pytest.CaptureFixture[str]) -> None:
    page, rejected, document = logged("info", capsys)
    assert page.items() >= {"event": "page_finished", "source": "a.pdf", "page_number": 2}.items()
    assert (page["route"], page["elapsed_s"], page["level"]) == ("ocr", 1.5, "info")
    assert (rejected["event"], rejected["code"]) == ("document_rejected", "empty_file")
    assert (document["event"], document["outputs"]) == ("document_finished", ["out/a.pdf.md"])


def test_by_default_nothing_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    assert logged("error", capsys) == []


def test_a_library_that_logs_an_error_prints_nothing() -> None:
    program = (
        "import logging; from workers.logs import set_up_logs; set_up_logs('error'); "
        "logging.getLogger('sqlalchemy.pool.impl.QueuePool').error('Exception during reset or similar')"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (said.stdout, said.stderr) == ("", "")


def test_what_is_bound_for_a_piece_of_work_is_in_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs("info")
    with structlog.contextvars.bound_contextvars(queue="ocr", reading_id=7):
        structlog.get_logger().info("page_read")
    structlog.get_logger().info("idle")
    inside, outside = lines_of(capsys)
    assert (inside["queue"], inside["reading_id"]) == ("ocr", 7)
    assert "queue" not in outside


def test_what_celery_logs_comes_in_the_same_lines(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_service_logs(settings)
    with structlog.contextvars.bound_contextvars(queue="ocr"):
        logging.getLogger("celery.worker.strategy").info("Task %s received", "doctriage.ocr")
    logging.getLogger("celery.pool").error("broken", exc_info=OSError("no route"))
    received, broken = lines_of(capsys)
    assert (received["event"], received["level"]) == ("Task doctriage.ocr received", "info")
    assert (received["logger"], received["queue"]) == ("celery.worker.strategy", "ocr")
    assert received["timestamp"]
    assert broken["level"] == "error"
    assert "OSError: no route" in broken["exception"]


def test_setting_up_twice_logs_once(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    set_up_service_logs(settings)
    set_up_service_logs(settings)
    logging.getLogger("celery").warning("once")
    assert len(lines_of(capsys)) == 1


def test_other_libraries_say_nothing_below_a_warning(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """They would quote documents: their statements and requests hold the text of pages."""
    set_up_service_logs(settings)
    for name in ("openai._base_client", "httpx2", "sqlalchemy.engine", "PIL.PngImagePlugin"):
        logging.getLogger(name).info("the text of a page")
    logging.getLogger("openai._base_client").warning("slow")
    assert [line["event"] for line in lines_of(capsys)] == ["slow"]


def test_the_level_is_that_of_the_settings(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    set_up_service_logs(settings.model_copy(update={"log_level": "error"}))
    logging.getLogger("celery").warning("not now")
    logging.getLogger("openai").warning("not now")
    structlog.get_logger().warning("not_now")
    assert lines_of(capsys) == []


def test_every_secret_of_the_settings_is_known(settings: Settings) -> None:
    known = set(secrets_of(settings))
    assert known >= {"broker-word", "data@base-word", 'api-"quoted"-key', "sealing-key", "bucket-secret"}


def test_no_secret_is_in_a_line(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    set_up_service_logs(settings)
    log = structlog.get_logger()
    words = [*SECRETS.values(), *secrets_of(settings)]
    for word in words:
        log.warning("told", field=word, nested={"list": [word]})
        log.warning(f"in the event {word}")
        logging.getLogger("celery.worker").error("Cannot connect to %s", word)
        log.error("failed", exc_info=ValueError(word))
        logging.getLogger("celery.worker").error("failed", exc_info=ValueError(word))
    written = capsys.readouterr().err
    lines = [json.loads(line) for line in written.splitlines()]
    assert len(lines) == 5 * len(words)
    for secret in secrets_of(settings):
        assert not [line for line in lines if secret in json.dumps(line, ensure_ascii=False)]
        assert secret not in written
    assert "@broker:5672" in written


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("redis://:word@host:6379/0", "redis://***@host:6379/0"),
        ("postgresql+psycopg://me:word@host/name", "postgresql+psycopg://***@host/name"),
        ("http://host:8000/v1", "http://host:8000/v1"),
        ("see https://host/a:b@c", "see https://host/a:b@c"),
    ],
)
def test_a_password_in_any_address_is_hidden(
    address: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_logs("info")
    structlog.get_logger().info("told", address=address)
    [line] = lines_of(capsys)
    assert line["address"] == shown


def test_no_key_and_no_token_is_in_a_line_wherever_they_turn_up(
    settings: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up_service_logs(settings)
    monkeypatch.setattr(logging.getLogger("uvicorn.access"), "propagate", True)  # as before uvicorn is set up
    key, cut_short = new_key(), new_key()
    token = jwt.encode({"sub": "ada"}, "s" * 64, algorithm="HS256")
    shown = (key.text, cut_short.text[:-20], token)
    log = structlog.get_logger()
    for word in shown:
        log.warning("told", headers={"authorization": f"Bearer {word}"}, path=f"/v1/documents?key={word}&x=1")
        log.warning(word)
        logging.getLogger("uvicorn.access").warning("GET /v1/documents?key=%s", word)
        logging.getLogger("uvicorn.error").error("failed", exc_info=ValueError(f"Bearer:\n{word}\n"))
    written = capsys.readouterr().err
    assert len([json.loads(line) for line in written.splitlines()]) == 12
    assert f"dt_{key.prefix}_***" in written
    for secret in (key.secret, cut_short.secret[:-20], token.split(".")[1], token.split(".")[2]):
        assert secret not in written
