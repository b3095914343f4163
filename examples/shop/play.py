"""A shop that decides every day, played against a running service: outcomes late, twice, out of order, in parts, lost.

python examples/shop/play.py               # starts a service of its own, nine weeks
python examples/shop/play.py --stay        # and leaves it running, to look at its page
python examples/shop/play.py --url http://127.0.0.1:8000 --stream shop-2   # against a service that runs already
"""

import argparse
import json
import random
import shlex
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from spillover.client import Client, Stream

START = date(2026, 3, 2)
CHANGE = 35  # from this day on, video has worn out and vouchers work better
BUDGET = 2
OWN = {"banner": 0.25, "bundle": 0.35, "newsletter": 0.30, "video": 0.60, "voucher": 0.25}
LATER = OWN | {"video": 0.12, "voucher": 0.70}
SPILLS = {  # a sale of the first brings this share of a sale of the second
    ("video", "bundle"): 0.6,
    ("video", "banner"): 0.25,
    ("newsletter", "voucher"): 0.5,
}
GIVEN_UP = 9  # days after which a missing part is lost


@dataclass
class World:
    """The shop: what promotions bring, and when the figures arrive."""

    rng: random.Random
    post: dict[int, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))  # by day of arrival
    truth: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    noticed: int = 0  # changes of the world that the service has noticed

    def sell(self, day: int, chosen: list[str]) -> None:
        """A day of sales. Each part of its figures takes a way of its own."""
        means = OWN if day < CHANGE else LATER
        z = {arm: round(min(1.0, max(0.0, self.rng.gauss(means[arm], 0.06))), 3) for arm in chosen}
        y = {arm: z.get(arm, 0.0) for arm in OWN}
        for (source, target), share in SPILLS.items():
            y[target] += share * z.get(source, 0.0)
        y = {arm: round(value, 4) for arm, value in y.items()}
        label = label_of(day)
        self.truth[label] = {"z": z, "y": y}
        for arm in chosen:  # the till of each promotion
            self.send(day, [{"round": label, "arm": arm, "z": z[arm]}], self.rng.randint(1, 3))
        for arms in (
            ("banner", "bundle"),
            ("newsletter", "video", "voucher"),
        ):  # two shops, each with a system of its own
            self.send(day, [{"round": label, "arm": arm, "y": y[arm]} for arm in arms], self.rng.randint(1, 5))

    def send(self, day: int, parts: list[dict[str, Any]], delay: int) -> None:
        """A message on its way: perhaps wrong, perhaps twice, perhaps lost."""
        luck = self.rng.random()
        if luck < 0.04:
            return  # lost
        if luck < 0.10:  # wrong by a factor; somebody notices two days later
            name = "z" if "z" in parts[0] else "y"
            wrong = parts[0] | {name: round(parts[0][name] / 2, 4)}
            self.post[day + delay].append({"parts": [wrong, *parts[1:]]})
            self.post[day + delay + 2].append({"correct": parts[0]})
            return
        self.post[day + delay].append({"parts": parts})
        if luck > 0.85:
            self.post[day + delay + self.rng.randint(0, 2)].append({"parts": parts})  # sent twice

    def delivered(self, day: int) -> list[dict[str, Any]]:
        """List what arrives on a day, in any order, but a correction after what it corrects."""
        found = self.post.pop(day, [])
        self.rng.shuffle(found)
        return sorted(found, key=lambda message: "correct" in message)


def label_of(day: int) -> str:
    return (START + timedelta(days=day)).isoformat()


def decide(stream: Stream, world: World, day: int) -> str:
    """Ask for the decision of a day, carry it out (or not), and say why it was made."""
    label = label_of(day)
    unavailable = ["newsletter"] if day % 13 == 4 else []
    decision = stream.choose(label, unavailable=unavailable)
    assert stream.choose(label, unavailable=unavailable).chosen == decision.chosen  # a second worker asks, too
    if (decision.entry["event"]["changes"] or 0) > world.noticed:
        world.noticed = decision.entry["event"]["changes"]
        print(" " * 12 + "noticed: the world has changed")
    words = f"choose {' and '.join(decision.chosen)}: {why(decision.entry['event'], decision.chosen[0])}"
    if day % 17 == 11:
        stream.play(label, cancelled=True)
        return f"{words}. The shop is closed"
    done = ["banner", "voucher"] if day % 15 == 8 else list(decision.chosen)
    stream.play(label, done)
    world.sell(day, done)
    return words if done == list(decision.chosen) else f"{words}. The manager does {' and '.join(done)} instead"


