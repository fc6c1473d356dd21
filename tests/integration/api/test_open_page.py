"""The web page of a server that asks nobody who they are."""

from __future__ import annotations

from tests.api_server import ApiServer


def test_the_page_is_told_that_nobody_is_asked_for_a_key(server: ApiServer) -> None:
    with server.client() as client:
        assert client.get("/web/access.json").json() == {"is_open": True}
        me = client.get("/v1/me").json()
        assert (me["name"], me["is_admin"]) == ("everybody", True)
        page = client.get("/")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        for path in ("/web/style.css", "/web/js/app.js", "/web/icon.svg"):
            assert path in page.text
            assert client.get(path).status_code == 200


def test_every_module_that_a_module_asks_for_is_there(server: ApiServer) -> None:
    seen: set[str] = set()
    wanted = {"app.js"}
    with server.client() as client:
        while name := next(iter(wanted - seen), None):
            seen.add(name)
            answer = client.get(f"/web/js/{name}")
            assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
            parts = answer.text.split('"./')[1:]
            wanted |= {part.partition('"')[0] for part in parts}
    assert len(seen) > 10
