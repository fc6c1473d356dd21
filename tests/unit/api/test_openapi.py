"""The schema of the API: published as it is served, and whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from pipeline.exports.formats import FORMATS
from workers.api.app import described_app
from workers.api.upload_order import UploadFields

PUBLISHED: Final = Path(__file__).parents[3] / "docs" / "openapi.json"
WITHOUT_A_KEY: Final = {"/healthz", "/readyz"}

SCHEMA: Final = described_app().openapi()
OPERATIONS: Final = {
    f"{method} {path}": operation
    for path, operations in SCHEMA["paths"].items()
    for method, operation in operations.items()
}


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for one in part.values():
            yield from references(one)
    elif isinstance(part, list):
        for one in part:
            yield from references(one)


def test_the_published_file_is_what_is_served() -> None:
    """Else: `doctriage openapi > docs/openapi.json`."""
    assert json.loads(PUBLISHED.read_text("utf-8")) == json.loads(json.dumps(SCHEMA))


def test_every_part_that_is_named_is_there() -> None:
    parts = {f"#/components/schemas/{name}" for name in SCHEMA["components"]["schemas"]}
    assert set(references(SCHEMA)) <= parts


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_answer_has_a_form(name: str) -> None:
    for status, answer in OPERATIONS[name]["responses"].items():
        contents = answer.get("content", {})
        assert bool(contents) == (status not in ("204", "304")), status
        assert all(content["schema"] for content in contents.values()), status
        if int(status) >= 400 and name != "get /readyz":
            assert set(contents) == {"application/problem+json"}, status


@pytest.mark.parametrize("name", OPERATIONS)
def test_whoever_has_to_show_a_key_is_told(name: str) -> None:
    is_open = name.split()[1] in WITHOUT_A_KEY
    operation = OPERATIONS[name]
    assert operation.get("security", []) == ([] if is_open else [{"bearer": []}, {"key": []}])
    assert ({"401", "403", "429"} <= operation["responses"].keys()) == (not is_open)


def test_links_lead_to_operations_that_there_are() -> None:
    names = {operation["operationId"] for operation in OPERATIONS.values()}
    links = {
        link["operationId"]
        for operation in OPERATIONS.values()
        for answer in operation["responses"].values()
        for link in answer.get("links", {}).values()
    }
    assert links
    assert links <= names


def test_a_document_that_was_just_sent_promises_no_page() -> None:
    """Its pages are not known yet, and there may be none."""
    links = OPERATIONS["post /v1/documents"]["responses"]["202"]["links"]
    assert "get_document" in links
    assert {key for link in links.values() for key in link["parameters"]} == {"upload_id"}


def test_the_form_has_every_field_and_the_result_every_format() -> None:
    form = OPERATIONS["post /v1/documents"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert set(form["properties"]) == {"file", *UploadFields.model_fields}
    content = OPERATIONS["get /v1/documents/{upload_id}/result"]["responses"]["200"]["content"]
    assert set(content) == {output.media_type for output in FORMATS.values()}
    parameters = OPERATIONS["get /v1/documents/{upload_id}/result"]["parameters"]
    named = next(parameter for parameter in parameters if parameter["name"] == "format")
    assert set(named["schema"]["enum"]) == set(FORMATS)