def why(event: dict[str, Any], arm: str) -> str:
    """The score of an arm taken apart."""
    parts = event["scores"][arm]
    if parts["score"] is None:
        return f"{arm} was never tried"
    return (
        f"{arm} {parts['score']:.2f} = {parts['direct']:.2f} by itself + {parts['spilled_over']:.2f} spill-over"
        f" + {parts['exploration']:.2f} exploration"
    )


def receive(stream: Stream, world: World, day: int) -> str:
    """Hand on what arrived; returns what became of it."""
    counts: dict[str, int] = defaultdict(int)
    for message in world.delivered(day):
        if "correct" in message:
            correct(stream, message["correct"])
            counts["corrected"] += 1
            continue
        for status in stream.report_many(message["parts"]):
            assert status["status"] in ("recorded", "duplicate") or "correct it" in status["reason"], status
            counts[status["status"]] += 1
    return ", ".join(f"{number} {what}" for what, number in sorted(counts.items()))


def correct(stream: Stream, right: dict[str, Any]) -> None:
    """Correct an outcome: the next revision, with the right value."""
    known = next(line for line in stream.state()["rounds"] if line["round"] == right["round"])["outcomes"]
    values: dict[str, float | None] = {name: right[name] for name in ("z", "y") if name in right}
    revision = known[right["arm"]]["revision"] + 1
    stream.correct(right["round"], right["arm"], values, revision=revision, reason="the till was read wrongly")


def give_up(stream: Stream, limit: int) -> list[str]:
    """Rounds of which parts are lost: nothing more is expected of them."""
    lost = [line["round"] for line in stream.overview()["pending"] if line["age"] >= limit]
    for label in lost:
        stream.expire(label, reason="lost on the way")
    return lost


def play(stream: Stream, days: int, seed: int) -> World:
    """All days, and then the days until the last figures are there."""
    world = World(random.Random(seed))
    for day in range(days + GIVEN_UP):
        arrived = receive(stream, world, day)
        lost = give_up(stream, GIVEN_UP) if day < days else give_up(stream, 0) if day == days + GIVEN_UP - 1 else []
        words = decide(stream, world, day) if day < days else "no more decisions"
        print(f"{label_of(day)}  {words}.")
        if arrived or lost:
            print(" " * 12 + "; ".join(filter(None, [arrived, f"given up: {', '.join(lost)}" if lost else ""])))
    return world


def verify(stream: Stream, world: World) -> None:
    """Check that the record is true, the log is whole, and `spillover next` gives the same answer from the export."""
    for line in stream.state()["rounds"]:
        for arm, outcome in line["outcomes"].items():
            for name in ("z", "y"):
                known = outcome[name]
                assert known is None or known == world.truth[line["round"]][name][arm], (line["round"], arm, outcome)
    counts = stream.overview()["counts"]
    print(f"rounds: {', '.join(f'{number} {what}' for what, number in counts.items())}")
    found = stream.audit()
    assert found["passed"], found["problems"]
    print(f"audit: {found['entries']} entries whole, {found['decisions']} decisions made again with the same answer")
    live, file = stream.explain(), next_from_export(stream)
    assert {**live, "file": None} == {**file, "file": None}, "the file gives another answer"
    print(f"next: choose {' and '.join(live['choose'])}; `spillover next` on the export says the same")


def next_from_export(stream: Stream) -> Any:
    """The answer of `spillover next` to the exported history."""
    content, command = stream.export_with_command("csv")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.csv"
        path.write_bytes(content)
        words = [str(path) if word == "FILE" else word for word in shlex.split(command)[1:]]
        done = subprocess.run([sys.executable, "-m", "spillover", *words, "--json"], capture_output=True, check=True)
    return json.loads(done.stdout)


@contextmanager
def own_service() -> Iterator[str]:
    """The address of a service on a temporary database."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "spillover", "serve", "--port", "0", "--database", f"{folder}/shop.db"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                said = server.stdout.readline()
                print(said, end="")
                yield next(word for word in said.split() if word.startswith("http")).rstrip("/")
            finally:
                server.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description="A shop that decides daily, against a running service.")
    parser.add_argument("--url", help="a running service; left out: one of its own, on a temporary database")
    parser.add_argument("--stream", default="shop")
    parser.add_argument("--weeks", type=int, default=9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stay", action="store_true", help="leave the service running until Enter is pressed")
    given = parser.parse_args()
    with own_service() if given.url is None else as_given(given.url) as url, Client(url) as client:
        stream = client.create_stream(given.stream, arms=list(OWN), budget=BUDGET)
        world = play(stream, 7 * given.weeks, given.seed)
        verify(stream, world)
        if given.stay:
            input(f"Look at {url}/streams/{given.stream} - Enter ends this.\n")


@contextmanager
def as_given(url: str) -> Iterator[str]:
    yield url


if __name__ == "__main__":
    main()
