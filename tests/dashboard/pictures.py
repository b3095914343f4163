"""The pictures of the page in the docs: `python -m tests.dashboard.pictures` draws them again."""

import random
import runpy
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize

from spillover.client import Client
from tests.dashboard.browser import drawn, open_browser, open_page
from tests.dashboard.serving import new_service, serving

IMAGES = Path(__file__).parent.parent.parent / "docs" / "images"
DAYS = 54
TALL: ViewportSize = {"width": 1400, "height": 1900}


def whole_decision(page: Page) -> None:
    pass


def report_form(page: Page) -> None:
    page.locator(".report summary").nth(1).click()
    page.locator(".value-input:visible").first.fill("0.42")
    page.locator("#pending").evaluate("(part) => part.scrollIntoView()")


def changes_and_graph(page: Page) -> None:
    page.set_viewport_size(TALL)
    page.locator("#changes").evaluate("(part) => part.scrollIntoView()")


def decision_on_a_phone(page: Page) -> None:
    page.locator("#decide").evaluate("(part) => part.scrollIntoView()")


PICTURES: dict[str, tuple[dict[str, bool], Callable[[Page], None]]] = {
    "page-decision": ({}, whole_decision),
    "page-pending": ({}, report_form),
    "page-graph": ({}, changes_and_graph),
    "page-dark-400": ({"phone": True, "dark": True}, decision_on_a_phone),
}


def main() -> None:
    shop = runpy.run_path(str(Path(__file__).parent.parent.parent / "examples" / "shop" / "play.py"))
    with tempfile.TemporaryDirectory() as folder, new_service(Path(folder)) as service, serving(service) as url:
        with Client(url) as client:
            stream = client.create_stream("shop", arms=list(shop["OWN"]), budget=shop["BUDGET"])
            world = shop["World"](random.Random(1))
            for day in range(DAYS):  # and the story stops in the middle
                shop["receive"](stream, world, day)
                shop["give_up"](stream, shop["GIVEN_UP"])
                shop["decide"](stream, world, day)
        with open_browser() as browser:
            for name in PICTURES:
                take(browser, f"{url}/streams/shop", name)


def take(browser: Browser, url: str, name: str) -> None:
    options, look = PICTURES[name]
    with open_page(browser, url, device_scale_factor=1.5 if "phone" in options else 1, **options) as page:
        drawn(page)
        look(page)
        page.wait_for_timeout(500)
        path = IMAGES / f"{name}.png"
        page.screenshot(path=path)
    with Image.open(path) as picture:  # 256 colours are enough, and a third of the size
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
