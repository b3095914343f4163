"""A real browser, and a page of which every error is noticed."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.waiting import HANG

PATIENCE = 1_000 * HANG  # milliseconds; on a busy machine a browser can be slow
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDE, PHONE = {"width": 1400, "height": 900}, {"width": 400, "height": 800}
# plotly.js brings the styles of its maps along as it is loaded. They are refused, and no map is drawn here.
MAPS = "style-src-elem from plotly.min.js"
LISTEN = """document.addEventListener("securitypolicyviolation", (event) => {
  window.noticed = [...(window.noticed ?? []), `${event.violatedDirective} from ${event.sourceFile.split("/").pop()}`];
});"""

expect.set_options(timeout=PATIENCE)


@contextmanager
def open_browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--disable-gpu", *as_root])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def open_page(browser: Browser, url: str, *, phone: bool = False, dark: bool = False, **options: Any) -> Iterator[Page]:
    """A page in a context of its own; errors in its scripts and requests that were blocked fail the test."""
    size, scheme = PHONE if phone else WIDE, "dark" if dark else "light"
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce", **options)  # type: ignore[arg-type]
    errors: list[str] = []
    try:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.add_init_script(LISTEN)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: errors.append(f"a script asked: {dialog.message}"))
        page.goto(url)
        yield page
        assert errors == []
        assert set(page.evaluate("window.noticed ?? []")) <= {MAPS}
        assert all(request.startswith(origin(url)) for request in loaded(page)), "something came from outside"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the screen"
    finally:
        context.close()


def origin(url: str) -> str:
    return "/".join(url.split("/")[:3])


def loaded(page: Page) -> list[str]:
    found: list[str] = page.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
    return found


def accessible(page: Page) -> None:
    """No violation of the rules that axe checks."""
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def drawn(page: Page) -> None:
    """Wait for the charts."""
    expect(page.locator("#payoff .main-svg").first).to_be_attached()


def reach(page: Page, target: Locator, *, back: bool = False) -> None:
    """Move the focus to an element by the keyboard alone; where it is, must be seen."""
    for _ in range(300):
        page.keyboard.press("Shift+Tab" if back else "Tab")
        if target.evaluate("(element) => element === document.activeElement"):
            break
    else:
        raise AssertionError(f"the keyboard does not lead to {target}")
    outline = target.evaluate("(element) => getComputedStyle(element).outlineStyle")
    assert outline != "none", "the focus cannot be seen"


def press(page: Page, target: Locator, key: str = "Enter", *, back: bool = False) -> None:
    """Reach a button or a summary by the keyboard, and press a key."""
    reach(page, target, back=back)
    page.keyboard.press(key)
