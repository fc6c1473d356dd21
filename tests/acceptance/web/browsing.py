"""Debian's Chromium at the page of a real server: whatever it complains about fails the test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

PATIENCE_MS: Final = 120_000
DESKTOP: Final = {"width": 1280, "height": 800}
PHONE: Final = {"width": 390, "height": 844}
ZOOMED: Final = {"width": 640, "height": 400}
"""What is left of the desktop at 200 %."""

WORST: Final = ("serious", "critical")


@dataclass(slots=True)
class Watched:
    """A page, what it complained of, and the origins that it asked."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    origins: set[str] = field(default_factory=set)


@contextmanager
def browser() -> Iterator[Browser]:
    """Fails where there is no Chromium: a page that nobody has looked at is not tested."""
    path = shutil.which("chromium")
    if path is None:
        pytest.fail("chromium is missing; install Debian's package of this name, or run `make test-packages`")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path)
        try:
            yield launched
        finally:
            launched.close()


@contextmanager
def watched(browser: Browser, url: str, **options: Any) -> Iterator[Watched]:
    """A tab of its own. After the block it must not have complained, nor asked another server."""
    context: BrowserContext = browser.new_context(
        base_url=url, **{"viewport": DESKTOP, "reduced_motion": "reduce", **options}
    )
    context.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    tab = Watched(context.new_page())
    tab.page.on(
        "console",
        lambda message: message.type in ("error", "warning") and tab.complaints.append(message.text),
    )
    tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.page.on("request", lambda request: tab.origins.add(origin_of(request.url)))
    try:
        yield tab
        assert tab.complaints == []
        assert tab.origins <= {origin_of(url)}
    finally:
        context.close()


def origin_of(url: str) -> str:
    parts = urlsplit(url.removeprefix("blob:"))
    return f"{parts.scheme}://{parts.netloc}"


def sign_in(page: Page, key: str) -> None:
    page.goto("/")
    page.get_by_label("API key").fill(key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Documents", exact=True)).to_be_focused()


def findings(page: Page) -> list[str]:
    """What axe finds serious or critical, each with the elements concerned."""
    violations = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in violations
        if one["impact"] in WORST
        for node in one["nodes"]
    ]


def is_wider_than_the_window(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))
