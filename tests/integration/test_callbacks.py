"""Callbacks from the database to a receiver on a real socket."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from models.api_tables import CallbackRow, CallbackState
from pipeline.settings import ApiSettings
from pipeline.store import Store, open_store
from pipeline.store.callbacks import CallbackRecord
from tests.fakes.callback_receiver import ENDLESS, SILENT, CallbackReceiver
from tests.fakes.tls_receiver import running_tls_receiver
from tests.unit.store.pool_parts import Pool
from tests.unit.store.upload_parts import enter_upload
from workers.callbacks import sending
from workers.callbacks.desk import AT_A_TIME, OF_A_TEAM, CallbackDesk
from workers.callbacks.sending import MOST_ANSWER_BYTES, Answer, send
from workers.callbacks.signing import callback_secret
from workers.callbacks.targets import NO_ADDRESS
from workers.retry import CALLBACK_MOST_TURNS

SETTINGS = ApiSettings.model_validate(
    {"callback_secret": "k" * 32, "callback_http": True, "callback_networks": "127.0.0.1/32"}
)
SECRET = callback_secret(SETTINGS, "harbour")
HERE = "127.0.0.1"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def receiver() -> Iterator[CallbackReceiver]:
    with CallbackReceiver(SECRET) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name of the tests leads to this machine."""
    name_leads_to(monkeypatch, lambda host: [HERE] if host.endswith(".example") else [])


