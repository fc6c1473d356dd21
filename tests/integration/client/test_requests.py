"""Requests over a real socket to an API that answers as a script says: which are made again, and how often."""

from __future__ import annotations

import hashlib
import io
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from models.errors import (
    CredentialsRefused,
    DoctriageError,
    DocumentErased,
    NotReady,
    PoolBusy,
    ServerError,
    ServerUnreachable,
    SourceUnreadable,
    StoreUnreachable,
)
from tests.fakes.scripted_api import (
    ScriptedApi,
    Step,
    answers,
    dies,
    document_content,
    event,
    page_content,
    refuses,
    says,
    scripted_api,
    streams,
)
from workers.client import Client, DocumentChanged, DocumentEnded, PageSettled

QUEUED = document_content("queued", page_count=None)
FINISHED = document_content()


class Talk:
    """A client of a scripted API. ``pauses_s`` are those that it made, without waiting."""

    def __init__(self, api: ScriptedApi, **options: Any) -> None:
        self.api = api
        self.pauses_s: list[float] = []
        self.waits: list[DoctriageError] = []
        self.client = Client(
            api.url,
            key="k1",
            sleep=self.pauses_s.append,
            on_wait=lambda error, _: self.waits.append(error),
            **options,
        )


@contextmanager
def talk(*steps: Step, **options: Any) -> Iterator[Talk]:
    with scripted_api(*steps) as api:
        begun = Talk(api, **options)
        with begun.client:
            yield begun


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    path = tmp_path / "scän.tif"
    path.write_bytes(b"II*\0" * 1_000)
    return path


def test_a_document_that_is_sent_again_has_the_key_and_the_bytes_that_it_had(scan: Path) -> None:
    full = refuses(503, "pool_busy", retry_after="7")
    with talk(full, dies, says("bad gateway", 502), answers(QUEUED, 202)) as begun:
        document = begun.client.submit(scan, priority=7, outputs=("json", "text"), metadata={"case": 1})
        assert (document.id, document.is_replayed) == ("d1", False)
        assert len({heard.headers["idempotency-key"] for heard in begun.api.heard}) == 1
        assert len(begun.api.heard) == 4
        assert {heard.headers["authorization"] for heard in begun.api.heard} == {"Bearer k1"}
        assert begun.api.heard[0].body_bytes == begun.api.heard[3].body_bytes > 4_000
        assert begun.pauses_s[0] == 7
        assert [type(error) for error in begun.waits] == [PoolBusy, ServerUnreachable, ServerError]


def test_two_documents_have_two_keys(scan: Path) -> None:
    with talk(answers(QUEUED, 202)) as begun:
        for _ in range(2):
            begun.client.submit(scan)
        begun.client.submit(scan, idempotency_key="mine")
        keys = [heard.headers["idempotency-key"] for heard in begun.api.heard]
        assert len(set(keys)) == 3
        assert keys[2] == "mine"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500])
def test_what_would_be_refused_again_is_not_asked_again(status: int, scan: Path) -> None:
    with talk(refuses(status, "some_code")) as begun:
        with pytest.raises(ServerError, match="no; do something"):
            begun.client.submit(scan)
        assert (len(begun.api.heard), begun.pauses_s) == (1, [])


def test_patience_ends_and_the_last_reason_is_told(scan: Path) -> None:
    with talk(refuses(503, "pool_busy", retry_after="25"), patience_s=60.0) as begun:
        with pytest.raises(PoolBusy) as refused:
            begun.client.submit(scan)
        assert refused.value.retry_after_s == 25
        assert begun.pauses_s == [25, 25]
        assert len(begun.api.heard) == 3


def test_a_full_server_may_be_waited_for_without_an_end_but_not_one_that_is_away() -> None:
    full = [refuses(503, "pool_busy", retry_after="25"), refuses(429, "too_many_requests", retry_after="25")]
    with talk(*full, *full, *full, answers(FINISHED), patience_s=60.0, waits_for_room=True) as begun:
        assert begun.client.document("d1").id == "d1"
        assert sum(begun.pauses_s) == 150
    with talk(
        refuses(503, "store_unreachable", retry_after="25"), patience_s=60.0, waits_for_room=True
    ) as begun:
        with pytest.raises(StoreUnreachable):
            begun.client.document("d1")
        assert begun.pauses_s == [25, 25]


