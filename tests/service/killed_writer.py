"""Kill a service with eight writers again and again: python -m tests.service.killed_writer FOLDER KILLS SEED.

Each turn forks a child whose threads record outcomes and say of each call that returned; it is killed with SIGKILL at a
random moment. Prints how many calls were acknowledged, and how many of them are lost.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

from spillover.service import Outcome, Service, SqliteLog

WRITERS = 8
STREAMS = 3


def child(path: Path, pipe: int) -> None:
    """Write until killed; a line for each entry that was acknowledged."""
    service = Service(SqliteLog(path))

    def write(name: int) -> None:
        turn = 0
        while True:
            turn += 1
            stream, label = f"s{turn % STREAMS}", 1_000_000 * os.getpid() + 100_000 * name + turn
            first = service.execute(stream, label, ["a"]).entry
            second = service.report(stream, [Outcome(round=label, arm="a", z=0.5, y=0.5)]).entry
            assert second is not None
            for entry in (first, second):
                os.write(pipe, f"{json.dumps([entry.stream, entry.seq, entry.digest])}\n".encode())

    for k in range(WRITERS):
        threading.Thread(target=write, args=(k,), daemon=True).start()
    time.sleep(60)


def kill_once(path: Path, seconds: float) -> list[tuple[str, int, str]]:
    """What a child acknowledged before it was killed."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        try:
            child(path, writing)
        finally:
            os._exit(1)
    os.close(writing)
    lines = b""
    with os.fdopen(reading, "rb") as answers:
        lines = answers.read(1)  # it has begun
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)
        lines += answers.read()
    os.waitpid(process, 0)
    whole = lines.decode().rpartition("\n")[0].splitlines()  # a line may be cut off, its entry may not
    return [tuple(json.loads(line)) for line in whole]


def main(folder: str, kills: str, seed: str) -> None:
    path, rng = Path(folder) / "log.db", random.Random(int(seed))
    service = Service(SqliteLog(path))
    for k in range(STREAMS):
        service.create_stream(f"s{k}", {"arms": ["a", "b"], "budget": 1})
    service.close()
    acknowledged: list[tuple[str, int, str]] = []
    for _ in range(int(kills)):
        acknowledged += kill_once(path, rng.uniform(0, 0.2))
    service = Service(SqliteLog(path))
    there = {
        (entry.stream, entry.seq, entry.digest)
        for k in range(STREAMS)
        for entry in service.events(f"s{k}", 0, 10_000_000)
    }
    problems = [text for k in range(STREAMS) for text in service.audit(f"s{k}").problems]
    service.close()
    print(json.dumps({"acknowledged": len(acknowledged), "lost": len(set(acknowledged) - there), "problems": problems}))


if __name__ == "__main__":
    main(*sys.argv[1:])
