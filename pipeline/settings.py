"""Settings: nested, frozen, built once at the edge. A stage gets its part; an unknown key fails at start."""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

import platformdirs
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    IPvAnyNetwork,
    SecretStr,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from pydantic_settings import SettingsError as UnreadableVariable

from models.choices import RoutePolicy, TriageProfile
from models.errors import SettingsError
from models.pool import DEFAULT_PRIORITY, HIGHEST_PRIORITY
from pipeline.chargeback.cost_centres import DEFAULT_COST_CENTRE, cost_centre_name
from pipeline.planning.model_profiles import DEFAULT_PROFILE

LanguageCode = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]+(/[A-Za-z0-9_]+)?$")]
"""A code of Tesseract's: ``eng``, ``chi_sim``, ``script/Latin``."""


THREE_LETTERS = (
    "Tesseract's codes have three letters, such as eng or deu; `tesseract --list-langs` lists them"
)


def is_two_letter_code(language: str) -> bool:
    """As the web has them, ``en``; neither Tesseract nor Debian has a language of such a name."""
    return len(language) == 2


Seconds = Annotated[float, Field(gt=0, le=7 * 86_400)]
"""At most a week: timers overflow somewhere above."""

DATABASE_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")

AUTO_LANGUAGE = "auto"
"""English first; what turns out to be in another language or script is read again as such."""


