"""Every part of the page, wide and narrow, light and dark, by mouse and by keyboard."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from spillover.http import ServerSettings
from spillover.http.access import create_token
from spillover.service import Outcome, Service
from tests.dashboard.browser import accessible, drawn, open_page, press, reach
from tests.dashboard.serving import ARMS, fill, new_service, serving

pytestmark = pytest.mark.long
SCREENS = [(phone, dark) for phone in (False, True) for dark in (False, True)]
HOSTILE = "<script>alert(1)</script>"


def outcomes(day: int, chosen: Collection[str], arms: Collection[str]) -> list[Outcome]:
    """0.5 of each chosen arm; nothing spills over."""
    return [Outcome(round=day, arm=arm, z=0.5 if arm in chosen else None, y=0.5 * (arm in chosen)) for arm in arms]


def open_all(page: Page) -> None:
    """Open everything that can be opened."""
    for _ in range(3):
        page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
        page.wait_for_timeout(700)


@pytest.mark.parametrize(("phone", "dark"), SCREENS)
def test_everything_open_is_accessible_and_fits(browser, url, phone, dark) -> None:
    with open_page(browser, f"{url}/streams/channels", phone=phone, dark=dark) as page:
        drawn(page)
        accessible(page)
        open_all(page)
        accessible(page)
    with open_page(browser, url, phone=phone, dark=dark) as page:
        open_all(page)
        accessible(page)


@pytest.mark.parametrize(("phone", "dark"), SCREENS)
def test_dialogues_are_accessible_and_close_by_keyboard(browser, url, phone, dark) -> None:
    with open_page(browser, f"{url}/streams/channels", phone=phone, dark=dark) as page:
        entry = page.locator(".entry", has_text="Corrected round 2026-10-03")
        button = entry.get_by_role("button", name="Correct round 2026-10-03, radio")
        button.focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Correct an outcome")
        expect(dialog.get_by_role("listitem")).to_have_count(2)
        expect(dialog.get_by_label("Own reward (z)")).to_be_focused()
        accessible(page)
        page.keyboard.press("Enter")  # nothing was changed
        expect(dialog.get_by_role("alert")).to_have_text("Nothing differs from what is recorded.")
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(button).to_be_focused()


def everything_by(page: Page, service: Service, stream: str, act) -> None:
    """Every action on a stream, one after the other; `act` presses what it is given."""
    field = page.get_by_label("Round to decide")
    expect(field).to_have_value("2026-10-17")
    act(page.get_by_role("button", name="Decide this round"))
    expect(page.get_by_role("heading", name="A decision waits")).to_be_visible()
    act(page.get_by_text("Something else was done").first)
    chosen = service.decision(stream, "2026-10-17").event.chosen
    group = page.get_by_role("group", name="What was done")
    for arm in ARMS:
        if (arm in chosen) != (arm in ("radio", "video")):
            act(group.get_by_label(arm), "Space")
    act(page.get_by_role("button", name="Record what was done"))
    expect(page.locator(".entry", has_text="radio and video").first).to_be_visible()
    card = page.locator(".pending-card", has_text="2026-10-17")
    act(card.locator(".report summary"))
    card.get_by_label("Own reward (z) of radio", exact=True).fill("0.4")
    act(card.get_by_role("button", name="Record the outcomes"))
    act(card.get_by_role("button", name="Correct Own reward (z) of radio"))
    dialog = page.get_by_role("dialog", name="Correct an outcome")
    dialog.get_by_label("Own reward (z)").fill("0.35")
    act(dialog.get_by_role("button", name="Record the correction"))
    expect(page.locator(".entry", has_text="revision 2").first).to_be_visible()
    act(page.get_by_role("button", name="Decide this round"), back=True)
    act(page.get_by_role("button", name="Done as issued"))
    expect(page.locator(".entry", has_text="Done as issued in round 2026-10-18").first).to_be_visible()
    last = page.locator(".pending-card", has_text="2026-10-18")
    act(last.locator(".expire summary"))
    act(last.get_by_role("button", name="Nothing more will come"))
    expect(last).to_have_count(0)
    act(page.get_by_role("button", name="Decide this round"), back=True)
    act(page.get_by_text("The round did not take place"))
    act(page.get_by_role("button", name="Cancel the round"))
    expect(page.locator(".entry", has_text="Cancelled round 2026-10-19").first).to_be_visible()
    act(page.locator("#settings-box > summary"))
    page.get_by_label("Most arms in a round").fill("1")
    act(page.locator("#settings-form").get_by_role("button", name="Change the settings"))
    expect(page.locator("#settings-list")).to_contain_text("at most 1")
    act(page.get_by_role("button", name="Check the log"))
    expect(page.locator("#audit-words")).to_contain_text("All is well")


@pytest.mark.parametrize("phone", [False, True])
@pytest.mark.parametrize("keyboard", [False, True])
def test_every_action(browser, tmp_path, phone, keyboard) -> None:
    with new_service(tmp_path) as service, serving(service) as url:
        fill(service)
        with open_page(browser, f"{url}/streams/channels", phone=phone) as page:
            drawn(page)

            def by_keyboard(target, key="Enter", back=False):
                press(page, target, key, back=back)

            def by_mouse(target, key="", back=False):
                target.click()

            everything_by(page, service, "channels", by_keyboard if keyboard else by_mouse)
        lines = {line["round"]: line for line in service.state("channels")["rounds"]}
        assert lines["2026-10-17"]["how"] == "overridden"
        assert lines["2026-10-17"]["outcomes"]["radio"] == {"z": 0.35, "y": None, "revision": 2}
        assert lines["2026-10-18"]["status"] == "expired"
        assert lines["2026-10-19"]["status"] == "cancelled"
        assert service.overview("channels")["settings"]["budget"] == 1


def test_a_file_becomes_a_stream(browser, tmp_path) -> None:
    """Chosen, or dropped; a file that cannot be read is refused in words, and the form keeps what was typed."""
    with new_service(tmp_path) as service, serving(service) as url:
        fill(service, "old")
        history = service.export("old").content
        with open_page(browser, url) as page:
            form = page.locator("#import-form")
            form.get_by_label("History file").set_input_files(
                {"name": "bad.csv", "mimeType": "text/csv", "buffer": b"no,history\n1,2\n"}
            )
            form.get_by_label("Name of the stream").fill("new one")
            form.get_by_label("Most arms in a round").fill("2")
            form.get_by_role("button", name="Create the stream").click()
            expect(form.get_by_role("alert")).to_contain_text("Not accepted")
            expect(form.get_by_label("Name of the stream")).to_have_value("new one")
            form.get_by_label("History file").set_input_files(
                {"name": "sales.csv", "mimeType": "text/csv", "buffer": history}
            )
            form.get_by_role("button", name="Create the stream").click()
            expect(page.get_by_role("heading", name="new one")).to_be_visible()
            expect(page.get_by_role("heading", name="What to choose next")).to_be_visible()
        with open_page(browser, url) as page:
            page.evaluate(
                """(text) => {
                  const data = new DataTransfer();
                  data.items.add(new File([text], "dropped.csv"));
                  const drop = new DragEvent("drop", { dataTransfer: data, cancelable: true });
                  document.getElementById("drop").dispatchEvent(drop);
                }""",
                history.decode(),
            )
            form = page.locator("#import-form")
            expect(form.get_by_label("Name of the stream")).to_have_value("dropped")
            form.get_by_label("Most arms in a round").fill("2")
            form.get_by_role("button", name="Create the stream").click()
            expect(page.get_by_role("heading", name="What to choose next")).to_be_visible()
        assert service.outlook("dropped")["choose"] == service.outlook("old")["choose"]


def test_a_server_that_asks_for_a_token(browser, tmp_path) -> None:
    """The token is asked for, kept in the tab, refused in words, and may allow only a part."""
    path = tmp_path / "tokens.json"
    secret, weak = create_token(path, "ann", "admin", None), create_token(path, "bob", "read", None)
    settings = ServerSettings(tokens=path)
    with new_service(tmp_path) as service, serving(service, settings=settings) as url:
        service.create_stream("shop", {"arms": ["a", "b"], "budget": 1})
        with open_page(browser, f"{url}/streams/shop") as page:
            dialog = page.get_by_role("dialog", name="This server asks for a token")
            expect(dialog).to_be_visible()
            accessible(page)
            dialog.get_by_label("Token").fill("wrong")
            page.keyboard.press("Enter")
            expect(dialog).to_contain_text("did not accept this token")
            dialog.get_by_label("Token").fill(weak)
            page.keyboard.press("Enter")
            expect(page.get_by_role("heading", name="What to choose next")).to_be_visible()
            expect(page.locator("#live")).to_have_text("Live")
            page.get_by_label("Round to decide").fill("1")
            page.keyboard.press("Enter")
            expect(page.locator("#decide-form .problem")).to_contain_text("Your token does not allow this")
            assert secret not in page.url
            assert weak not in page.url
            page.get_by_role("button", name="Forget the token").click()
            dialog.get_by_label("Token").fill(secret)
            page.keyboard.press("Enter")
            page.get_by_label("Round to decide").fill("1")
            page.keyboard.press("Enter")
            expect(page.get_by_role("heading", name="A decision waits")).to_be_visible()
            page.reload()
            expect(page.get_by_role("heading", name="A decision waits")).to_be_visible()


def test_hostile_names_and_reasons_are_text(browser, tmp_path) -> None:
    """Tags, formulas, templates and signs that turn the direction of text are shown, everywhere."""
    arms = [HOSTILE, "<b>bold</b> & 'quoted'", "%{x} $a^2$", "\u05d0\u05d1\u05d2 123", "{{ 7 * 7 }}"]
    with new_service(tmp_path) as service, serving(service) as url:
        name = "<img src=x onerror=alert(1)>"
        service.create_stream(name, {"arms": arms, "budget": 2})
        for day in range(1, 9):
            chosen = service.decide(name, day, author="<i>ann</i>").event.chosen
            service.execute(name, day)
            service.report(name, outcomes(day, chosen, arms))
        service.execute(name, 9, [HOSTILE])
        service.expire(name, 9, reason="evil <script>alert(2)</script>")
        with open_page(browser, f"{url}/streams/{name.replace('<', '%3C').replace('>', '%3E')}") as page:
            drawn(page)
            open_all(page)
            expect(page.locator("#stream-name")).to_have_text(name)
            expect(page.locator(".entry", has_text="evil <script>alert(2)</script>").first).to_be_visible()
            for arm in arms:
                expect(page.locator(".scores").first).to_contain_text(arm)
                expect(page.locator("#bands")).to_contain_text(arm)
            assert page.locator("main b, main i, main img").count() == 0
            shown = page.evaluate("import('/assets/dom.js').then(({ printable }) => printable('a\\u202eb\\u0007'))")
            assert shown == "a\\u202eb\\u0007"
            accessible(page)


def test_other_streams(browser, tmp_path) -> None:
    """A payoff with context; a hundred arms; a policy without intervals; no stream at all."""
    with new_service(tmp_path) as service, serving(service) as url:
        one_number = {"observes": "payoff", "context": ["price"]}
        service.create_stream("payoff", {"arms": ["a", "b", "c"], "budget": 1, **one_number})
        with open_page(browser, f"{url}/streams/payoff", phone=True) as page:
            page.get_by_label("Round to decide").fill("1")
            page.get_by_label("Context: price").fill("2.5")
            page.get_by_role("button", name="Decide this round").click()
            page.get_by_role("button", name="Done as issued").click()
            page.locator(".report summary").click()
            page.get_by_label("Outcome (y) of the round", exact=True).fill("12")
            page.get_by_role("button", name="Record the outcomes").click()
            expect(page.locator("#pending")).to_contain_text("Nothing is pending")
            accessible(page)
        assert service.state("payoff")["rounds"][0]["context"] == {"price": 2.5}
        arms = [f"arm {k}" for k in range(1, 101)]
        service.create_stream("many", {"arms": arms, "budget": 10})
        service.create_stream("plain", {"arms": ["a", "b", "c"], "budget": 1, "policy": "cucb"})
        for stream in ("many", "plain"):
            for day in range(1, 6):
                chosen = service.decide(stream, day).event.chosen
                service.execute(stream, day)
                known = service.overview(stream)["settings"]["arms"]
                service.report(stream, outcomes(day, chosen, known))
            for phone in (False, True):
                with open_page(browser, f"{url}/streams/{stream}", phone=phone) as page:
                    drawn(page)
                    open_all(page)
                    accessible(page)
        with open_page(browser, f"{url}/streams/many") as page:
            page.get_by_role("button", name="Show all 100 arms").first.click()
            expect(page.locator("#decision .scores tbody tr")).to_have_count(100)
            page.get_by_text("Arms that are not available").click()
            page.locator("#decide-form").get_by_label("Search an arm").fill("arm 77")
            page.locator("#decide-form").get_by_label("arm 77", exact=True).check()
            page.get_by_role("button", name="Decide this round").click()
            expect(page.get_by_role("heading", name="A decision waits")).to_be_visible()
        assert service.decision("many", 6).event.unavailable == ("arm 77",)
        with open_page(browser, f"{url}/streams/nothing") as page:
            expect(page.locator("#missing")).to_contain_text("There is no such thing")


def test_a_stream_of_amounts(browser, tmp_path) -> None:
    """Created on the page; what is done are amounts, a field for each arm."""
    with new_service(tmp_path) as service, serving(service) as url, open_page(browser, url, phone=True) as page:
        form = page.locator("#create-form")
        form.get_by_label("Name of the stream").fill("spend")
        form.get_by_label("Arms, one per line").fill("radio\nsearch\nvideo")
        form.get_by_label("What is reported of a round").select_option("payoff")
        form.get_by_text("Policy, context, ranges").click()
        form.get_by_label("Arms get amounts").check()
        form.get_by_role("button", name="Create the stream").click()
        page.get_by_label("Round to decide").fill("1")
        page.get_by_role("button", name="Decide this round").click()
        done = page.get_by_role("group", name="How much was done")
        expect(done).to_be_visible()
        expect(page.get_by_role("button", name="Done as issued")).to_be_hidden()
        accessible(page)
        done.get_by_label("radio").fill("-5")
        page.get_by_role("button", name="Record what was done").click()
        expect(page.locator("#act-problem")).to_contain_text("a number above 0")
        done.get_by_label("radio").fill("120.5")
        done.get_by_label("video").fill("80")
        page.get_by_role("button", name="Record what was done").click()
        expect(page.locator(".entry", has_text="radio 120.5, video 80").first).to_be_visible()
        assert service.state("spend")["rounds"][0]["amounts"] == {"radio": 120.5, "video": 80.0}


def test_two_people_change_the_settings(browser, tmp_path) -> None:
    """Only what was changed is sent; what somebody else changed meanwhile is shown beside it, and stays."""
    limits = [{"kind": "exclusive", "arms": ["a", "b"], "label": "one of them"}]
    with new_service(tmp_path) as service, serving(service) as url:
        service.create_stream("shop", {"arms": ["a", "b", "c"], "budget": 2})
        with open_page(browser, f"{url}/streams/shop") as page:
            sent: list[Any] = []
            page.on("request", lambda request: sent.extend([request.post_data_json] * (request.method == "PATCH")))
            page.locator("#settings-box > summary").click()
            page.get_by_label("Most arms in a round").fill("1")
            service.change_settings("shop", {"limits": limits, "seed": 5}, author="ann")
            expect(page.locator("#settings-list")).to_contain_text("1 limit")
            form = page.locator("#settings-form")
            form.get_by_role("button", name="Change the settings").click()
            expect(form.get_by_role("alert")).to_contain_text("ann changed the settings while you did")
            table = form.get_by_role("table")
            expect(table.get_by_role("row", name="Limits")).to_contain_text("one of them")
            expect(table.get_by_role("row", name="Limits")).to_contain_text("not changed")
            expect(table.get_by_role("row", name="Most arms in a round")).to_contain_text("2")
            expect(page.get_by_label("Limits, as a JSON list")).to_have_value(re.compile("one of them"))
            expect(page.get_by_label("Most arms in a round")).to_have_value("1")
            accessible(page)
            assert service.overview("shop")["seq"] == 2
            form.get_by_role("button", name="Change the settings").click()
            expect(page.locator("#settings-list")).to_contain_text("at most 1")
            assert sent == [{"budget": 1, "read_at": 1}, {"budget": 1, "read_at": 2}]
        settings = service.overview("shop")["settings"]
        assert (settings["budget"], settings["limits"], settings["seed"]) == (1, limits, 5)


@pytest.mark.parametrize("doses", [False, True])
def test_what_was_done_is_corrected(browser, tmp_path, doses) -> None:
    with new_service(tmp_path) as service, serving(service) as url:
        service.create_stream("shop", {"arms": ["a", "b", "c"], "budget": 1, "observes": "overall", "doses": doses})
        done: dict[str, Any] = {"amounts": {"a": 3.5}} if doses else {"chosen": ["a"]}
        service.execute("shop", 1, **done, author="ann")
        with open_page(browser, f"{url}/streams/shop") as page:
            expect(page.locator(".pending-arms")).to_contain_text("Done: a")
            page.get_by_role("button", name="Correct what was done in round 1").click()
            dialog = page.get_by_role("dialog", name="Correct what was done")
            save = dialog.get_by_role("button", name="Record the correction")
            save.click()
            expect(dialog.get_by_role("alert")).to_contain_text("Nothing differs")
            accessible(page)
            if doses:
                dialog.get_by_label("a", exact=True).fill("")
                dialog.get_by_label("b", exact=True).fill("2")
            else:
                dialog.get_by_label("a", exact=True).uncheck()
                dialog.get_by_label("b", exact=True).check()
            dialog.get_by_label("Why").fill("a slip")
            save.click()
            expect(page.locator(".entry", has_text="revision 2")).to_contain_text("Why: a slip")
            expect(page.locator(".pending-arms")).to_contain_text("Done: b")
            page.get_by_role("button", name="Correct what was done in round 1").first.click()
            dialog.get_by_label("It did not take place").check()
            save.click()
            expect(page.locator(".pending-card")).to_have_count(0)
        line = service.state("shop")["rounds"][0]
        assert (line["status"], line["revision"], line["chosen"]) == ("cancelled", 3, [])


def test_typing_is_not_disturbed_by_others(browser, tmp_path) -> None:
    """While somebody types, others report, decide and change the settings: focus and text stay where they are."""
    with new_service(tmp_path) as service, serving(service) as url:
        fill(service)
        with open_page(browser, f"{url}/streams/channels") as page:
            card = page.locator(".pending-card", has_text="2026-10-15")
            card.locator(".report summary").click()
            field = card.get_by_label("Outcome (y) of radio", exact=True)
            field.fill("0.3")
            service.report("channels", [Outcome(round="2026-10-15", arm="radio", y=0.6)])
            expect(card.get_by_text("reported meanwhile: 0.6")).to_be_visible()
            service.decide("channels", "2026-10-17")
            expect(page.get_by_role("heading", name="A decision waits")).to_be_visible()
            expect(field).to_be_focused()
            expect(field).to_have_value("0.3")
            card.get_by_role("button", name="Record the outcomes").click()
            expect(card.get_by_role("alert")).to_contain_text("which was reported before")


def test_export_downloads_the_history(browser, url, service: Service) -> None:
    with open_page(browser, f"{url}/streams/channels") as page:
        with page.expect_download() as download:
            page.get_by_role("button", name="CSV").click()
        assert Path(download.value.path()).read_bytes() == service.export("channels").content


def test_colours_follow_the_system_while_the_page_is_open(browser, url) -> None:
    with open_page(browser, f"{url}/streams/channels") as page:
        drawn(page)
        before = page.locator("#payoff path.js-line").first.evaluate("(line) => getComputedStyle(line).stroke")
        page.emulate_media(color_scheme="dark")
        page.wait_for_timeout(1000)
        after = page.locator("#payoff path.js-line").first.evaluate("(line) => getComputedStyle(line).stroke")
        assert before != after
        accessible(page)


def test_the_keyboard_can_skip_the_top(browser, url) -> None:
    with open_page(browser, f"{url}/streams/channels") as page:
        expect(page.get_by_role("heading", name="What to choose next")).to_be_visible()
        reach(page, page.get_by_role("link", name="Skip to the content"))
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
