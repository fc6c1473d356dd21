"""The schema that is published: what the routes declare, and the parts that several of them name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastapi import FastAPI
from pydantic import TypeAdapter

from pipeline.exports.formats import FORMATS
from pipeline.outputs import output_schema
from workers.api import schema
from workers.api.document_json import STATES
from workers.api.upload_order import UploadFields

PARTS: Final = "#/components/schemas/"
OUTPUT: Final = "Output"
"""Begins the names of the parts of a document as ``docs/output.md`` describes it."""

FILE: Final = {
    "type": "string",
    "contentMediaType": "application/octet-stream",
    "minLength": 1,
    "description": "The document: a PDF or an image; its type is told by its bytes.",
}
SAMPLE: Final = {
    "type": "string",
    "pattern": r"^([1-9][0-9]{0,11}|(100|[1-9][0-9]?(\.[0-9]{1,6})?)%)$",
    "description": "So many pages alone, or a share of them: `20`, `10%`.",
}

Json = Mapping[str, Any]


class DescribedApp(FastAPI):
    """Drawn up once; what it holds depends on no setting."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            described = super().openapi()
            parts = described.setdefault("components", {}).setdefault("schemas", {})
            for name, part in {**_typed_parts(), **_output_parts()}.items():
                parts.setdefault(name, part)
            for operation in _operations(described):
                for parameter in operation.get("parameters", ()):
                    parameter["schema"] = _not_null(parameter["schema"])
            self.openapi_schema = _untitled(described)
        return self.openapi_schema


def upload_body(**more: Json) -> dict[str, Any]:
    """The form of an upload, for ``openapi_extra``. A field that is empty counts as one that is not there."""
    fields = UploadFields.model_json_schema(ref_template=PARTS + "{model}")["properties"]
    form = {
        "type": "object",
        "required": ["file"],
        "additionalProperties": False,
        "properties": {
            "file": FILE,
            **{name: _or_empty(field) for name, field in {**fields, **more}.items()},
        },
    }
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": form}}}}


def result_content() -> dict[str, Any]:
    """Every media type that a result may have. The Markdown, text and so on are as they are described in
    ``docs/output.md``."""
    content: dict[str, Any] = {}
    for output in FORMATS.values():
        is_text = output.media_type.startswith("text/") or output.media_type == "application/xml"
        content[output.media_type] = {
            "schema": {"type": "string"} if is_text else {"type": "string", "format": "binary"}
        }
    docling = {
        "type": "object",
        "properties": {"schema_name": {"const": "DoclingDocument"}},
        "required": ["schema_name", "version"],
    }
    content["application/json"] = {"schema": {"anyOf": [{"$ref": f"{PARTS}{OUTPUT}Document"}, docling]}}
    return content


def _typed_parts() -> dict[str, Any]:
    """Those that no route names as its own answer."""
    parts: dict[str, Any] = {}
    for kind in (schema.Problem, schema.PageEvent, schema.Booked, schema.UnreadPage):
        drawn = TypeAdapter(kind).json_schema(ref_template=PARTS + "{model}", mode="serialization")
        parts.update(drawn.pop("$defs", {}))
        parts[kind.__name__] = drawn
    fields = UploadFields.model_json_schema(ref_template=PARTS + "{model}")
    return {**parts, **fields.get("$defs", {})}


def _output_parts() -> dict[str, Any]:
    """The JSON of a document and its pages, from the schema that its files are checked with."""
    written = _renamed(output_schema())
    parts = {_part_name(name): part for name, part in written["$defs"].items()}
    document = {key: part for key, part in written.items() if key not in ("$defs", "$schema", "title")}
    page = parts[f"{OUTPUT}Page"]
    booked = {"type": "array", "items": {"$ref": f"{PARTS}Booked"}}
    state = {"type": "string", "enum": list(STATES.values())}
    parts["ReadPage"] = {
        **page,
        "description": "A page that was read, also one that is being read again.",
        "required": [*page["required"], "booked"],
        "properties": {**page["properties"], "state": state, "booked": booked},
    }
    return {**parts, f"{OUTPUT}Document": document}


def _operations(described: Json) -> Iterator[dict[str, Any]]:
    for operations in described["paths"].values():
        yield from operations.values()


def _part_name(name: str) -> str:
    return OUTPUT + "".join(word.capitalize() for word in name.split("_"))


def _renamed(part: Any) -> Any:
    """With the references of the output's schema as those of this one."""
    if isinstance(part, dict):
        return {
            key: PARTS + _part_name(value.removeprefix("#/$defs/"))
            if key == "$ref" and isinstance(value, str)
            else _renamed(value)
            for key, value in part.items()
        }
    return [_renamed(one) for one in part] if isinstance(part, list) else part


def _or_empty(field: Json) -> dict[str, Any]:
    """Browsers send fields that nobody filled in."""
    filled = _not_null(field)
    default = filled.pop("default", None)
    said: dict[str, Any] = {"description": filled.pop("description")} if "description" in filled else {}
    if default is not None:
        said["default"] = ",".join(default) if isinstance(default, list) else default
    return {**said, "anyOf": [filled, {"type": "string", "maxLength": 0}]}


def _not_null(field: Json) -> dict[str, Any]:
    """A field of a form, and a parameter, is there or not."""
    named = {key: value for key, value in field.items() if key != "default" or value is not None}
    kinds = [kind for kind in named.pop("anyOf", ()) if kind.get("type") != "null"]
    return {**named, **(kinds[0] if kinds else {})}


def _untitled(part: Any) -> Any:
    """Titles that only repeat a name are left out."""
    if isinstance(part, dict):
        is_schema = "type" in part or "anyOf" in part or "$ref" in part or "enum" in part or "const" in part
        return {
            key: _untitled(value)
            for key, value in part.items()
            if not (is_schema and key == "title" and isinstance(value, str))
        }
    return [_untitled(one) for one in part] if isinstance(part, list) else part