def name_leads_to(monkeypatch: pytest.MonkeyPatch, addresses_of: Callable[[str], Sequence[str]]) -> list[str]:
    """The names that were asked for."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *arguments: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        if not name.endswith(".example"):
            return real(host, port, *arguments, **more)
        asked.append(name)
        found = addresses_of(name)
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def over(store: Store, url: str, cost_centre: str = "harbour") -> str:
    """The upload of a document that was refused, which is over soonest."""
    submission_id = Pool(store).open(cost_centre)
    store.pool.add_refused_source(
        submission_id, name="a.pdf", output_stem="a.pdf", code="empty_file", message="x"
    )
    store.pool.seal(submission_id)
    return enter_upload(store, submission_id, cost_centre=cost_centre, callback_url=url)


def desk(store: Store, settings: ApiSettings = SETTINGS, **changes: Any) -> CallbackDesk:
    return CallbackDesk(store.callbacks, settings, lambda upload_id: {"id": upload_id}, **changes)


def looked(store: Store, **changes: Any) -> None:
    looking = desk(store, **changes)
    looking.look()
    looking.wait()


def only(store: Store, upload_id: str) -> CallbackRecord:
    [record] = store.callbacks.of_upload(upload_id)
    return record


def make_due(store: Store, *, entered_s_ago: float = 0.0) -> None:
    with store.database.write() as session:
        for row in session.query(CallbackRow):
            row.next_attempt_at_s = 0.0
            row.created_at_s = time.time() - entered_s_ago


def posted(url: str, settings: ApiSettings = SETTINGS, **more: Any) -> Answer:
    return send(url, body=b"{}", headers={}, settings=settings, **more)


def test_a_document_that_is_over_is_told_of_once_and_signed(store: Store, receiver: CallbackReceiver) -> None:
    upload_id = over(store, receiver.url())
    for _ in range(2):
        looked(store)
    [got] = receiver.received
    assert (got.host, got.path) == (f"receiver.example:{receiver.port}", "/done?case=4711")
    assert got.message["type"] == "document.failed"
    assert got.message["data"] == {"id": upload_id}
    assert got.message["timestamp"].endswith("Z")
    assert (got.headers["content-type"], got.headers["user-agent"]) == (
        "application/json",
        "doctriage-callbacks",
    )
    assert {"authorization", "cookie"} & set(got.headers) == set()
    record = only(store, upload_id)
    assert (record.state, record.attempts, record.last_status) == (CallbackState.DELIVERED, 1, 204)
    assert got.message_id == record.message_id


def test_what_is_no_text_in_the_sender_s_own_words_is_sent_too(
    store: Store, receiver: CallbackReceiver
) -> None:
    odd = {"half a letter": "\ud800", "a name": "Prüfung.pdf"}
    over(store, receiver.url())
    looking = CallbackDesk(store.callbacks, SETTINGS, lambda _: {"metadata": odd})
    looking.look()
    looking.wait()
    [got] = receiver.received
    assert got.message["data"] == {"metadata": odd}


def test_a_receiver_that_fails_gets_the_same_message_again_later(
    store: Store, receiver: CallbackReceiver
) -> None:
    receiver.answers = [500]
    upload_id = over(store, receiver.url())
    looked(store)
    record = only(store, upload_id)
    assert (record.state, record.last_status, record.attempts) == (CallbackState.WAITING, 500, 1)
    assert record.last_error == "the receiver answered 500"
    assert record.next_attempt_at_s is not None
    assert time.time() < record.next_attempt_at_s < time.time() + 6
    looked(store)
    assert len(receiver.received) == 1, "it was not due"
    make_due(store)
    looked(store)
    assert len({got.message_id for got in receiver.received}) == 1
    assert only(store, upload_id).state is CallbackState.DELIVERED


def test_a_receiver_says_when_to_come_again(store: Store, receiver: CallbackReceiver) -> None:
    receiver.answers, receiver.answer_headers = [503], {"retry-after": "1800"}
    upload_id = over(store, receiver.url())
    looked(store)
    next_at_s = only(store, upload_id).next_attempt_at_s
    assert next_at_s is not None
    assert next_at_s == pytest.approx(time.time() + 1_800, abs=60)


@pytest.mark.parametrize(("status", "entered_s_ago"), [(410, 0.0), (500, 86_400.0)])
def test_a_callback_is_given_up_where_nobody_wants_it_and_after_a_day(
    status: int, entered_s_ago: float, store: Store, receiver: CallbackReceiver
) -> None:
    receiver.answers = [status, status]
    upload_id = over(store, receiver.url())
    store.callbacks.enter_missing()
    make_due(store, entered_s_ago=entered_s_ago)
    looked(store)
    record = only(store, upload_id)
    assert (record.state, record.next_attempt_at_s) == (CallbackState.GIVEN_UP, None)
    make_due(store)
    looked(store)
    assert len(receiver.received) == 1


def test_an_erased_document_is_not_told_of(store: Store, receiver: CallbackReceiver) -> None:
    upload_id = over(store, receiver.url())
    looking = CallbackDesk(store.callbacks, SETTINGS, lambda _: None)
    looking.look()
    looking.wait()
    assert receiver.received == []
    assert only(store, upload_id).state is CallbackState.GIVEN_UP


def test_one_that_nobody_came_to_an_end_with_is_given_up(store: Store, receiver: CallbackReceiver) -> None:
    upload_id = over(store, receiver.url())
    store.callbacks.enter_missing()
    with store.database.write() as session:
        for row in session.query(CallbackRow):
            row.attempts = CALLBACK_MOST_TURNS
    looked(store)
    assert only(store, upload_id).state is CallbackState.GIVEN_UP
    assert receiver.received == []


def test_without_a_secret_nothing_is_entered(store: Store, receiver: CallbackReceiver) -> None:
    upload_id = over(store, receiver.url())
    looked(store, settings=ApiSettings())
    assert store.callbacks.of_upload(upload_id) == ()


def test_many_are_told_at_a_time_but_few_of_one_team(store: Store) -> None:
    """Each receiver answers when more are being told than may be of one team, whichever of its projects pays."""
    crowded, counting = threading.Event(), threading.Lock()
    under_way: Counter[str] = Counter()
    most: Counter[str] = Counter()

    def sender(url: str, **_: Any) -> Answer:
        name = "slow" if "slow" in url else "quick"
        with counting:
            under_way.update([name, "all"])
            most.update({one: max(0, under_way[one] - most[one]) for one in under_way})
            if under_way["all"] > OF_A_TEAM:
                crowded.set()
        assert crowded.wait(60)
        with counting:
            under_way.subtract([name, "all"])
        return Answer(status=204)

    uploads = [
        over(store, f"https://slow.example/{number}", f"slow/project {number}") for number in range(12)
    ]
    uploads += [over(store, f"https://quick.example/{number}", f"team{number}") for number in range(6)]
    looked(store, sender=sender)
    assert {only(store, one).state for one in uploads} == {CallbackState.DELIVERED}
    assert most["slow"] == OF_A_TEAM
    assert OF_A_TEAM < most["all"] <= AT_A_TIME


def test_two_who_look_tell_of_each_document_once(store: Store, receiver: CallbackReceiver) -> None:
    uploads = {over(store, receiver.url()) for _ in range(10)}
    desks = [desk(store), desk(store)]
    for one in desks:
        one.look()
    for one in desks:
        one.wait()
    assert sorted(got.message["data"]["id"] for got in receiver.received) == sorted(uploads)


def test_a_closed_desk_begins_nothing_more(store: Store, receiver: CallbackReceiver) -> None:
    over(store, receiver.url())
    closed = desk(store)
    closed.close(patience_s=60)
    closed.look()
    closed.wait()
    assert receiver.received == []


def test_whoever_closes_waits_for_what_is_under_way_no_longer_than_said(store: Store) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def sender(_: str, **__: Any) -> Answer:
        begun.set()
        may_end.wait(60)
        return Answer(status=204)

    upload_id = over(store, "https://receiver.example/")
    looking = desk(store, sender=sender)
    looking.look()
    assert begun.wait(60)
    looking.close(patience_s=0.05)
    assert only(store, upload_id).state is CallbackState.WAITING
    may_end.set()
    looking.wait()
    assert only(store, upload_id).state is CallbackState.DELIVERED


def test_a_redirect_is_not_followed(receiver: CallbackReceiver) -> None:
    with CallbackReceiver(None) as elsewhere:
        receiver.secret = None
        receiver.answers, receiver.answer_headers = [307], {"location": elsewhere.url()}
        answer = posted(receiver.url())
        assert (answer.status, answer.is_taken) == (307, False)
        assert elsewhere.received == []


def test_of_an_answer_without_an_end_little_is_read(receiver: CallbackReceiver) -> None:
    receiver.secret, receiver.answers = None, [ENDLESS]
    assert posted(receiver.url()).is_taken
    time.sleep(0.3)
    assert receiver.sent_bytes < 100 * MOST_ANSWER_BYTES, "it is still being read"


def test_a_receiver_that_says_nothing_is_left_after_a_while(
    receiver: CallbackReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "MOST_S", 0.5)
    receiver.secret, receiver.answers = None, [SILENT]
    answer = posted(receiver.url())
    assert (answer.status, answer.error) == (None, "no answer within 0.5 s")


def test_a_receiver_that_dribbles_is_left_after_a_while_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, and the answer never does."""
    monkeypatch.setattr(sending, "MOST_S", 1.0)
    with socket.create_server((HERE, 0)) as listener:

        def dribble() -> None:
            connection, _ = listener.accept()
            with connection:
                try:
                    for letter in "HTTP/1.1 200 OK\r\nx: " + "y" * 1_000:
                        connection.sendall(letter.encode())
                        time.sleep(0.05)
                except OSError:
                    pass

        thread = threading.Thread(target=dribble)
        thread.start()
        answer = posted(f"http://slow.example:{listener.getsockname()[1]}/")
        thread.join()
    assert (answer.status, answer.error) == (None, "no answer within 1 s")