def test_a_stream_is_sent_again_from_its_beginning_but_not_one_that_cannot_be_wound_back() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: int) -> int:
            raise io.UnsupportedOperation

    with talk(dies, answers(QUEUED, 202)) as begun:
        begun.client.submit(io.BytesIO(b"x" * 3_000), name="a.pdf")
        assert len({heard.body_bytes for heard in begun.api.heard}) == 1
    with talk(dies, answers(QUEUED, 202)) as begun:
        with pytest.raises(ServerUnreachable):
            begun.client.submit(Pipe(b"x" * 3_000), name="a.pdf")
        assert len(begun.api.heard) == 1
        begun.client.submit(Pipe(b"x" * 3_000), name="a.pdf")
        assert begun.api.heard[1].body_bytes > 3_000


def test_memory_stays_flat_however_large_the_document(tmp_path: Path) -> None:
    size_bytes = 64 * 2**20
    large = tmp_path / "large.pdf"
    with large.open("wb") as file:
        file.truncate(size_bytes)
    with talk(answers(QUEUED, 202)) as begun:
        tracemalloc.start()
        try:
            begun.client.submit(large)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert begun.api.heard[0].body_bytes > size_bytes
        assert peak_bytes < size_bytes / 8


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with talk(answers(QUEUED, 202)) as begun:
        with pytest.raises(SourceUnreadable, match=r"gone\.pdf: cannot be read"):
            begun.client.submit(tmp_path / "gone.pdf")
        assert begun.api.heard == []


def test_what_may_have_happened_is_not_asked_twice() -> None:
    with talk(dies, answers(FINISHED)) as begun:
        with pytest.raises(ServerUnreachable, match="was lost"):
            begun.client.cancel("d1")
        assert len(begun.api.heard) == 1
    with talk(
        refuses(429, "too_many_requests", retry_after="2"), answers(document_content("cancelled"))
    ) as begun:
        assert begun.client.cancel("d1").state == "cancelled"
        assert begun.pauses_s == [2]


def test_a_server_that_is_away_is_asked_again_and_then_named() -> None:
    with scripted_api(answers(FINISHED)) as api:
        url = api.url
    pauses_s: list[float] = []
    with (
        Client(url, sleep=pauses_s.append, patience_s=10) as client,
        pytest.raises(ServerUnreachable, match=f"no server answers at {url}"),
    ):
        client.cancel("d1")
    assert len(pauses_s) >= 4


def test_another_server_is_told_apart() -> None:
    with talk(says("<h1>Welcome</h1>", 200)) as begun, pytest.raises(ServerError, match="no JSON object"):
        begun.client.document("d1")
    with talk(says("<h1>Not found</h1>", 404)) as begun, pytest.raises(ServerError, match="not from the API"):
        begun.client.document("d1")
    with talk(answers({"hello": "world"})) as begun, pytest.raises(ServerError, match="does not know"):
        begun.client.document("d1")
    with talk(refuses(401, "credentials_refused")) as begun, pytest.raises(CredentialsRefused):
        begun.client.models()


def test_documents_are_listed_part_by_part() -> None:
    first = {"documents": [document_content(id="d1"), document_content(id="d2")], "next_cursor": "c+2"}
    with talk(
        answers(first), answers({"documents": [document_content(id="d3")], "next_cursor": None})
    ) as begun:
        listed = begun.client.documents(state="finished", name="a b")
        assert next(listed).id == "d1"
        assert len(begun.api.heard) == 1
        assert [document.id for document in listed] == ["d2", "d3"]
        assert "state=finished" in begun.api.heard[0].query
        assert "cursor=c%2B2" in begun.api.heard[1].query


