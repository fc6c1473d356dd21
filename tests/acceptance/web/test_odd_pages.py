"""What the web page shows of documents, pages and refusals that are not as they should be."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Route, expect

from tests.acceptance.web.browsing import sign_in, watched
from tests.acceptance.web.conftest import HOSTILE_NAME, HOSTILE_TEXT, SAMPLES, Site


def test_what_a_document_says_is_shown_and_never_run(site: Site, browser: Browser, hostile: str) -> None:
    with watched(browser, site.url) as tab:
        page = tab.page
        sign_in(page, site.key)
        expect(page.locator(".document", has_text=HOSTILE_NAME)).to_be_visible()
        page.goto(f"/#/documents/{hostile}")
        expect(page.get_by_role("heading", name=HOSTILE_NAME)).to_be_visible()
        expect(page.locator(".line").first).to_have_text(HOSTILE_TEXT)
        page.get_by_role("tab", name="Markdown").click()
        expect(page.locator(".prose")).to_contain_text("<script>window.hacked=1</script>")
        assert page.locator(".tab-panel :is(script, img)").count() == 0
        assert page.evaluate("window.hacked") is None


def test_what_people_write_is_shown_and_never_run(site: Site, browser: Browser, table: str) -> None:
    """Names of projects, remarks of reviews, and what went wrong."""
    hurtful = "<img src=x onerror=window.hacked=1>"
    project = f"{hurtful}/dock"
    upload_id = site.send(
        hurtful + ".pdf",
        (SAMPLES / "blank_page.pdf").read_bytes(),
        cost_centre=project,
        metadata=f'{{"{hurtful}":1}}',
    )
    broken = site.send(hurtful + " broken.pdf", b"%PDF-1.7 nonsense")
    said = {"reviewer": hurtful, "needs_vlm": True, "classes": [], "remark": hurtful}
    with watched(browser, site.url) as tab:
        page = tab.page
        sign_in(page, site.key)
        page.route(
            "**/pages/1/review",
            lambda route: route.fulfill(
                json={"review": None, "others": [{**said, "reviewed_at": "2026-11-30T10:00:00Z"}]}
            ),
        )
        for path, shown in (
            ("/#/documents", project),
            (f"/#/documents/{upload_id}", project),
            (f"/#/documents/{upload_id}", f"{hurtful} said"),
            (f"/#/documents/{broken}", "Damaged PDF, or one without pages"),
            ("/#/reviews", hurtful),
            ("/#/chargeback", hurtful),
        ):
            page.goto(path)
            expect(page.locator("body")).to_contain_text(shown)
            assert page.locator("img[src=x]").count() == 0
            assert page.evaluate("window.hacked") is None
            assert site.key not in page.url


def test_events_go_on_where_they_broke_off(site: Site, browser: Browser, table: str) -> None:
    document = site.ask(f"/v1/documents/{table}")
    reading = {**document, "state": "reading", "finished_at": None}
    asked: list[str | None] = []

    def events(route: Route) -> None:
        asked.append(route.request.headers.get("last-event-id"))
        ends = len(asked) > 1
        content = json.dumps(document if ends else reading)
        name, number = ("end", "end") if ends else ("document", "reading;1")
        route.fulfill(
            content_type="text/event-stream",
            body=f"id: {number}\r\nevent: {name}\r\ndata: {content}\r\n\r\n: so\n\n",
        )

    def now(route: Route) -> None:
        route.fulfill(json=reading if len(asked) < 2 else document)

    with watched(browser, site.url) as tab:
        page = tab.page
        sign_in(page, site.key)
        page.route(f"**/v1/documents/{table}/events", events)
        page.route(
            f"**/v1/documents/{table}",
            lambda route: route.fulfill(json=reading if len(asked) < 2 else document),
        )
        page.goto(f"/#/documents/{table}")
        expect(page.locator("#document-state")).to_contain_text("finished")
        assert asked == [None, "reading;1"]


def shown_as(page: Page, site: Site, upload_id: str, **changes: Any) -> None:
    """The document's page, as it would be with these changes."""
    read = {**site.ask(f"/v1/documents/{upload_id}/pages/1"), **changes}
    page.route(f"**/v1/documents/{upload_id}/pages/1", lambda route: route.fulfill(json=read))
    page.goto(f"/#/documents/{upload_id}")
    expect(page.get_by_role("heading", name="Page 1")).to_be_visible()


