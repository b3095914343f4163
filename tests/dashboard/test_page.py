"""The page in a real browser: what a person does in a day, by mouse and by keyboard, on a wide screen and a phone."""

from contextlib import ExitStack

import pytest
from playwright.sync_api import expect

from spillover.service import Service
from tests.dashboard.browser import accessible, drawn, open_page, press, reach
from tests.dashboard.serving import new_service, serving

HOSTILE = "<script>alert(1)</script>"


def test_a_round_by_mouse(browser, url, service: Service) -> None:
    """Find the stream, decide, say that something else was done, report in parts, correct, give up on a round."""
    with open_page(browser, url) as page:
        page.get_by_label("Search by name").fill("chan")
        expect(page.locator("#count")).to_have_text("1 of 1 stream")
        accessible(page)
        page.get_by_role("link", name="channels").click()
        expect(page.get_by_role("heading", name="What to choose next")).to_be_visible()
        page.get_by_text("Arms that are not available").click()
        page.get_by_role("group", name="Not available").get_by_label("radio").check()
        page.get_by_role("button", name="Decide this round").click()
        expect(page.get_by_role("heading", name="A decision waits")).to_be_visible()
        assert service.decision("channels", "2026-10-17").event.unavailable == ("radio",)
        page.get_by_text("Something else was done").first.click()
        done = page.get_by_role("group", name="What was done")
        for arm in service.decision("channels", "2026-10-17").event.chosen:
            done.get_by_label(arm).uncheck()
        done.get_by_label("radio").check()
        page.get_by_role("button", name="Record what was done").click()
        expect(page.get_by_role("heading", name="What to choose next")).to_be_visible()
        card = page.locator(".pending-card", has_text="2026-10-17")
        card.get_by_text("Report outcomes").click()
        card.get_by_label("Own reward (z) of radio", exact=True).fill("1.5")
        card.get_by_label("Outcome (y) of radio", exact=True).fill("0.5")
        card.get_by_role("button", name="Record the outcomes").click()
        expect(card.get_by_role("alert")).to_contain_text("must be a number from 0 to 1")
        expect(card.get_by_label("Own reward (z) of radio", exact=True)).to_have_value("1.5")
        card.get_by_label("Own reward (z) of radio", exact=True).fill("0.4")
        card.get_by_role("button", name="Record the outcomes").click()
        expect(card.get_by_text("3 values missing")).to_be_visible()
        card.get_by_role("button", name="Correct Outcome (y) of radio").click()
        dialog = page.get_by_role("dialog", name="Correct an outcome")
        expect(dialog.get_by_role("listitem")).to_contain_text("z = 0.4, y = 0.5")
        dialog.get_by_label("Outcome (y)").fill("0.45")
        dialog.get_by_label("Why").fill("a late return")
        dialog.get_by_role("button", name="Record the correction").click()
        expect(
            page.locator(".entry", has_text="Corrected round 2026-10-17, radio, revision 2: y = 0.45").first
        ).to_be_visible()
        card.locator(".expire summary").click()
        card.get_by_role("button", name="Nothing more will come").click()
        expect(card).to_have_count(0)
        decided = page.locator(".entry", has_text="Decided round 2026-10-17")
        decided.get_by_text("Reasons as they were then").click()
        expect(decided.get_by_text("as it was decided")).to_be_visible()
        drawn(page)
        accessible(page)
    last = service.state("channels")["rounds"][-1]
    assert (last["round"], last["how"], last["status"]) == ("2026-10-17", "overridden", "expired")
    assert last["chosen"] == ["radio"]
    assert last["outcomes"]["radio"] == {"z": 0.4, "y": 0.45, "revision": 2}