def test_events_go_on_where_the_connection_was_lost_and_come_once() -> None:
    reading = document_content("reading")
    told = event("document", "reading;", reading) + event("page", "reading;1", page_content(1))
    rest = (
        ": a comment\n\n"
        + event("page", "reading;1-2", page_content(2))
        + event("moon", "m", {})
        + event("end", "end", FINISHED)
    )
    with talk(streams(told, dies_after=True), dies, streams(told[:0]), streams(rest)) as begun:
        events = list(begun.client.events("d1"))
        assert [type(one) for one in events] == [DocumentChanged, PageSettled, PageSettled, DocumentEnded]
        assert [one.page_number for one in events if isinstance(one, PageSettled)] == [1, 2]
        asked = [heard.headers.get("last-event-id") for heard in begun.api.heard]
        assert asked == [None, "reading;1", "reading;1", "reading;1"]


def test_a_document_that_is_erased_meanwhile_ends_the_events() -> None:
    told = event("document", "reading;", document_content("reading"))
    with talk(streams(told), refuses(410, "document_erased")) as begun, pytest.raises(DocumentErased):
        list(begun.client.events("d1"))


@pytest.mark.parametrize(
    ("refusal", "most_streams"),
    [
        (refuses(503, "too_many_at_once", retry_after="20"), 2),
        (says("no streams here", 200), 20),
        (says("gateway time-out", 504), 20),
    ],
)
def test_without_events_a_document_is_asked_after(refusal: Step, most_streams: int) -> None:
    reading = answers(document_content("reading"), retry_after="3")
    open_answers = [reading, reading]

    async def step(request: Any) -> Any:
        if request.url.path.endswith("/events"):
            return await refusal(request)
        return await (open_answers.pop() if open_answers else answers(FINISHED))(request)

    with talk(step) as begun:
        assert begun.client.wait("d1").state == "finished"
        paths = [heard.path.rpartition("/")[2] for heard in begun.api.heard]
        assert paths[-3:] == ["d1", "d1", "d1"]
        assert 1 <= paths.count("events") <= most_streams
        assert begun.pauses_s[-2:] == [3, 3]


def test_waiting_has_an_end_where_one_is_given() -> None:
    with talk(answers(document_content("reading"), retry_after="3")) as begun:
        with pytest.raises(NotReady, match="reading still"):
            begun.client.wait("d1", timeout_s=0)
        assert [heard.path for heard in begun.api.heard] == ["/v1/documents/d1"]
    with talk(answers(FINISHED)) as begun:
        assert begun.client.wait("d1", timeout_s=0).state == "finished"


def test_waiting_tells_what_happens() -> None:
    told: list[object] = []
    stream = event("page", "reading;1", page_content(1)) + event("end", "end", FINISHED)
    with talk(streams(stream)) as begun:
        assert begun.client.wait("d1", on_event=told.append).id == "d1"
    assert [type(one) for one in told] == [PageSettled, DocumentEnded]


def test_a_result_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    text = "§" * 100_000
    target = tmp_path / "deep" / "a.md"

    async def halved(_: Any) -> Any:
        from starlette.responses import StreamingResponse

        async def chunks() -> Any:
            yield text.encode()[:50_000]

        return StreamingResponse(chunks(), headers={"content-length": str(len(text.encode()))})

    with talk(cast(Callable[[Any], Any], halved), says(text, 200)) as begun:
        assert begun.client.result("d1", "markdown", to=target) == target
        assert hashlib.sha256(target.read_bytes()).digest() == hashlib.sha256(text.encode()).digest()
        assert begun.api.heard[0].query == "format=markdown"
        assert len(begun.api.heard) == 2
    with talk(refuses(409, "not_ready", retry_after="2")) as begun:
        with pytest.raises(NotReady):
            begun.client.result("d1", to=target)
        assert len(begun.api.heard) == 1
    assert target.read_bytes() == text.encode()
    assert [path.name for path in target.parent.iterdir()] == ["a.md"]


def test_a_name_cannot_lead_elsewhere() -> None:
    with talk(answers(FINISHED)) as begun:
        begun.client.document("../budgets?x=1")
        assert begun.api.heard[0].path == "/v1/documents/../budgets%3Fx=1"
        assert begun.api.heard[0].query == ""
