"""A server that is killed under clients that retry: nothing acknowledged is lost, and nothing is there twice."""

import os
import random
import threading
from collections import Counter

import pytest

from spillover.client import Client
from spillover.service import Service, SqliteLog
from tests.sampling import few_or_many
from tests.service.http.processes import ServerProcess
from tests.waiting import HANG, wait_until

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kill -9: POSIX")
ARMS = ["a", "b", "c"]
CLIENTS = 4


class Writer(threading.Thread):
    """Decides, executes and reports round after round in a stream of its own, until it is told to stop."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(daemon=True)
        self.url, self.name = url, name
        self.acknowledged: dict[str, int] = {}  # numbers of entries by key
        self.stop = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with Client(self.url, patience=HANG, timeout=60.0) as client:
                stream = client.create_stream(self.name, arms=ARMS, budget=1)
                number = 0
                while not self.stop.is_set():
                    number += 1
                    chosen = stream.choose(number, key=f"choose {number}")
                    self.acknowledged[f"choose {number}"] = chosen.entry["seq"]
                    self.acknowledged[f"play {number}"] = stream.play(number, key=f"play {number}")["seq"]
                    outcomes = [{"round": number, "arm": arm, "y": 0.5} for arm in ARMS]
                    found = stream.record("outcomes", f"report {number}", {"outcomes": outcomes})
                    assert {status["status"] for status in found["statuses"]} == {"recorded"}
                    self.acknowledged[f"report {number}"] = found["seq"]
        except Exception as error:
            self.error = error


@pytest.mark.parametrize("kills", few_or_many(1, 200))
def test_kills_under_retrying_clients(kills, tmp_path) -> None:
    draw = random.Random(7)
    with ServerProcess(tmp_path, "--database", "killed.db") as server:
        writers = [Writer(server.url, f"stream {k}") for k in range(CLIENTS)]
        for writer in writers:
            writer.start()
        for _ in range(kills):
            goal = acknowledged(writers) + draw.randint(5, 30)
            wait_for(writers, goal)
            server.end()
            server.start()
        for writer in writers:
            writer.stop.set()
            writer.join(HANG)
            assert writer.error is None, writer.error
    service = Service(SqliteLog(tmp_path / "killed.db"), ahead=False)
    for writer in writers:
        entries = every_entry(service, writer.name)
        numbers = {entry.key.removeprefix("given:"): entry.seq for entry in entries}
        assert {key: numbers.get(key) for key in writer.acknowledged} == writer.acknowledged
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        rounds = Counter((entry.event.kind, entry.content["event"].get("round")) for entry in entries)
        assert {kind: count for kind, count in rounds.items() if kind[0] == "decision-issued" and count > 1} == {}
        outcomes = Counter(
            (item["round"], item["arm"]) for entry in entries for item in entry.content["event"].get("outcomes", ())
        )
        assert set(outcomes.values()) <= {1}
        assert service.audit(writer.name).passed
    service.close()


def acknowledged(writers: list[Writer]) -> int:
    return sum(len(writer.acknowledged) for writer in writers)


def wait_for(writers: list[Writer], goal: int) -> None:
    wait_until(lambda: acknowledged(writers) >= goal or any(writer.error for writer in writers))


def every_entry(service: Service, stream: str) -> list:
    found: list = []
    while page := service.events(stream, found[-1].seq if found else 0):
        found += page
    return found
