"""The key by which a server knows that the same command comes again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from workers.api.upload_order import KEY
from workers.client.batch_order import BatchOrder, FirstSources, Stopped, Writers

DIGEST = "ab" * 32
ORDER = BatchOrder(out_dir=Path("/out"), options={"priority": 5, "languages": None}, api_key="k")


def key(
    order: BatchOrder = ORDER,
    name: str = "a/b.pdf",
    digest: str = DIGEST,
    password: str | None = None,
    again: int = 0,
) -> str:
    return order.idempotency_key(name, digest, password, again)


def test_the_same_command_has_the_same_key_and_the_api_takes_it() -> None:
    assert key() == key(replace(ORDER, options={"languages": None, "priority": 5}))
    assert KEY.fullmatch(key())


@pytest.mark.parametrize(
    "other",
    [
        key(replace(ORDER, out_dir=Path("/elsewhere"))),
        key(replace(ORDER, options={"priority": 6})),
        key(replace(ORDER, formats=("json",))),
        key(name="c/b.pdf"),
        key(digest="cd" * 32),
        key(password="p"),
        key(again=1),
    ],
)
def test_anything_else_has_another(other: str) -> None:
    assert other != key()


def test_passwords_have_keys_of_their_own_which_do_not_tell_them() -> None:
    assert key(password="one") == key(password="one")
    assert len({key(password=password) for password in ("one", "two", "\udcff")}) == 3
    assert key(password="one") != key(replace(ORDER, api_key="other"), password="one")
    assert "sesame" not in repr(replace(ORDER, passwords=("sesame",), api_key="sesame"))


def test_a_document_keeps_the_folders_of_its_name() -> None:
    assert ORDER.options_of("a/b.pdf", "p") == {
        "priority": 5,
        "languages": None,
        "name": "a/b.pdf",
        "outputs": ("markdown", "json"),
        "password": "p",
    }


def test_pages_of_equal_bytes_are_the_first_source_s() -> None:
    firsts = FirstSources()
    assert [firsts.first(digest, name) for digest, name in (("x", "a"), ("y", "b"), ("x", "c"))] == [
        "a",
        "b",
        "a",
    ]


def test_nobody_begins_to_write_once_the_batch_has_stopped() -> None:
    writers = Writers()
    with writers.entered():
        pass
    writers.stop(0)
    with pytest.raises(Stopped), writers.entered():
        pytest.fail("written")
