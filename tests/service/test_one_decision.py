"""Whoever asks for the decision of a round at the same time gets the same one."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from spillover.service import Outcome, Service, SqliteLog
from spillover.service.events import DecisionIssued
from tests.service.logs import KINDS, new_database, open_log
from tests.waiting import HANG

SHOP = {"arms": ["a", "b", "c"], "budget": 2}


def ask_for_all(services: list[Service], rounds: range) -> list[dict[int, str]]:
    """Threads that ask for the decisions of the same rounds, each in its own order; the digests of the answers."""

    def ask(k: int) -> dict[int, str]:
        service, found = services[k % len(services)], {}
        for label in sorted(rounds, key=lambda label: hash((label % 5, label, k % 2))):
            found[label] = service.decide("shop", label).entry.digest
        return found

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(ask, range(8)))


def one_decision_each(service: Service, rounds: int, answers: list[dict[int, str]]) -> None:
    assert all(answer == answers[0] for answer in answers)
    events = [entry.event for entry in service.events("shop", 0, 100_000)]
    issued = [event.round for event in events if isinstance(event, DecisionIssued)]
    assert sorted(map(int, issued)) == list(range(1, rounds + 1))


@pytest.mark.parametrize("kind", KINDS)
def test_eight_threads_get_one_decision_for_each_round(kind, tmp_path) -> None:
    service = Service(open_log(kind, tmp_path))
    service.create_stream("shop", SHOP)
    one_decision_each(service, 12, ask_for_all([service], range(1, 13)))
    service.close()


def test_two_servers_on_one_database_get_one_decision_for_each_round() -> None:
    """Two services with memories of their own, as two processes have."""
    address = new_database()
    from spillover.service.postgres_log import PostgresLog

    services = [Service(PostgresLog(address)) for _ in range(2)]
    services[0].create_stream("shop", SHOP)
    one_decision_each(services[1], 12, ask_for_all(services, range(1, 13)))
    services[1].execute("shop", 1, ["a"])
    services[0].report("shop", [Outcome(round=1, arm="a", z=0.5)])
    assert services[1].audit("shop").passed
    for service in services:
        service.close()


ASK = """
import json, sys
from spillover.service import Service
from spillover.service.postgres_log import PostgresLog
from tests.service.test_one_decision import ask_for_all
service = Service(PostgresLog(sys.argv[1]))
print(json.dumps(ask_for_all([service], range(1, int(sys.argv[2]) + 1))))
service.close()
"""


@pytest.mark.long
def test_two_processes_and_a_thousand_rounds() -> None:
    address = new_database()
    from spillover.service.postgres_log import PostgresLog

    service = Service(PostgresLog(address))
    service.create_stream("shop", SHOP)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", ASK, address, "1000"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) for _ in range(2)]
    answers = []
    for process in processes:
        printed, _ = process.communicate(timeout=20 * HANG)
        answers += [{int(label): digest for label, digest in answer.items()} for answer in json.loads(printed)]
    one_decision_each(service, 1_000, answers)
    service.close()


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_eight_threads_and_a_thousand_rounds(kind, tmp_path) -> None:
    service = Service(open_log(kind, tmp_path))
    service.create_stream("shop", SHOP)
    one_decision_each(service, 1_000, ask_for_all([service], range(1, 1_001)))
    service.close()


def test_a_second_server_on_the_same_file_stops_with_a_clear_message(tmp_path) -> None:
    from spillover.service import StorageError

    log = SqliteLog(tmp_path / "log.db")
    with pytest.raises(StorageError, match=r"log\.db: is in use by another server"):
        SqliteLog(tmp_path / "log.db")
    reader = SqliteLog(tmp_path / "log.db", readonly=True)
    assert reader.streams() == []
    reader.close()
    log.close()
    SqliteLog(tmp_path / "log.db").close()
