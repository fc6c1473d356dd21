"""What comes with a document, and what its name becomes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from models.errors import CostCentreRefused, PriorityRefused, RequestInvalid
from pipeline.settings import Settings
from workers.api.access import Caller
from workers.api.upload_order import UploadOrder, document_name, idempotency_key, upload_order

ASKING = Caller(key_id=7, cost_centre="harbour", scopes=frozenset({"submit"}), is_admin=False, max_priority=9)


def order(
    fields: dict[str, str],
    *,
    document_id: str = "a" * 64,
    key: str | None = "secret",
    asking: Caller = ASKING,
) -> UploadOrder:
    settings = Settings(home=Path("/nowhere"), pool={} if key is None else {"secret_key": key})
    return upload_order(
        fields, file_name="inv.pdf", document_id=document_id, asking=asking, settings=settings
    )


@pytest.mark.parametrize(
    ("file_name", "name"),
    [
        ("inv.pdf", "inv.pdf"),
        ("C:\\scans\\inv.pdf", "inv.pdf"),
        ("../../etc/passwd", "passwd"),
        ("a\r\nb\x00.pdf", "ab.pdf"),
        ("Straße 1.pdf", "Straße 1.pdf"),
        ("", "document"),
        ("..", "document"),
        ("x" * 300, "x" * 200),
        ("é" * 150, "é" * 100),
    ],
)
def test_a_name_is_the_last_part_as_far_as_it_can_be_shown(file_name: str, name: str) -> None:
    assert document_name(file_name) == name


def test_a_name_with_folders_takes_the_place_of_the_file_s() -> None:
    assert order({"name": "a/scan 1.pdf"}).name == "a/scan 1.pdf"
    assert order({"name": ""}).name == "inv.pdf"


@pytest.mark.parametrize("name", ["../a.pdf", "/a.pdf", "a//b.pdf", "a/", "a\\b.pdf", "a\nb", "x" * 201])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(RequestInvalid) as refused:
        order({"name": name})
    assert refused.value.faults[0][0] == "name"


def test_nothing_that_was_sent_is_left_out_of_the_request() -> None:
    sent = [
        order({}),
        order({"priority": "9"}),
        order({"name": "a/inv.pdf"}),
        order({"name": "b/inv.pdf"}),
        order({"metadata": "{}"}),
        order({"password": "one"}),
        order({"password": "two"}),
        order({}, document_id="b" * 64),
    ]
    assert len({one.request_sha256 for one in sent}) == len(sent)
    assert order({"priority": "9"}).request_sha256 == sent[1].request_sha256


def test_a_password_is_not_taken_where_it_cannot_be_sealed() -> None:
    with pytest.raises(RequestInvalid) as refused:
        order({"password": "one"}, key=None)
    assert refused.value.faults[0][0] == "password"


def test_another_cost_centre_does_not_pay() -> None:
    assert order({"cost_centre": "harbour/lock"}).cost_centre == "harbour/lock"
    with pytest.raises(CostCentreRefused):
        order({"cost_centre": "quay"})


@pytest.mark.parametrize(
    ("most", "fields", "priority"),
    [
        (9, {}, 5),
        (5, {}, 5),
        (3, {}, 3),
        (0, {"priority": ""}, 0),
        (9, {"priority": "9"}, 9),
        (5, {"priority": "5"}, 5),
        (5, {"priority": "0"}, 0),
        (0, {"priority": "0"}, 0),
    ],
)
def test_a_document_is_as_urgent_as_it_says_or_as_usual_as_far_as_its_key_goes(
    most: int, fields: dict[str, str], priority: int
) -> None:
    assert order(fields, asking=replace(ASKING, max_priority=most)).priority == priority


@pytest.mark.parametrize(("most", "priority"), [(8, 9), (5, 6), (0, 1)])
def test_a_priority_above_the_key_s_is_refused_with_what_to_name(most: int, priority: int) -> None:
    with pytest.raises(
        PriorityRefused, match=f"is {most}, and you named {priority}; name {most} or less, or none"
    ):
        order({"priority": str(priority)}, asking=replace(ASKING, max_priority=most))


@pytest.mark.parametrize("metadata", ["[1]", "1", "{", '{"a": NaN}', "[" * 5_000])
def test_metadata_is_a_json_object(metadata: str) -> None:
    with pytest.raises(RequestInvalid) as refused:
        order({"metadata": metadata})
    assert refused.value.faults == (("metadata", "send a JSON object"),)


@pytest.mark.parametrize("levels", [65, 300])
def test_metadata_is_not_too_deep_to_be_written_again(levels: int) -> None:
    """What json takes on a short stack it does not give on a longer one."""
    with pytest.raises(RequestInvalid) as refused:
        order({"metadata": '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"})
    assert refused.value.faults == (("metadata", "nest objects and arrays at most 64 deep"),)
    assert order({"metadata": '{"a":' + "[" * 63 + "]" * 63 + "}"}).metadata is not None


@pytest.mark.parametrize("key", ["", "two words", "ü", "x" * 256, "a\nb"])
def test_a_key_is_visible_ascii(key: str) -> None:
    with pytest.raises(RequestInvalid):
        idempotency_key(key)
    assert idempotency_key("k-1") == "k-1"