def test_a_page_that_failed_says_why(site: Site, browser: Browser, table: str) -> None:
    nothing = dict.fromkeys(
        ("route", "text", "markdown", "triage", "width_px", "height_px", "dpi", "confidence")
    )
    error = {"code": "ocr_timed_out", "message": "took longer than 60 s; try again"}
    with watched(browser, site.url) as tab:
        page = tab.page
        sign_in(page, site.key)
        empty: dict[str, Any] = {"lines": [], "blocks": [], "regions": [], "tables": [], "signals": []}
        shown_as(page, site, table, **nothing, **empty, state="failed", error=error)
        expect(page.get_by_role("alert")).to_contain_text("Took longer than 60 s; try again")
        expect(page.get_by_role("alert")).to_contain_text("ocr_timed_out")
        expect(page.get_by_role("button", name=re.compile("^Approve"))).to_have_count(0)
        for name in ("Text", "Markdown", "Tables", "Attempts"):
            page.get_by_role("tab", name=name).click()
            expect(page.locator(".tab-panel")).not_to_be_empty()


def test_a_page_of_the_model_shows_its_text_first_and_what_each_call_took(
    site: Site, browser: Browser, table: str
) -> None:
    call = {
        "attempt": 1,
        "request_id": "r1",
        "model_id": "qwen2.5-vl-7b-fp8",
        "verdict": "lost_words",
        "message": None,
        "predicted_visual_tokens": 640,
        "prompt_tokens": 1_876,
        "cached_tokens": 0,
        "completion_tokens": 102,
        "elapsed_s": 2.5,
    }
    calls = [call, {**call, "attempt": 2, "verdict": "accepted"}]
    vlm = {"model_id": "qwen", "language": "en", "is_blank": False, "removed": []}
    with watched(browser, site.url) as tab:
        page = tab.page
        sign_in(page, site.key)
        shown_as(
            page, site, table, route="vlm", degraded=None, vlm=vlm, text="As the model has it", attempts=calls
        )
        panel = page.locator(".tab-panel")
        expect(panel).to_contain_text(re.compile("^Written by qwenAs the model has itLines and boxes"))
        expect(page.locator(".notice.warn")).to_have_count(0)
        page.get_by_role("tab", name="Attempts").click()
        rows = page.get_by_role("table", name="Calls to the VLM").get_by_role("row")
        expect(rows.nth(1)).to_have_text(re.compile("1qwen2.5-vl-7b-fp8lost words6401,8760102"))
        expect(rows.nth(2)).to_contain_text("accepted")
        place = page.get_by_role("group", name="Calls to the VLM")
        assert place.evaluate("place => place.scrollWidth <= place.clientWidth")
        [entry] = site.ask(f"/v1/documents/{table}/pages/1")["booked"]
        booked = page.get_by_role("table", name="Entries of the ledger about this page")
        expect(booked.get_by_role("row").nth(1)).to_contain_text(f"{entry['entry_id']}cpu page")


def test_a_wrong_key_is_refused_with_what_to_do_and_kept_nowhere(site: Site, browser: Browser) -> None:
    with watched(browser, site.url) as tab:
        page = tab.page
        page.goto("/")
        page.get_by_label("API key").fill("dt_wrong_key")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text(re.compile("key", re.IGNORECASE))
        assert page.evaluate("[sessionStorage.length, localStorage.length]") == [0, 0]
        assert "dt_" not in page.url
        [complaint] = tab.complaints
        assert "401" in complaint
        tab.complaints.clear()
        page.get_by_label("API key").fill(site.key)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Documents", exact=True)).to_be_focused()
        assert page.evaluate("localStorage.length") == 0
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("API key")).to_be_focused()
        assert page.evaluate("sessionStorage.length") == 0


