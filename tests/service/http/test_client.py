"""The client: the verbs of a learner, errors as exceptions, and retries that record once."""

import threading
from collections.abc import Callable

import httpx
import pytest

from spillover.client import Client, Refused, Unreachable
from spillover.http import ServerSettings
from spillover.http.access import create_token
from tests.service.http.conftest import ARMS
from tests.service.http.servers import PATIENCE, running


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(tmp_path_factory.mktemp("client")) as url, Client(url, patience=PATIENCE) as found:
        yield found


def test_the_verbs_of_a_learner(client) -> None:
    shop = client.create_stream("shop", arms=ARMS, budget=2, max_age_rounds=30)
    decision = shop.choose("2026-10-12", unavailable=["radio"])
    assert (set(decision.chosen), decision.again) == ({"social", "video"}, False)
    assert shop.choose("2026-10-12", unavailable=["radio"]).again
    assert shop.play("2026-10-12")["event"]["how"] == "as-issued"
    statuses = shop.report("2026-10-12", z={"video": 0.5}, y={"video": 0.7, "radio": 0.1})
    assert [status["status"] for status in statuses] == ["recorded", "recorded"]
    assert shop.correct("2026-10-12", "video", {"y": 0.8}, revision=2, reason="recount")["event"]["revision"] == 2
    assert shop.explain("2026-10-12")["choose"] == list(decision.chosen)
    assert shop.explain()["budget"] == 2
    assert shop.change_settings(seed=4)["event"]["settings"]["seed"] == 4
    assert shop.expire("2026-10-12")["kind"] == "outcome-expired"
    assert shop.overview()["counts"]["executed"] == 1
    known = shop.state()["rounds"][0]["outcomes"]
    assert (known["video"]["y"], known["radio"]["z"]) == (0.8, None)
    assert [found.round for found in shop.decisions()] == ["2026-10-12"]
    assert [entry["seq"] for entry in shop.events()] == list(range(1, shop.overview()["seq"] + 1))
    assert shop.export().startswith(b"round,arm,chosen,z,y")
    assert shop.audit()["passed"]
    assert "shop" in list(client.streams())
    assert client.health()


def test_two_people_at_once(client) -> None:
    shop = client.create_stream("two people", arms=ARMS, budget=2)
    read_at = shop.overview()["seq"]
    shop.change_settings(seed=4, read_at=read_at)
    with pytest.raises(Refused, match="read_at = 1: must be at least 2") as no:
        shop.change_settings(budget=1, read_at=read_at)
    assert (no.value.status, no.value.recorded["settings"]["seed"]) == (409, 4)
    assert no.value.given == {"settings": {"budget": 1}}
    shop.play(1, ["radio"])
    assert shop.play(1, ["radio"])["again"]
    shop.play(1, ["video"], revision=2, reason="a slip")
    assert shop.state()["rounds"][0]["chosen"] == ["video"]
    shop.play(1, cancelled=True, revision=3)
    assert shop.overview()["counts"]["cancelled"] == 1


def test_one_outcome_for_all_arms(client) -> None:
    stream = client.create_stream("payoff", arms=ARMS, budget=1, observes="payoff")
    stream.play(1, ["radio"])
    assert stream.report(1, y=3.5)[0]["status"] == "recorded"
    assert stream.state()["rounds"][0]["payoff"] == 3.5


def test_many_outcomes_go_in_batches(client) -> None:
    arms = [f"arm {k}" for k in range(300)]
    stream = client.create_stream("wide", arms=arms, budget=2)
    for number in range(1, 5):
        stream.play(number, arms[:2])
    outcomes = [{"round": number, "arm": arm, "y": 0.5} for number in range(1, 5) for arm in arms]
    assert {status["status"] for status in stream.report_many(outcomes)} == {"recorded"}
    reports = [entry for entry in stream.events() if entry["kind"] == "outcomes-reported"]
    assert [len(entry["event"]["outcomes"]) for entry in reports] == [1_000, 200]


def test_a_file_becomes_a_stream(client, tmp_path) -> None:
    path = tmp_path / "past.csv"
    path.write_text("round,arm,chosen,z,y\n1,a,1,0.5,0.6\n1,b,0,,0.1\n2,a,0,,0.2\n2,b,1,0.3,0.4\n")
    stream = client.import_file("past", path, budget=1, minimise=False)
    assert stream.overview()["counts"]["executed"] == 2
    assert stream.export().decode().splitlines()[1:] == ["1,a,1,0.5,0.6", "1,b,0,,0.1", "2,a,0,,0.2", "2,b,1,0.3,0.4"]