def test_a_round_by_keyboard_on_a_phone_in_the_dark(browser, url, service: Service) -> None:
    """Create a stream with a hostile name, decide, carry out, report; then decide and cancel. No mouse."""
    name = "<img src=x onerror=alert(1)>"
    with open_page(browser, url, phone=True, dark=True) as page:
        form = page.locator("#create-form")
        reach(page, form.get_by_label("Name of the stream"))
        page.keyboard.type(name)
        reach(page, form.get_by_label("Arms, one per line"))
        page.keyboard.type(f"{HOSTILE}\n%{{x}} $a^2$\nمرحبا")
        press(page, form.get_by_role("button", name="Create the stream"))
        expect(page.get_by_role("heading", name=name)).to_be_visible()
        reach(page, page.get_by_label("Round to decide"))
        page.keyboard.type("1")
        page.keyboard.press("Enter")
        expect(page.locator(".statement")).to_be_focused()
        first = service.decision(name, 1).event.chosen
        press(page, page.get_by_role("button", name="Done as issued"))
        expect(page.get_by_label("Round to decide")).to_have_value("2")
        card = page.locator(".pending-card")
        press(page, card.locator(".report summary"), "Space")
        reach(page, card.get_by_label(f"Own reward (z) of {first[0]}", exact=True))
        page.keyboard.type("0.5")
        page.keyboard.press("Enter")
        expect(page.locator("#said")).to_contain_text("1 outcome of round 1 recorded")
        reach(page, page.get_by_label("Round to decide"), back=True)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="A decision waits")).to_be_visible()
        press(page, page.get_by_text("The round did not take place"))
        press(page, page.get_by_role("button", name="Cancel the round"))
        expect(page.get_by_label("Round to decide")).to_have_value("3")
        expect(page.locator(".entry", has_text="Cancelled round 2").first).to_be_visible()
        for arm in first:
            expect(page.locator(".entry", has_text="Decided round 1")).to_contain_text(arm)
        accessible(page)
    assert service.state(name)["rounds"][0]["outcomes"][first[0]]["z"] == 0.5
    assert [line["status"] for line in service.state(name)["rounds"]] == ["pending", "cancelled"]


@pytest.mark.long
def test_two_tabs(browser, tmp_path) -> None:
    """What one does the other sees, and the second of two who decide differently is told so."""
    with (
        new_service(tmp_path) as service,
        serving(service) as url,
        open_page(browser, new_shop(service, url)) as page,
        open_page(browser, f"{url}/streams/shop") as other,
    ):
        for tab in (page, other):
            tab.get_by_label("Round to decide").fill("2026-10-12")
        other.get_by_text("Arms that are not available").click()
        other.get_by_role("group", name="Not available").get_by_label("c").check()
        page.get_by_role("button", name="Decide this round").click()
        expect(other.get_by_role("heading", name="A decision waits")).to_be_visible()
        other.get_by_role("button", name="The next round").click()
        other.get_by_role("button", name="Decide this round").click()
        expect(other.locator("#decide-form .problem")).to_contain_text("was decided with other unavailable arms")
        expect(other.get_by_label("Round to decide")).to_have_value("2026-10-12")
        page.get_by_role("button", name="Done as issued").click()
        expect(other.locator(".pending-card")).to_be_visible()


@pytest.mark.long
def test_a_server_that_is_restarted(browser, tmp_path) -> None:
    """The page says that the server is away, keeps what was typed, and goes on by itself."""
    with ExitStack() as stack:
        service = stack.enter_context(new_service(tmp_path))
        first = ExitStack()
        stack.callback(first.close)
        url = first.enter_context(serving(service))
        page = stack.enter_context(open_page(browser, new_shop(service, url)))
        service.execute("shop", 1, ["a"])
        page.locator(".report summary").click()
        page.get_by_label("Own reward (z) of a", exact=True).fill("0.25")
        page.get_by_label("Round to decide").fill("7")
        first.close()
        expect(page.get_by_role("alert").filter(has_text="What you typed is kept")).to_be_visible()
        page.get_by_role("button", name="Record the outcomes").click()
        expect(page.locator(".report .problem")).to_contain_text("The server does not answer")
        service.decide("shop", 3)  # while the page is cut off
        stack.enter_context(serving(service, int(url.rpartition(":")[2])))
        expect(page.locator("#live")).to_have_text("Live")
        expect(page.get_by_role("button", name="Round 3")).to_be_visible()
        expect(page.locator("#offline")).to_be_hidden()
        expect(page.get_by_label("Own reward (z) of a", exact=True)).to_have_value("0.25")
        page.get_by_role("button", name="Record the outcomes").click()
        expect(page.locator("#said")).to_contain_text("1 outcome of round 1 recorded")
        page.get_by_role("button", name="The next round").click()
        expect(page.get_by_label("Round to decide")).to_have_value("7")
        assert service.state("shop")["rounds"][0]["outcomes"]["a"]["z"] == 0.25


def new_shop(service: Service, url: str) -> str:
    service.create_stream("shop", {"arms": ["a", "b", "c"], "budget": 1})
    return f"{url}/streams/shop"