def test_a_refused_upload_says_why_and_what_to_do(site: Site, browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "note.pdf"
    path.write_bytes(b"not a PDF")
    with watched(browser, site.url) as tab:
        page = tab.page
        sign_in(page, site.reader)
        page.locator("#files").set_input_files(path)
        expect(page.locator(".sending").get_by_role("alert")).to_contain_text("scope")
        expect(page.get_by_text("all cost centres")).to_have_count(0)
        tab.complaints.clear()


def test_a_file_that_is_dropped_and_cannot_be_read_says_what_to_do(site: Site, browser: Browser) -> None:
    with watched(browser, site.url) as tab:
        page = tab.page
        sign_in(page, site.key)
        dropped = page.evaluate_handle(
            """() => {
              const dropped = new DataTransfer();
              dropped.items.add(new File(["%PDF-1.7 and no more"], "broken.pdf"));
              return dropped;
            }"""
        )
        page.dispatch_event(".zone", "drop", {"dataTransfer": dropped})
        link = page.get_by_role("link", name="broken.pdf", exact=True)
        row = page.locator(".document").filter(has=link)
        expect(row).to_contain_text("failed")
        expect(row.locator(".error-text")).to_have_text(re.compile("^damaged PDF.*submit again$"))
        link.click()
        expect(page.locator(".notice.bad")).to_contain_text(re.compile("^Damaged PDF.*submit again"))


def test_a_picture_that_cannot_be_drawn_leaves_no_empty_sheet(site: Site, browser: Browser) -> None:
    cut = site.send("cut.jpg", (SAMPLES / "receipt_photo.jpg").read_bytes()[:5_000])
    with watched(browser, site.url) as tab:
        page = tab.page
        sign_in(page, site.key)
        page.goto(f"/#/documents/{cut}")
        expect(page.locator(".scroller").get_by_role("alert")).to_contain_text("Damaged or incomplete image")
        expect(page.locator(".sheet")).to_be_hidden()
        tab.complaints.clear()


def test_a_page_that_was_forced_to_the_model_is_no_word_of_triage(
    site: Site, browser: Browser, table: str
) -> None:
    forced = {"signal": "forced_vlm", "measured": 1.0, "threshold": 1.0}
    with watched(browser, site.url) as tab:
        page = tab.page
        sign_in(page, site.key)
        triage = {"escalate": True, "policy_version": "p", "reasons": [forced]}
        shown_as(page, site, table, route="vlm", degraded=None, triage=triage)
        review = page.locator(".review")
        expect(review).to_contain_text("nothing that triage measured")
        expect(review).not_to_contain_text("Triage says")


def test_a_span_that_ends_before_it_begins_is_not_asked_for(site: Site, browser: Browser) -> None:
    with watched(browser, site.url) as tab:
        page = tab.page
        sign_in(page, site.key)
        page.goto("/#/chargeback?from=2026-11-01")
        page.get_by_label("From").fill("2026-11-20")
        page.get_by_label("To, included").fill("2026-11-19")
        expect(page.locator("#to:invalid")).to_have_count(1)
        page.get_by_role("button", name="Show").click()
        assert page.url.endswith("/#/chargeback?from=2026-11-01")
        page.get_by_label("To, included").fill("2026-11-20")
        page.get_by_role("button", name="Show").click()
        expect(page).to_have_url(re.compile("from=2026-11-20&to=2026-11-20$"))


def test_a_document_is_cancelled_when_somebody_is_sure(site: Site, browser: Browser) -> None:
    with watched(browser, site.url) as tab:
        page = tab.page
        sign_in(page, site.key)
        page.locator("#files").set_input_files(SAMPLES / "stamped_will.jpg")
        row = page.locator(".document", has_text="stamped_will.jpg")
        row.get_by_role("button", name="Cancel").click()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(row.get_by_role("button", name="Cancel")).to_be_focused()
        page.keyboard.press("Enter")
        page.get_by_role("dialog").get_by_role("button", name="Cancel it").click()
        expect(row).to_contain_text("cancelled")