def test_refusals_are_exceptions_with_the_words_of_the_service(client) -> None:
    with pytest.raises(Refused, match=r"stream = 'none': must be the name of a stream") as refused:
        client.stream("none").overview()
    assert refused.value.status == 404
    with pytest.raises(Refused, match="budget = 9") as refused:
        client.create_stream("refused", arms=ARMS, budget=9)
    assert (refused.value.status, refused.value.field, refused.value.value) == (422, "budget", 9)
    for name in ("", "a/b"):
        with pytest.raises(ValueError, match="name = "):
            client.stream(name)
    with pytest.raises(ValueError, match="y = None"):
        client.stream("shop").report(1)


@pytest.mark.parametrize("given", [{"url": "127.0.0.1:8000"}, {"timeout": 0}, {"patience": -1}, {"token": "ü"}])
def test_arguments_that_are_refused(given) -> None:
    with pytest.raises(ValueError, match="must be"):
        Client(**{"url": "http://127.0.0.1:1"} | given)


def test_a_token_is_sent_as_a_header(tmp_path) -> None:
    path = tmp_path / "tokens"
    secret = create_token(path, "ann", "admin", None)
    with running(tmp_path, ServerSettings(tokens=path)) as url:
        with Client(url) as nobody, pytest.raises(Refused, match="Authorization") as refused:
            nobody.create_stream("shop", arms=ARMS, budget=1)
        assert refused.value.status == 401
        with Client(url, token=secret) as client:
            assert client.create_stream("shop", arms=ARMS, budget=1).choose(1).entry["author"] == "ann"


def test_a_service_that_is_not_there(tmp_path) -> None:
    with running(tmp_path) as url:
        pass
    with Client(url, patience=0.2) as client, pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
        client.stream("shop").overview()


class Unreliable(httpx.BaseTransport):
    """Loses requests before they arrive, or answers after it was recorded; as `fate` says, in turn."""

    def __init__(self, fate: Callable[[], str]) -> None:
        self.inner, self.fate = httpx.HTTPTransport(), fate

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        fate = self.fate()
        if fate == "lost":
            raise httpx.ConnectError("lost")
        response = self.inner.handle_request(request)
        if fate == "unanswered":
            response.read()
            raise httpx.ReadTimeout("no answer")
        if fate == "busy":
            response.read()
            return httpx.Response(503, request=request)
        return response

    def close(self) -> None:
        self.inner.close()


def test_retries_record_once(client) -> None:
    """Whatever is lost on the way, each call leaves one entry."""
    fates = iter(["unanswered", "fine", "lost", "fine", "busy", "fine"] * 50)
    url = str(client.transport.http.base_url)
    with Client(url, patience=PATIENCE) as shaky:
        shaky.transport.http.close()
        shaky.transport.http = httpx.Client(base_url=url, timeout=PATIENCE, transport=Unreliable(lambda: next(fates)))
        stream = shaky.create_stream("shaky", arms=ARMS, budget=2)
        for number in range(1, 3):
            stream.choose(number)
            stream.play(number)
            stream.report(number, y={"radio": 0.5})
        stream.correct(1, "radio", {"y": 0.6}, revision=2)
        stream.expire(2)
    kinds = [entry["kind"] for entry in client.stream("shaky").events() if entry["kind"] != "reasons-kept"]
    each = ["decision-issued", "decision-executed", "outcomes-reported"]
    assert kinds == ["stream-created", *each * 2, "outcome-corrected", "outcome-expired"]


def test_changes_go_on_when_the_server_comes_back(tmp_path) -> None:
    heard: list[int] = []
    with running(tmp_path) as url:
        with Client(url) as client:
            client.create_stream("shop", arms=ARMS, budget=1)
        port = int(url.rpartition(":")[2])
    listener = Client(url, patience=PATIENCE)

    def listen() -> None:
        for seq in listener.stream("shop").changes():
            heard.append(seq)
            if seq >= 3:
                return

    thread = threading.Thread(target=listen, daemon=True)
    for seed in (1, 2):
        with running(tmp_path, port=port) as url, Client(url) as client:
            if seed == 1:
                thread.start()
            client.stream("shop").change_settings(seed=seed)
            if seed == 2:
                thread.join(PATIENCE)
    listener.close()
    assert heard == sorted(set(heard))
    assert heard[-1] == 3