def is_loopback(host: str) -> bool:
    """Whether it is this machine, as an address or as ``localhost``."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class IntakeSettings(Section):
    max_bytes: int = Field(default=512 * 2**20, gt=0)
    max_pages: int = Field(default=5_000, gt=0)
    max_image_pixels: int = Field(default=250_000_000, gt=0)


class RasteriseSettings(Section):
    dpi: int = Field(default=200, ge=50, le=600)
    max_page_pixels: int = Field(default=25_000_000, ge=100_000)
    pages_per_call: int = Field(default=4, ge=1, le=64)
    timeout_s: Seconds = 60


class PaddleSettings(Section):
    """Names are PaddleOCR's own. Without a folder the weights that a wheel ships serve the default names; other
    names are then left to PaddleOCR, which downloads them."""

    detection_model_name: str = "PP-OCRv6_small_det"
    detection_model_dir: Path | None = None
    recognition_model_name: str = "PP-OCRv6_small_rec"
    recognition_model_dir: Path | None = None


class ReadSettings(Section):
    """``second_opinion``: PaddleOCR reads again what Tesseract was unsure of, for 2 to 5 s and 1 GB a process."""

    engine: Literal["tesseract", "paddleocr"] = "tesseract"
    languages: Annotated[tuple[LanguageCode, ...], NoDecode] = Field(default=(AUTO_LANGUAGE,), min_length=1)
    second_opinion: bool = True
    ocr_timeout_s: Seconds = 120
    paddle: PaddleSettings = PaddleSettings()

    @property
    def first_languages(self) -> tuple[str, ...]:
        """What a page is read with before anything is known of its language."""
        return ("eng",) if self.languages == (AUTO_LANGUAGE,) else self.languages

    @field_validator("languages")
    @classmethod
    def _auto_stands_alone(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if AUTO_LANGUAGE in value and len(value) > 1:
            raise ValueError("auto stands alone; leave it out, or name no other language")
        return value

    @field_validator("languages", mode="before")
    @classmethod
    def _split_languages(cls, value: object) -> object:
        """``eng+deu`` (Tesseract's own spelling) and ``eng,deu`` are two languages."""
        return tuple(value.replace(",", "+").split("+")) if isinstance(value, str) else value


class TriageSettings(Section):
    """``policy_file``: a policy of your own, None for the one that is shipped. ``audit_share`` of the pages that
    triage accepts is escalated all the same, to see what it misses."""

    profile: TriageProfile = TriageProfile.BALANCED
    policy_file: Path | None = None
    audit_share: float = Field(default=0.0, ge=0, le=1)


class VlmSettings(Section):
    """The service that pages are escalated to; without a ``url`` there is none, and they keep the CPU's text.

    ``url`` is the base of an OpenAI-compatible API, such as http://gpu:8000/v1. ``plan_file`` is what
    ``doctriage plan --out`` wrote and the server was launched from; without one the plan is that of ``profile``
    on one H100. ``model`` is the name the server knows the model by, where it is not the plan's. ``wait_s`` is how
    long a page waits for a service that does not answer, all its calls together.
    """

    url: str | None = Field(default=None, min_length=1)
    model: str | None = Field(default=None, min_length=1)
    profile: str = DEFAULT_PROFILE
    plan_file: Path | None = None
    api_key: SecretStr | None = None
    api_key_file: Path | None = None
    concurrency: int | None = Field(default=None, ge=1, le=4096)
    timeout_s: Seconds = 300
    wait_s: float = Field(default=120, ge=0, le=7 * 86_400)
    max_calls: int = Field(default=8, ge=1, le=100)
    max_answers: int = Field(default=3, ge=1, le=20)
    send_vllm_options: bool = True

    @property
    def is_configured(self) -> bool:
        return self.url is not None


class ChargebackSettings(Section):
    """``price_book_file``: a price book of your own, None for the one that is shipped. ``default_cost_centre`` pays
    where a run names none; None refuses such a run. With ``share_across_cost_centres`` pages that one cost centre has
    paid for are there for all of them."""

    price_book_file: Path | None = None
    default_cost_centre: str | None = DEFAULT_COST_CENTRE
    share_across_cost_centres: bool = False

    @field_validator("default_cost_centre")
    @classmethod
    def _is_a_cost_centre(cls, value: str | None) -> str | None:
        """Empty is none, as a variable cannot be None."""
        try:
            return cost_centre_name(value) if value else None
        except SettingsError as error:
            raise ValueError(str(error)) from error


class ExecutorSettings(Section):
    """``kind``: processes of this machine, or the pool of workers behind a broker. ``jobs``: worker processes, None
    for one a CPU. A worker that has read ``max_pages_per_worker``, or in the pool had so many turns, or keeps more than
    ``max_bytes_per_worker`` in memory after a batch, is replaced by a fresh one. It gets no more than
    ``memory_limit_bytes``: a page that swells costs itself, not the machine. Reading takes 1 to 1.5 GB, opening the
    largest image allowed 1.3 GB."""

    kind: Literal["local", "celery"] = "local"
    jobs: int | None = Field(default=None, ge=1)
    page_timeout_s: Seconds = 300
    max_pages_per_worker: int = Field(default=500, gt=0)
    max_bytes_per_worker: int = Field(default=4 * 2**30, gt=0)
    memory_limit_bytes: int = Field(default=6 * 2**30, ge=2**30, le=2**62)
    max_attempts: int = Field(default=2, ge=1)


class PoolSettings(Section):
    """The pool of workers. ``broker_url`` is Redis's (redis://…) or RabbitMQ's (amqp://…).

    ``visibility_timeout_s`` is how long Redis waits for a message to be acknowledged, None for what the longest task
    needs. A worker that says nothing for ``lease_s`` loses its pages to others; a page that was lost ``max_losses``
    times fails. ``max_waiting_pages`` and ``max_waiting_sources`` bound what the pool takes on, and three quarters of
    each what it takes on of one team. A process takes ``pages_per_claim`` pages at a time at most, where it reads them
    in a second. ``weights`` are the shares of cost centres (JSON), 1 where none is named. ``secret_key`` seals
    passwords on their way to the workers.
    """

    broker_url: SecretStr | None = None
    visibility_timeout_s: Seconds | None = None
    lease_s: float = Field(default=60, ge=5, le=86_400)
    max_losses: int = Field(default=5, ge=1, le=100)
    max_waiting_pages: int = Field(default=200_000, ge=1)
    max_waiting_sources: int = Field(default=20_000, ge=1)
    pages_per_claim: int = Field(default=8, ge=1, le=64)
    weights: dict[str, Annotated[float, Field(ge=0.001, le=1_000)]] = Field(default_factory=dict)
    secret_key: SecretStr | None = None
    reconcile_every_s: float = Field(default=10, ge=0.5, le=3_600)
    metrics_port: int | None = Field(default=None, ge=1, le=65_535)


class BlobSettings(Section):
    """Where documents' bytes and results are kept. ``url``: None for a folder in the state folder, file:///… for one
    that machines share, s3://bucket/prefix for an S3-compatible store at ``endpoint_url``. What is fetched from a
    store is kept in the state folder, up to ``cache_bytes``. Results are kept ``results_kept_s``, None for ever."""

    url: str | None = Field(default=None, min_length=1)
    endpoint_url: str | None = Field(default=None, min_length=1)
    key: str | None = Field(default=None, min_length=1)
    secret: SecretStr | None = None
    cache_bytes: int = Field(default=4 * 2**30, ge=2**20)
    results_kept_s: float | None = Field(default=None, gt=0)


class OidcSettings(Section):
    """Tokens that the API takes beside its own keys: those of ``issuer`` for ``audience``, signed with a key of the set
    at ``jwks_url`` or in ``jwks_file``. The claims named say for which cost centre, and how far; ``scope_prefix`` is
    what stands before read, submit and admin there. ``max_priority`` is the highest that whoever has a token, and is no
    admin, may name."""

    issuer: str | None = Field(default=None, min_length=1)
    audience: str | None = Field(default=None, min_length=1)
    jwks_url: str | None = Field(default=None, min_length=1)
    jwks_file: Path | None = None
    cost_centre_claim: str = Field(default="cost_centre", min_length=1)
    scope_claim: str = Field(default="scope", min_length=1)
    scope_prefix: str = ""
    max_priority: int = Field(default=DEFAULT_PRIORITY, ge=0, le=HIGHEST_PRIORITY)

    @property
    def is_configured(self) -> bool:
        return self.issuer is not None

    @field_validator("jwks_url")
    @classmethod
    def _keys_come_safely(cls, value: str | None) -> str | None:
        parts = urlsplit(value or "https://localhost")
        if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
            return value
        raise ValueError("keys that come over http can be anybody's; write https://…, or name a jwks_file")

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        parts = (self.issuer, self.audience, self.jwks_url or self.jwks_file)
        if any(parts) and not all(parts):
            raise ValueError(
                "issuer, audience, and jwks_url or jwks_file belong together; set all three, or none"
            )
        if self.jwks_url and self.jwks_file:
            raise ValueError("the keys come from jwks_url or from jwks_file; leave one out")
        return self


class ApiSettings(Section):
    """``doctriage serve``. An upload has no more than ``max_upload_bytes``, None for those that intake takes, and at
    most ``max_uploads_at_once`` arrive at a time; the next ones wait ``upload_wait_s`` for a place before they are sent
    away, and one that sends nothing for ``upload_idle_s`` is given up. At most
    ``max_event_streams`` follow documents at a time. ``drawing_processes`` draw pages that are looked at,
    ``export_processes`` make outputs that were not asked for with the document.

    ``requests_per_min`` and ``max_open_documents`` are the limits of a key that has none of its own,
    ``failed_logins_per_min`` that of an address.

    ``callback_secret`` is what the secrets of callbacks are derived from, one a cost centre; without it none are taken.
    For a while after it was changed, ``callback_secret_before`` signs beside it. Callbacks go to public addresses, and
    to those of ``callback_networks`` (``10.0.0.0/8,fd00::/8``); over http only if ``callback_http`` allows it."""

    host: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8321, ge=0, le=65_535)
    max_upload_bytes: int | None = Field(default=None, gt=0)
    max_uploads_at_once: int = Field(default=16, ge=1, le=1_000)
    upload_wait_s: float = Field(default=30, ge=0, le=600)
    upload_idle_s: Seconds = 60
    max_event_streams: int = Field(default=200, ge=1, le=10_000)
    drawing_processes: int = Field(default=1, ge=1, le=16)
    export_processes: int = Field(default=1, ge=1, le=16)
    requests_per_min: int = Field(default=600, ge=1, le=10_000)
    failed_logins_per_min: int = Field(default=20, ge=1, le=10_000)
    max_open_documents: int = Field(default=1_000, ge=1)
    oidc: OidcSettings = OidcSettings()
    callback_secret: SecretStr | None = Field(default=None, min_length=32)
    callback_secret_before: SecretStr | None = Field(default=None, min_length=32)
    callback_http: bool = False
    callback_networks: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = ()

    @field_validator("callback_networks", mode="before")
    @classmethod
    def _split_networks(cls, value: object) -> object:
        return tuple(filter(None, value.replace(" ", "").split(","))) if isinstance(value, str) else value


