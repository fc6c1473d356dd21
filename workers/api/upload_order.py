"""What was sent with a document, checked field by field."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, WithJsonSchema, field_validator
from pydantic_core import PydanticCustomError

from models.choices import RoutePolicy, TriageProfile
from models.document_name import MOST_PART_BYTES, fault_of_name
from models.errors import RequestInvalid, SettingsError
from models.pool import DEFAULT_PRIORITY, HIGHEST_PRIORITY
from pipeline.chargeback.cost_centres import MOST_CHARACTERS, cost_centre_name
from pipeline.exports.formats import DEFAULT_FORMATS, FORMATS
from pipeline.settings import Settings
from pipeline.store.json_text import json_text
from workers.api.access import Caller
from workers.api.spelt import AS_DIGITS
from workers.cluster.wishes import Wishes

MOST_METADATA_BYTES: Final = 16 * 1024
MOST_METADATA_LEVELS: Final = 64
"""Of objects and arrays in one another: whoever reads or writes JSON goes as deep as it is."""
MOST_PASSWORD_CHARACTERS: Final = 1_000
UNNAMED: Final = "document"
KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


NAMES: Final = "|".join(FORMATS)
OUTPUTS: Final = {
    "type": "string",
    "pattern": rf"^({NAMES})(,({NAMES}))*$",
    "description": "Forms of the result, with commas.",
}
LANGUAGE: Final = "[A-Za-z0-9_]+(/[A-Za-z0-9_]+)?"
LANGUAGES: Final = {
    "type": "string",
    "pattern": rf"^{LANGUAGE}([+,]{LANGUAGE})*$",
    "description": "Tesseract's codes, `eng+deu`, or `auto`.",
}
COST_CENTRE: Final = {
    "type": "string",
    "maxLength": MOST_CHARACTERS,
    "pattern": r"^[^/\s]([^/\s]| [^/\s])*(/[^/\s]([^/\s]| [^/\s])*)?$",
    "description": "Who pays: TEAM or TEAM/PROJECT, the key's own or a project of it.",
}
PRIORITY: Final = (
    f"0 is last, 9 first; {DEFAULT_PRIORITY} by default, or the key's ceiling where that is lower."
)
METADATA: Final = {
    "type": "object",
    "description": "A JSON object of the sender's own.",
}
CALLBACK_URL: Final = {
    "type": "string",
    "format": "uri",
    "pattern": "^https?://",
    "description": "Who is told when it is over.",
}
"""All fields are sent as text, ``metadata`` as JSON."""


class UploadFields(BaseModel):
    """The form's fields beside the file; all are text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str | None = None
    route: RoutePolicy | None = None
    profile: TriageProfile | None = None
    languages: Annotated[str, WithJsonSchema(LANGUAGES)] | None = None
    cost_centre: Annotated[str, WithJsonSchema(COST_CENTRE)] | None = None
    priority: Annotated[int, Field(ge=0, le=HIGHEST_PRIORITY, description=PRIORITY), AS_DIGITS] | None = None
    outputs: Annotated[tuple[str, ...], WithJsonSchema(OUTPUTS)] = DEFAULT_FORMATS
    password: Annotated[SecretStr, Field(max_length=MOST_PASSWORD_CHARACTERS)] | None = None
    metadata: Annotated[dict[str, Any], WithJsonSchema(METADATA)] | None = None
    callback_url: Annotated[str, WithJsonSchema(CALLBACK_URL)] | None = None

    @field_validator("outputs", mode="before")
    @classmethod
    def _names_of_outputs(cls, value: object) -> object:
        names = [name.strip() for name in str(value).split(",") if name.strip()]
        unknown = [name for name in names if name not in FORMATS]
        if unknown or not names:
            raise _fault(f"name some of {', '.join(FORMATS)}, with commas in between")
        return tuple(dict.fromkeys(names))

    @field_validator("metadata", mode="before")
    @classmethod
    def _json_object(cls, value: object) -> object:
        text = str(value)
        if len(text.encode()) > MOST_METADATA_BYTES:
            raise _fault(f"send at most {MOST_METADATA_BYTES:,} bytes")
        try:
            parsed = json.loads(text, parse_constant=_no_number)
            json_text(parsed)
        except (ValueError, RecursionError) as error:
            raise _fault("send a JSON object") from error
        if not isinstance(parsed, dict):
            raise _fault("send a JSON object")
        if _is_deeper(parsed, MOST_METADATA_LEVELS):
            raise _fault(f"nest objects and arrays at most {MOST_METADATA_LEVELS} deep")
        return parsed

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, value: str | None) -> str | None:
        fault = None if value is None else fault_of_name(value)
        if fault is not None:
            raise _fault(fault)
        return value

    @field_validator("cost_centre")
    @classmethod
    def _is_a_cost_centre(cls, value: str | None) -> str | None:
        try:
            return None if value is None else cost_centre_name(value)
        except SettingsError as error:
            raise _fault(str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadOrder:
    """``request_sha256`` is that of all that was sent, the document's bytes among it."""

    name: str
    cost_centre: str
    wishes: Wishes
    priority: int
    password: str | None = field(repr=False)
    metadata: Mapping[str, Any] | None
    callback_url: str | None
    request_sha256: str


def upload_order(
    fields: Mapping[str, str], *, file_name: str, document_id: str, asking: Caller, settings: Settings
) -> UploadOrder:
    """Raises RequestInvalid, which names the fields, ``CostCentreRefused``, ``PriorityRefused`` and
    ``CallbackUrlRefused``."""
    given = _checked({name: text for name, text in fields.items() if text != ""})
    cost_centre = given.cost_centre or asking.cost_centre
    asking.require_cost_centre(cost_centre)
    wishes = Wishes(
        route=given.route, profile=given.profile, languages=given.languages, formats=given.outputs
    )
    _require_possible(wishes, settings)
    if given.callback_url is not None:
        _require_callback(given.callback_url, settings)
    if given.password is not None and settings.pool.secret_key is None:
        raise RequestInvalid(
            "this server takes no passwords; set DOCTRIAGE_POOL__SECRET_KEY there, or send the document without one",
            faults=(("password", "is not taken here"),),
        )
    name = given.name or document_name(file_name)
    return UploadOrder(
        name=name,
        cost_centre=cost_centre,
        wishes=wishes,
        priority=asking.priority(given.priority),
        password=None if given.password is None else given.password.get_secret_value(),
        metadata=given.metadata,
        callback_url=given.callback_url,
        request_sha256=_request_sha256(fields, name, document_id, settings.pool.secret_key),
    )


def idempotency_key(text: str | None) -> str | None:
    """Raises RequestInvalid for a key that is none."""
    if text is not None and not KEY.fullmatch(text):
        raise RequestInvalid(
            "Idempotency-Key is 1 to 255 visible ASCII characters; send such a one",
            faults=(("Idempotency-Key", "is no key"),),
        )
    return text


def document_name(file_name: str) -> str:
    """The last part of what the sender calls the file, as far as it can be shown."""
    last = file_name.replace("\\", "/").rpartition("/")[2]
    shown = "".join(character for character in last if character.isprintable()).strip()
    fitted = shown.encode("utf-8", "replace")[:MOST_PART_BYTES].decode("utf-8", "ignore").strip()
    return fitted if fitted.strip(".") else UNNAMED


def _checked(fields: Mapping[str, str]) -> UploadFields:
    try:
        return UploadFields.model_validate(fields)
    except ValidationError as error:
        faults = tuple((".".join(map(str, one["loc"])), str(one["msg"])) for one in error.errors())
        names = ", ".join(dict.fromkeys(field for field, _ in faults))
        raise RequestInvalid(f"the form is not valid ({names}); correct it", faults=faults) from error


def _require_possible(wishes: Wishes, settings: Settings) -> None:
    try:
        wishes.settings(settings)
    except ValueError as error:
        raise RequestInvalid(
            "the languages are none; name Tesseract's codes, such as eng+deu, or auto",
            faults=(("languages", "no such languages"),),
        ) from error


def _require_callback(url: str, settings: Settings) -> None:
    from workers.callbacks.targets import callback_target

    if settings.api.callback_secret is None:
        raise RequestInvalid(
            "this server sends no callbacks; set DOCTRIAGE_API__CALLBACK_SECRET there, or leave the field out",
            faults=(("callback_url", "is not taken here"),),
        )
    callback_target(url, settings.api)


def _request_sha256(fields: Mapping[str, str], name: str, document_id: str, key: SecretStr | None) -> str:
    """A password is in it as nobody can guess it back who has not the key that seals passwords."""
    secret = b"" if key is None else key.get_secret_value().encode()
    known = {
        field: hmac.digest(secret, text.encode(), "sha256").hex() if field == "password" else text
        for field, text in fields.items()
    }
    sent = {"fields": known, "name": name, "document_id": document_id}
    return hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest()


def _fault(message: str) -> PydanticCustomError:
    return PydanticCustomError("value", "{message}", {"message": message})


def _is_deeper(parsed: object, levels: int) -> bool:
    level = [parsed]
    for _ in range(levels):
        level = [
            part
            for one in level
            if isinstance(one, dict | list)
            for part in (one.values() if isinstance(one, dict) else one)
        ]
    return any(isinstance(one, dict | list) for one in level)


def _no_number(text: str) -> float:
    raise ValueError(text)