def test_a_name_that_nobody_answers_for_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "MOST_S", 0.3)
    name_leads_to(monkeypatch, lambda _: time.sleep(1) or [HERE])
    assert posted("http://receiver.example/").error == NO_ADDRESS


def test_the_name_is_asked_for_once_and_the_connection_goes_where_it_led_then(
    receiver: CallbackReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: the second answer is another one."""
    receiver.secret = None
    answers = iter([[HERE]])
    asked = name_leads_to(monkeypatch, lambda _: next(answers, ["127.0.0.2"]))
    assert posted(receiver.url()).is_taken
    assert asked == ["receiver.example"]
    assert posted(receiver.url()) == Answer(status=None, error=NO_ADDRESS)
    assert len(receiver.received) == 1


@pytest.mark.parametrize("found", [["127.0.0.2"], [HERE, "127.0.0.2"], ["10.0.0.1", HERE], []])
def test_a_name_that_leads_inside_is_not_gone_to_and_is_told_as_an_unknown_one(
    found: list[str], receiver: CallbackReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_leads_to(monkeypatch, lambda _: found)
    assert posted(receiver.url()) == Answer(status=None, error=NO_ADDRESS)
    assert receiver.received == []


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "localhost", "[::1]"])
def test_this_machine_is_reached_by_none_of_its_spellings(host: str, receiver: CallbackReceiver) -> None:
    strict = SETTINGS.model_copy(update={"callback_networks": ()})
    assert posted(receiver.url(host), strict).status is None
    assert receiver.received == []


def test_a_proxy_of_the_environment_is_not_asked(
    receiver: CallbackReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CallbackReceiver(None) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://{HERE}:{proxy.port}")
        receiver.secret = None
        assert posted(receiver.url()).is_taken
        assert proxy.received == []


def test_where_nobody_listens_the_next_address_is_tried(
    receiver: CallbackReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = SETTINGS.model_copy(update={"callback_networks": networks("127.0.0.0/8")})
    name_leads_to(monkeypatch, lambda _: ["127.0.0.2", HERE])
    receiver.secret = None
    assert posted(receiver.url(), both).is_taken
    name_leads_to(monkeypatch, lambda _: ["127.0.0.2", "127.0.0.3"])
    assert posted(receiver.url(), both) == Answer(status=None, error="no connection to the receiver")


def test_behind_tls_the_receiver_is_known_by_its_name_though_a_number_is_connected_to(tmp_path: Path) -> None:
    with running_tls_receiver(tmp_path, certified="receiver.example") as behind_tls:
        url = f"https://receiver.example:{behind_tls.port}/done"
        assert posted(url, tls=behind_tls.trust) == Answer(status=204)
        assert behind_tls.names == ["receiver.example"]
        assert behind_tls.hosts == [f"receiver.example:{behind_tls.port}"]
        stranger = posted(f"https://stranger.example:{behind_tls.port}/done", tls=behind_tls.trust)
        assert stranger.error is not None
        assert stranger.error.startswith("the receiver's certificate is not trusted: ")
        assert "stranger.example" in stranger.error
        untrusted = posted(url)
        assert untrusted.error is not None
        assert "certificate is not trusted: self-signed" in untrusted.error
        assert len(behind_tls.hosts) == 1


def networks(*texts: str) -> tuple[Any, ...]:
    import ipaddress

    return tuple(ipaddress.ip_network(text) for text in texts)
