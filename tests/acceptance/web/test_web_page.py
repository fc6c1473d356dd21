"""The web page of a real ``doctriage serve``, as somebody uses it: from a file to a reviewed page and its bill."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Locator, Page, Position, expect

from pipeline.exports.formats import FORMATS
from tests.acceptance.web.browsing import (
    PHONE,
    ZOOMED,
    findings,
    is_wider_than_the_window,
    sign_in,
    watched,
)
from tests.acceptance.web.conftest import SAMPLES, Site


def test_a_document_is_sent_watched_looked_at_overruled_and_billed(site: Site, browser: Browser) -> None:
    with watched(browser, site.url) as tab:
        page = tab.page
        sign_in(page, site.key)
        page.locator("#files").set_input_files(SAMPLES / "mixed.pdf")
        row = page.locator(".document", has_text="mixed.pdf")
        expect(row.get_by_role("progressbar")).to_be_visible()
        expect(row).to_contain_text(re.compile(r"[12] of 3 pages"))
        expect(row).to_contain_text("finished")
        expect(row.get_by_role("progressbar")).to_have_count(0)
        assert "Styrene-Acrylonitrile" in saved(page, row, "Markdown").read_text(encoding="utf-8")
        row.get_by_role("link", name="mixed.pdf").click()
        expect(page.get_by_role("heading", name="mixed.pdf")).to_be_focused()
        expect(page.locator("#document-cost")).to_contain_text("USD")
        upload_id = page.url.rpartition("/")[2]
        shows_the_boxes_of(page, site.ask(f"/v1/documents/{upload_id}/pages/1"))
        overrule(page)
        review = site.ask(f"/v1/documents/{upload_id}/pages/1/review")["review"]
        assert (review["needs_vlm"], review["classes"], review["remark"]) == (False, ["table"], "plain rows")
        page.get_by_role("link", name="Reviews").click()
        expect(page.locator(".card .figure")).to_contain_text(re.compile(r"1 of \d+ page"))
        approve_the_next(page, f"/documents/{upload_id}/pages/3")
        page.get_by_role("link", name="Reviews").click()
        page.get_by_role("link", name="Reviewed by you").click()
        expect(page.locator(".review-row")).to_contain_text(["overruled", "approved"])
        page.get_by_role("link", name="Chargeback").click()
        shows_the_bill(page, site.ask("/v1/chargeback?by=team"))


def saved(page: Page, row: Locator, label: str) -> Path:
    row.locator("summary").click()
    with page.expect_download() as download:
        row.get_by_role("button", name=label).click()
    assert download.value.suggested_filename == "mixed.pdf.md"
    return download.value.path()


def approve_the_next(page: Page, address: str) -> None:
    page.get_by_role("button", name="Review the next page").click()
    expect(page).to_have_url(re.compile(f"{re.escape(address)}[?]review=escalated$"))
    expect(page.get_by_role("heading", name="Page 3")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Next page to review")).to_be_focused()
    page.keyboard.press("n")
    expect(page.get_by_text("All of these pages are reviewed.")).to_be_visible()


def shows_the_boxes_of(page: Page, read: dict[str, Any]) -> None:
    """The picture lies under the boxes, and boxes and text find each other."""
    picture = page.get_by_role("img", name="Page 1 of mixed.pdf")
    expect(picture).to_have_attribute("src", re.compile("^blob:"))
    width, height = picture.evaluate(
        "image => image.decode().then(() => [image.naturalWidth, image.naturalHeight])"
    )
    assert width / height == pytest.approx(read["width_px"] / read["height_px"], rel=0.01)
    assert len(read["lines"]) > 10
    expect(page.locator(".layer.k-line rect")).to_have_count(len(read["lines"]))
    place = next(number for number, line in enumerate(read["lines"]) if number > 2 and len(line["text"]) > 20)
    line = page.locator(".line").nth(place)
    line.hover()
    assert box_of(page.locator(".boxes .marked")) == pytest.approx(read["lines"][place]["box"], abs=1)
    page.mouse.move(0, 0)
    word = read["lines"][place]["words"][0]
    picture.hover(position=at(picture, word["box"], read["width_px"]), force=True)
    expect(page.locator(".hint")).to_contain_text(word["text"])
    page.locator(".layer.k-line rect").nth(place).click(force=True)
    expect(line).to_be_focused()
    page.get_by_role("button", name=re.compile("^lines")).click()
    expect(page.locator(".layer.k-line")).to_have_attribute("visibility", "hidden")
    for reason in read["triage"]["reasons"]:
        expect(page.locator(".chip.reason", has_text=reason["signal"].replace("_", " "))).to_be_visible()
    expect(page.locator(".notice.warn")).to_contain_text(read["degraded"]["code"])


def at(picture: Locator, box: list[float], width_px: int) -> Position:
    """The middle of a box of the page, in the picture as it is shown."""
    shown = picture.bounding_box()
    assert shown is not None
    scale = shown["width"] / width_px
    return {"x": (box[0] + box[2]) / 2 * scale, "y": (box[1] + box[3]) / 2 * scale}


def box_of(rect: Locator) -> list[float]:
    left, top, width, height = (
        float(rect.get_attribute(name) or "nan") for name in ("x", "y", "width", "height")
    )
    return [left, top, left + width, top + height]


def overrule(page: Page) -> None:
    page.locator(".review summary").click()
    page.get_by_label("table", exact=True).check()
    page.get_by_label("Remark").fill("plain rows")
    page.get_by_role("button", name=re.compile("^Overrule")).click()
    expect(page.get_by_role("button", name=re.compile("^Overrule"))).to_have_attribute("aria-pressed", "true")


def shows_the_bill(page: Page, statement: dict[str, Any]) -> None:
    [line] = [line for line in statement["lines"] if line["team"] == "harbour"]
    row = page.get_by_role("row", name=re.compile("^harbour"))
    expect(row.get_by_role("cell").first).to_have_text(f"{line['pages']:,}")
    expect(page.get_by_role("img", name=re.compile("^Cost by team"))).to_be_visible()
    page.get_by_role("link", name="Day").click()
    expect(page.get_by_role("img", name=re.compile("^Cost by day"))).to_be_visible()


def test_nobody_is_offered_a_priority_that_his_key_may_not_name(site: Site, browser: Browser) -> None:
    urgent = ["9, first", "8", "7", "6"]
    for key, offered in (
        (site.key, ["usual (5)", *urgent, "4", "3", "2", "1", "0, last"]),
        (site.sender, ["usual (3)", "2", "1", "0, last"]),
    ):
        with watched(browser, site.url) as tab:
            sign_in(tab.page, key)
            tab.page.locator(".options summary").first.click()
            expect(tab.page.get_by_label("Priority").locator("option")).to_have_text(offered)


def test_every_format_is_offered_and_saved_the_documents_own_first(
    site: Site, browser: Browser, table: str
) -> None:
    with watched(browser, site.url) as tab:
        page = tab.page
        sign_in(page, site.key)
        page.goto(f"/#/documents/{table}")
        expect(page.get_by_role("heading", name="ruled_table.pdf")).to_be_focused()
        menu = page.locator(".head .menu")
        opener = menu.locator("summary")
        tab_to(page, opener)
        page.keyboard.press("Enter")
        own = menu.get_by_role("group", name="Asked for").get_by_role("button")
        others = menu.get_by_role("group", name="Other formats").get_by_role("button")
        assert own.all_inner_texts() == ["Markdown", "JSON"]
        assert len(others.all_inner_texts()) == len(FORMATS) - 2
        page.keyboard.press("Escape")
        expect(own.first).to_be_hidden()
        expect(opener).to_be_focused()
        page.keyboard.press("Enter")
        tab_to(page, others.filter(has_text="Searchable PDF"))
        with page.expect_download() as download:
            page.keyboard.press("Enter")
        assert download.value.suggested_filename == "ruled_table.pdf.searchable.pdf"
        assert download.value.path().read_bytes().startswith(b"%PDF-")
        expect(page.locator("#says")).to_have_text("Searchable PDF of ruled_table.pdf is saved")
        expect(opener).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_anybody_out_on_any_view(site: Site, browser: Browser, table: str, scheme: str) -> None:
    with watched(browser, site.url, color_scheme=scheme) as tab:
        page = tab.page
        page.goto("/")
        expect(page.get_by_label("API key")).to_be_focused()
        assert findings(page) == []
        sign_in(page, site.key)
        for open_view in views(page, table):
            open_view()
            assert findings(page) == []


@pytest.mark.parametrize("window", [PHONE, ZOOMED], ids=["phone", "zoomed"])
def test_nothing_is_beside_the_window(
    site: Site, browser: Browser, table: str, window: dict[str, int]
) -> None:
    with watched(browser, site.url, viewport=window) as tab:
        page = tab.page
        sign_in(page, site.key)
        for open_view in views(page, table):
            open_view()
            assert not is_wider_than_the_window(page)


def views(page: Page, upload_id: str) -> list[Any]:
    def documents() -> None:
        page.goto("/#/documents")
        expect(page.locator(".document").first).to_be_visible()
        page.locator(".options summary").first.click()

    def downloads() -> None:
        page.locator(f"[data-id='{upload_id}'] summary").click()
        expect(page.get_by_role("button", name="Docling JSON")).to_be_visible()

    def document() -> None:
        page.goto(f"/#/documents/{upload_id}")
        expect(page.locator(".sheet img")).to_have_attribute("src", re.compile("^blob:"))
        page.locator(".review summary").click()

    def menu() -> None:
        page.locator(".head .menu summary").click()
        expect(page.get_by_role("button", name="Docling JSON")).to_be_visible()

    def tab(name: str) -> Any:
        def choose() -> None:
            page.get_by_role("tab", name=name).click()
            expect(page.locator(".tab-panel")).not_to_have_text("Loading…")

        return choose

    def keys() -> None:
        page.get_by_role("button", name="Keys").click()
        expect(page.get_by_role("dialog")).to_be_visible()

    def reviews() -> None:
        page.keyboard.press("Escape")
        page.goto("/#/reviews")
        expect(page.locator(".review-row").first).to_be_visible()

    def chargeback() -> None:
        page.goto("/#/chargeback")
        expect(page.get_by_role("table").first).to_be_visible()

    return [
        documents,
        downloads,
        document,
        menu,
        tab("Markdown"),
        tab("Tables"),
        tab("Attempts"),
        keys,
        reviews,
        chargeback,
    ]


def test_everything_is_done_with_the_keyboard_alone(site: Site, browser: Browser, table: str) -> None:
    with watched(browser, site.url) as tab:
        page = tab.page
        sign_in(page, site.key)
        page.reload()
        expect(page.locator(".document").first).to_be_visible()
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Documents", exact=True)).to_be_focused()
        tab_to(page, page.locator(f"[data-id='{table}'] a"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="ruled_table.pdf")).to_be_focused()
        first = page.locator(".line").first
        tab_to(page, first)
        before = box_of(page.locator(".boxes .marked"))
        page.keyboard.press("ArrowDown")
        expect(page.locator(".line").nth(1)).to_be_focused()
        assert box_of(page.locator(".boxes .marked")) != before
        page.keyboard.press("+")
        expect(page.get_by_label("Zoom")).to_have_text("125 %")
        page.keyboard.press("a")
        expect(page.get_by_role("button", name=re.compile("^Approve"))).to_have_attribute(
            "aria-pressed", "true"
        )
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert site.ask(f"/v1/documents/{table}/pages/1/review")["review"]["needs_vlm"] is True


def tab_to(page: Page, wanted: Locator) -> None:
    """Every stop on the way shows that it has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        stop = page.evaluate(
            """() => {
              const stop = document.activeElement;
              const shown = stop.matches("input[type=file]") ? stop.closest(".zone") : stop;
              return [stop.outerHTML.slice(0, 120), getComputedStyle(shown).outlineStyle];
            }"""
        )
        assert stop[1] != "none", stop[0]
        if wanted.evaluate("element => element === document.activeElement"):
            return
    pytest.fail("the tab key does not come there")


def test_the_files_of_the_page_run_nothing_but_themselves(site: Site) -> None:
    answer = httpx2.get(f"{site.url}/")
    policy = answer.headers["content-security-policy"]
    for rule in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"):
        assert rule in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    again = httpx2.get(f"{site.url}/", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for path in (
        "/web/none.js",
        "/web/js/",
        "/web/__init__.py",
        "/web/%2e%2e/api/app.py",
        "/web/..%2fapi%2fapp.py",
    ):
        missing = httpx2.get(site.url + path)
        assert missing.status_code == 404
        assert missing.headers["content-type"] == "application/problem+json"
