"""Kill a server under clients that retry: python -m tests.service.http.killed_server FOLDER KILLS SEED.

Each client decides, executes and reports round after round; the server is killed with SIGKILL at a random moment and
started again. Prints how many requests were acknowledged, how many of their entries are lost, and what is there twice.
"""

import json
import random
import sys
import threading
from collections import Counter
from pathlib import Path

from spillover.client import Client
from spillover.service import Service, SqliteLog
from spillover.service.events import Entry
from tests.service.http.processes import ServerProcess
from tests.waiting import HANG, wait_until

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


def after_kills(folder: Path, kills: int, seed: int) -> dict[str, object]:
    """What is in the log after the server was killed so many times."""
    draw = random.Random(seed)
    with ServerProcess(folder, "--database", "killed.db") as server:
        writers = [Writer(server.url, f"stream {k}") for k in range(CLIENTS)]
        for writer in writers:
            writer.start()
        for turn in range(kills):
            wait_for(writers, acknowledged(writers) + draw.randint(5, 30))
            server.end()
            server.start()
            if turn % 50 == 49:
                print(f"{turn + 1} kills, {acknowledged(writers)} acknowledged", file=sys.stderr, flush=True)
        for writer in writers:
            writer.stop.set()
            writer.join(HANG)
            if writer.error is not None:
                raise writer.error
    service = Service(SqliteLog(folder / "killed.db"))
    entries = {writer.name: every_entry(service, writer.name) for writer in writers}
    problems = [text for writer in writers for text in service.audit(writer.name).problems]
    service.close()
    return {
        "kills": kills,
        "acknowledged": acknowledged(writers),
        "lost": sum(len(lost(writer, entries[writer.name])) for writer in writers),
        "doubled": sum(doubled(found) for found in entries.values()),
        "problems": problems,
    }


def lost(writer: Writer, entries: list[Entry]) -> list[str]:
    """Keys of requests that were acknowledged, and whose entries are not there under the same number."""
    numbers = {entry.key.removeprefix("given:"): entry.seq for entry in entries}
    return [key for key, seq in writer.acknowledged.items() if numbers.get(key) != seq]


def doubled(entries: list[Entry]) -> int:
    """How many decisions, executions and outcomes are there more than once."""
    events = [(entry.event.kind, entry.content["event"]) for entry in entries]
    once = [(kind, event["round"]) for kind, event in events if kind in ("decision-issued", "decision-executed")]
    outcomes = [(item["round"], item["arm"]) for _, event in events for item in event.get("outcomes", ())]
    return sum(count - 1 for found in (once, outcomes) for count in Counter(found).values())


def acknowledged(writers: list[Writer]) -> int:
    return sum(len(writer.acknowledged) for writer in writers)


def wait_for(writers: list[Writer], goal: int) -> None:
    wait_until(lambda: acknowledged(writers) >= goal or any(writer.error for writer in writers))


def every_entry(service: Service, stream: str) -> list[Entry]:
    found: list[Entry] = []
    while page := service.events(stream, found[-1].seq if found else 0):
        found += page
    return found


if __name__ == "__main__":
    print(json.dumps(after_kills(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