class ServerSettings(Section):
    """The server that documents are sent to, instead of reading them here. ``key`` is one of its API's, or all that is
    in ``key_file``."""

    url: str | None = Field(default=None, min_length=1)
    key: SecretStr | None = None
    key_file: Path | None = None


class Settings(BaseSettings):
    """Read from ``DOCTRIAGE_…`` variables (``DOCTRIAGE_READ__ENGINE=paddleocr``) and the command line."""

    model_config = SettingsConfigDict(
        env_prefix="DOCTRIAGE_", env_nested_delimiter="__", frozen=True, extra="forbid"
    )

    log_level: Literal["debug", "info", "warning", "error"] = "error"
    home: Path = Field(default_factory=lambda: Path(platformdirs.user_data_dir("doctriage")))
    database_url: SecretStr | None = None
    route: RoutePolicy = RoutePolicy.AUTO
    intake: IntakeSettings = IntakeSettings()
    rasterise: RasteriseSettings = RasteriseSettings()
    read: ReadSettings = ReadSettings()
    triage: TriageSettings = TriageSettings()
    vlm: VlmSettings = VlmSettings()
    chargeback: ChargebackSettings = ChargebackSettings()
    executor: ExecutorSettings = ExecutorSettings()
    pool: PoolSettings = PoolSettings()
    blobs: BlobSettings = BlobSettings()
    api: ApiSettings = ApiSettings()
    server: ServerSettings = ServerSettings()

    @field_validator("home", mode="before")
    @classmethod
    def _home_is_named(cls, value: object) -> object:
        """``Path`` would take an empty string for the current folder."""
        if value == "":
            raise ValueError("it is empty; name a folder, or leave DOCTRIAGE_HOME out")
        return value

    @field_validator("home")
    @classmethod
    def _home_of_a_user(cls, value: Path) -> Path:
        try:
            return value.expanduser()
        except RuntimeError as error:
            raise ValueError(f"{value}: that user has no home folder; write the path in full") from error

    @field_validator("database_url")
    @classmethod
    def _database_is_named(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _names_a_database(value.get_secret_value()):
            raise ValueError(
                "write it as postgresql://user:password@host:port/name, with @ : / ? # % in a password spelled "
                "%40 %3A %2F %3F %23 %25; or leave it out, and the database is a file in DOCTRIAGE_HOME"
            )
        return value


def _names_a_database(url: str) -> bool:
    """So strictly that no part of a password can be taken for a host, and be shown in a message."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    is_plain = (
        url.isprintable() and parts.netloc.count("@") <= 1 and "@" not in parts.path and not parts.fragment
    )
    return parts.scheme in DATABASE_SCHEMES and is_plain and len(parts.path) > 1


def load_settings(overrides: Mapping[str, object] | None = None) -> Settings:
    """The settings of this run: ``overrides`` (nested by section, from the command line), then environment.

    Raises SettingsError for a value out of range and for any ``DOCTRIAGE_…`` variable that is no setting,
    which pydantic-settings would pass over in silence.
    """
    _refuse_unknown_variables()
    try:
        return Settings(**(overrides or {}))  # type: ignore[arg-type]
    except ValidationError as error:
        faults = "; ".join(
            f"{_setting_name(fault['loc'])}: {fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors()
        )
        raise SettingsError(f"settings: {faults}") from error
    except UnreadableVariable as error:
        raise SettingsError(f"settings: {_unreadable_words(error)}") from error


def setting_variables() -> tuple[str, ...]:
    """Every variable that is read, one a setting, in the order of the sections."""
    return tuple(_variables(Settings))


def _variables(section: type[BaseModel], prefix: str = "DOCTRIAGE_") -> Iterator[str]:
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _variables(kind, f"{prefix}{name.upper()}__")
        elif isinstance(kind, type) and dataclasses.is_dataclass(kind):
            yield from (f"{prefix}{name}__{part.name}".upper() for part in dataclasses.fields(kind))
        else:
            yield f"{prefix}{name.upper()}"


def _refuse_unknown_variables() -> None:
    known = setting_variables()
    allowed = {*known, *(name.partition("__")[0] for name in known)}
    for name in sorted(os.environ):
        if name.upper().startswith("DOCTRIAGE_") and name.upper() not in allowed:
            raise SettingsError(
                f"{name} is no setting{_hint(name.upper(), known)}; known: {', '.join(known)}"
            )


def _hint(name: str, known: tuple[str, ...]) -> str:
    leaf = name.removeprefix("DOCTRIAGE_").rpartition("__")[2]
    close = [other for other in known if other.endswith(f"__{leaf}")]
    close = close or difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    return f" (did you mean {close[0]}?)" if close else ""


def _unreadable_words(error: UnreadableVariable) -> str:
    """Names the variable, which the library does not."""
    cause = error.__cause__
    if not isinstance(cause, json.JSONDecodeError):
        return str(error)
    names = [
        name
        for name, value in sorted(os.environ.items())
        if name.upper().startswith("DOCTRIAGE_") and value == cause.doc
    ]
    return f"{' or '.join(names)}: this is no JSON: {cause}"


def _setting_name(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "settings"
