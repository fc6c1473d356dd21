"""Who is let in by the API, over a real socket: by keys, by tokens, as often as they may."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import httpx2
import pytest
from fastapi import Depends, FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from models.errors import CostCentreRefused, SettingsError, TooManyOpenDocuments
from pipeline.settings import Settings, load_settings
from pipeline.store import Store, open_store
from pipeline.store.api_keys import ApiKeyTerms
from tests.fakes.asgi_host import AsgiHost
from tests.unit.store.pool_parts import Pool
from tests.unit.store.upload_parts import enter_upload
from tests.unit.workers.test_tokens import AUDIENCE, ISSUER, KEYS, OTHER_RSA_KEY, jwk, token
from workers.api import events
from workers.api.access import Access, AccessHeaders, Caller, caller, open_access, require_loopback
from workers.api.document_json import found
from workers.api.problems import add_handlers
from workers.api_keys import create_key, new_key

Ask = Callable[..., httpx2.Response]
Shown = dict[str, str] | Sequence[tuple[str, str]]
TERMS = ApiKeyTerms(name="scanner", cost_centre="harbour", scopes=("read", "submit"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


def settings_of(**api: Any) -> Settings:
    return load_settings({"api": api})


def application(access: Access) -> FastAPI:
    app = FastAPI()
    app.state.access = access
    app.add_middleware(AccessHeaders)
    add_handlers(app)

    @app.api_route("/who", methods=["GET", "POST", "DELETE"])
    def who(asking: Annotated[Caller, Depends(caller)]) -> JSONResponse:
        return JSONResponse(
            {
                "cost_centre": asking.cost_centre,
                "is_admin": asking.is_admin,
                "max_priority": asking.max_priority,
            }
        )

    return app


@contextmanager
def served(store: Store, *, is_open: bool = False, **api: Any) -> Iterator[Ask]:
    access = open_access(settings_of(**api), store, is_open=is_open)
    with AsgiHost(application(access)) as host, httpx2.Client(trust_env=False) as client:

        def ask(key: str | None = None, *, method: str = "GET", headers: Shown = ()) -> httpx2.Response:
            shown = {} if key is None else {"authorization": f"Bearer {key}"}
            more = headers.items() if isinstance(headers, dict) else headers
            return client.request(
                method, f"http://127.0.0.1:{host.port}/who", headers=[*shown.items(), *more]
            )

        yield ask


@pytest.fixture
def ask(store: Store) -> Iterator[Ask]:
    with served(store) as asking:
        yield asking


def key_of(store: Store, **terms: Any) -> str:
    return create_key(store.api_keys, replace(TERMS, **terms)).text


def is_problem(answer: httpx2.Response, status: int, code: str) -> bool:
    assert answer.headers["content-type"] == "application/problem+json"
    return (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_key_is_taken_in_either_header_and_acts_for_its_cost_centre(store: Store, ask: Ask) -> None:
    key = key_of(store)
    for answer in (
        ask(key),
        ask(headers={"x-api-key": key}),
        ask(headers={"authorization": f"bearer  {key}"}),
        ask(key, headers={"x-api-key": key}),
    ):
        assert (answer.status_code, answer.json()) == (
            200,
            {"cost_centre": "harbour", "is_admin": False, "max_priority": 5},
        )


def test_without_a_key_nobody_is_let_in_and_told_how_to_be(ask: Ask) -> None:
    for headers in ({}, {"authorization": "Basic YTpi"}, {"authorization": "Bearer"}, {"x-api-key": ""}):
        answer = ask(headers=headers)
        assert is_problem(answer, 401, "not_authenticated")
        assert answer.headers["www-authenticate"] == 'Bearer realm="doctriage"'
        assert "Authorization: Bearer KEY" in answer.json()["detail"]


def test_a_wrong_a_revoked_and_a_second_key_are_refused(store: Store, ask: Ask) -> None:
    revoked, other = key_of(store), key_of(store)
    store.api_keys.revoke(revoked.split("_")[1])
    for answer in (
        ask(new_key().text),
        ask("nonsense"),
        ask(revoked),
        ask(other, headers={"x-api-key": revoked}),
        ask(headers=[("authorization", f"Bearer {other}"), ("authorization", f"Bearer {revoked}")]),
    ):
        assert is_problem(answer, 401, "credentials_refused")
        assert answer.headers["www-authenticate"] == 'Bearer realm="doctriage", error="invalid_token"'
    assert ask(other).status_code == 200


def test_a_revoked_key_is_refused_at_the_next_request(store: Store, ask: Ask) -> None:
    key = key_of(store)
    assert ask(key).status_code == 200
    store.api_keys.revoke(key.split("_")[1])
    assert ask(key).status_code == 401


@pytest.mark.parametrize(
    ("scopes", "method", "missing"),
    [
        (("read",), "GET", None),
        (("read",), "POST", "submit"),
        (("read",), "DELETE", "submit"),
        (("submit",), "POST", None),
        (("submit",), "GET", "read"),
        (("admin",), "GET", None),
        (("admin",), "DELETE", None),
    ],
)
def test_looking_needs_one_scope_and_all_else_another(
    scopes: tuple[str, ...], method: str, missing: str | None, store: Store, ask: Ask
) -> None:
    answer = ask(key_of(store, scopes=scopes), method=method)
    if missing is None:
        assert (answer.status_code, answer.json()["is_admin"]) == (200, "admin" in scopes)
        return
    assert is_problem(answer, 403, "scope_missing")
    challenge = f'Bearer realm="doctriage", error="insufficient_scope", scope="{missing}"'
    assert answer.headers["www-authenticate"] == challenge


def test_a_key_may_ask_as_often_as_its_terms_say_and_others_are_not_kept_waiting(
    store: Store, ask: Ask
) -> None:
    key, other = key_of(store, requests_per_min=2), key_of(store)
    answers = [ask(key) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert is_problem(answers[2], 429, "too_many_requests")
    assert [answer.headers["ratelimit"].split(";")[1] for answer in answers] == ["r=1", "r=0", "r=0"]
    assert {answer.headers["ratelimit-policy"] for answer in answers} == {'"requests";q=2;w=60'}
    retry_after_s = int(answers[2].headers["retry-after"])
    assert 1 <= retry_after_s <= 60
    assert answers[2].headers["ratelimit"] == f'"requests";r=0;t={retry_after_s}'
    assert "retry-after" not in answers[0].headers
    assert ask(other).headers["ratelimit-policy"] == '"requests";q=600;w=60'


def test_refusals_for_want_of_a_scope_count_too(store: Store, ask: Ask) -> None:
    key = key_of(store, requests_per_min=1, scopes=("read",))
    assert [ask(key, method="POST").status_code for _ in range(2)] == [403, 429]


def test_an_address_that_shows_wrong_keys_is_told_to_wait_but_a_right_one_is_taken(store: Store) -> None:
    with served(store, failed_logins_per_min=2) as ask:
        assert [ask(new_key().text).status_code for _ in range(3)] == [401, 401, 429]
        answer = ask("nonsense")
        assert is_problem(answer, 429, "too_many_requests")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert ask(key_of(store)).status_code == 200
        assert ask().status_code == 401, "whoever shows none guesses none"


def test_a_token_is_taken_where_the_settings_name_its_issuer(store: Store, tmp_path: Path) -> None:
    jwks_file = tmp_path / "jwks.json"
    jwks_file.write_text(json.dumps(KEYS), encoding="utf-8")
    oidc = {"issuer": ISSUER, "audience": AUDIENCE, "jwks_file": jwks_file}
    with served(store, oidc=oidc, requests_per_min=4) as ask:
        assert ask(token()).json() == {
            "cost_centre": "harbour/crane",
            "is_admin": False,
            "max_priority": 5,
        }
        assert ask(token(scope="admin")).json()["is_admin"] is True
        assert ask(token(scope="admin")).json()["max_priority"] == 9
        assert is_problem(ask(token(scope="profile")), 403, "scope_missing")
        assert is_problem(ask(token()), 429, "too_many_requests")
        assert ask(token(sub="ben")).status_code == 200
        assert is_problem(ask(token(exp=1)), 401, "credentials_refused")
        assert is_problem(ask(token(cost_centre=None)), 403, "cost_centre_refused")
        assert ask(key_of(store)).status_code == 200
    with served(store, oidc={**oidc, "max_priority": 7}) as ask:
        assert ask(token()).json()["max_priority"] == 7
    with served(store) as ask:
        assert is_problem(ask(token()), 401, "credentials_refused")


def test_the_issuer_s_keys_are_fetched_once_and_unknown_ones_asked_for_now_and_then(store: Store) -> None:
    fetched: list[float] = []
    keys = {"keys": list(KEYS["keys"])}

    def show(_: Request) -> JSONResponse:
        fetched.append(time.monotonic())
        return JSONResponse(keys)

    from starlette.applications import Starlette

    with AsgiHost(Starlette(routes=[Route("/jwks", show)])) as issuer:
        oidc = {"issuer": ISSUER, "audience": AUDIENCE, "jwks_url": f"http://127.0.0.1:{issuer.port}/jwks"}
        with served(store, oidc=oidc, failed_logins_per_min=100) as ask:
            assert {ask(token()).status_code for _ in range(5)} == {200}
            assert len(fetched) == 1
            strangers = [ask(token(OTHER_RSA_KEY, kid=f"new{number}")) for number in range(5)]
            assert {answer.status_code for answer in strangers} == {401}
            assert len(fetched) <= 2
            issuer.go_down()
            assert ask(token()).status_code == 200
        with served(store, oidc=oidc) as ask:
            away = ask(token())
            assert is_problem(away, 503, "issuer_unavailable")
            assert "retry-after" in away.headers
            assert ask(key_of(store)).status_code == 200
            issuer.come_up()
            keys["keys"] = [jwk("RS256", OTHER_RSA_KEY.public_key(), "new")]
            assert ask(token(OTHER_RSA_KEY, kid="new")).status_code == 200


def test_an_open_server_answers_this_machine_and_no_page_of_the_web(store: Store) -> None:
    with served(store, is_open=True, requests_per_min=1) as ask:
        for headers in ({}, {"host": "localhost:1"}, {"host": "[::1]"}, {"origin": "http://localhost:3000"}):
            answer = ask(method="POST", headers=headers)
            assert (answer.status_code, answer.json()) == (
                200,
                {"cost_centre": "default", "is_admin": True, "max_priority": 9},
            )
        for headers in ({"host": "rebound.example"}, {"origin": "https://web.example"}, {"origin": "null"}):
            assert is_problem(ask(method="POST", headers=headers), 401, "not_authenticated")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_a_server_without_keys_may_listen_on_this_machine(host: str) -> None:
    require_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.2", "example.org", "localhost.example.org"])
def test_and_nowhere_else(host: str) -> None:
    with pytest.raises(SettingsError, match="--insecure-no-auth"):
        require_loopback(host)


@pytest.mark.parametrize(
    ("own", "other", "is_admin", "sees"),
    [
        ("team", "team", False, True),
        ("team", "team/project", False, True),
        ("team", "teamster", False, False),
        ("team", "teamster/project", False, False),
        ("team/project", "team", False, False),
        ("team/project", "team/other", False, False),
        ("team", "attic", True, True),
    ],
)
def test_a_caller_sees_its_cost_centre_and_what_is_below(
    own: str, other: str, is_admin: bool, sees: bool
) -> None:
    asking = Caller(key_id=1, cost_centre=own, scopes=frozenset({"read"}), is_admin=is_admin)
    assert asking.sees(other) is sees
    if sees:
        asking.require_cost_centre(other)
    else:
        with pytest.raises(CostCentreRefused):
            asking.require_cost_centre(other)


def test_open_documents_are_counted_by_the_key_s_own_limit_or_the_settings_(store: Store) -> None:
    access = open_access(settings_of(max_open_documents=1), store, is_open=False)
    strict, generous = (
        Caller(
            key_id=None, cost_centre="harbour", scopes=frozenset(), is_admin=False, max_open_documents=most
        )
        for most in (None, 5)
    )
    access.require_room(strict)
    enter_upload(store, Pool(store).open())
    access.require_room(generous)
    with pytest.raises(TooManyOpenDocuments):
        access.require_room(strict)
    open_to_all = open_access(settings_of(max_open_documents=1), store, is_open=True)
    open_to_all.require_room(strict)


@pytest.mark.parametrize("is_revoked", [True, False])
def test_who_follows_a_document_is_let_go_when_his_key_is_revoked(
    store: Store, monkeypatch: pytest.MonkeyPatch, is_revoked: bool
) -> None:
    monkeypatch.setattr(events, "ASKED_EVERY_S", 0.0)
    key = key_of(store)
    submission_id = Pool(store).open("harbour")
    Pool(store).add(submission_id)
    record = found(store, enter_upload(store, submission_id))
    access = open_access(settings_of(), store, is_open=False)
    asking = Request({"type": "http", "headers": [(b"x-api-key", key.encode())]})

    async def told() -> list[str]:
        following = events.events_of(store, record, events.Told(), lambda: access.still_holds(asking))
        kinds = [(await anext(following))["event"]]
        if is_revoked:
            store.api_keys.revoke(key.split("_")[1])
        else:
            store.pool.cancel(submission_id)
        return kinds + [event["event"] async for event in following]

    assert asyncio.run(told())[-1] == ("document" if is_revoked else "end")
