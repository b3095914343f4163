"""What the service costs in one process: decisions, outcomes, folding a log again, many streams; beside the same in
plain Python.

`python -m benchmarks service [--parts decide relearn outcomes refold streams] [--arms ...] [--rounds ...]`

Times are those of the clock, with p50 and p99 of the processor time of this process in brackets, which other programs
on the machine disturb less; ratios are those of processor times.

decide: a decision after each new round, which learns it. Bare: a `Learner` in memory that outlines its decision (what
    decides, without intervals), plays it and learns the outcome.
relearn: a decision of a stream whose scales come from all rounds, so that each one learns the whole history.
outcomes: reports of 1,000 outcomes, and of one, by one caller. Bare: the same events taken into a ledger.
refold: a log of a million rows, folded and decided from. Bare: the same history learned.
streams: 10,000 streams of 10 arms and 20 rounds after a restart, in a process of its own. Bare: as for refold.
"""

import argparse
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.service_streams import DECISIONS, complete, filled, items_of, names
from spillover.learner.one import Learner
from spillover.recommendation.decide import chosen, learned
from spillover.service import Outcome, Service, SqliteLog
from spillover.service.ledger import Ledger
from spillover.service.tables import history_of

PARTS = ("decide", "relearn", "outcomes", "refold", "streams")
ARMS, ROUNDS = (10, 100, 1_000), (100, 10_000)
BATCHES, SINGLES = 30, 600
STREAMS = 10_000
WARM = 3  # decisions that are not counted


class Took(NamedTuple):
    """Seconds on the clock, and of the processor."""

    clock: float
    processor: float


def timed(work: Callable[[], Any]) -> Took:
    clock, processor = perf_counter(), process_time()
    work()
    return Took(perf_counter() - clock, process_time() - processor)


def in_words(times: Sequence[Took]) -> str:
    (p50, p99), (own50, own99) = 1e3 * np.quantile(times, [0.5, 0.99], axis=0).T
    return f"p50 {p50:7.1f} ms, p99 {p99:7.1f} ms [{own50:6.1f}, {own99:6.1f} ms]"


def processor(times: Sequence[Took]) -> float:
    """The median of the processor times."""
    return float(np.median([took.processor for took in times]))


# --- decisions -------------------------------------------------------------------------------------------------------


def decide(folder: Path, n: int, rounds: int) -> None:
    service = Service(SqliteLog(folder / f"{n}-{rounds}.db"))
    filled(service, "s", n, rounds)
    count, rng, label = DECISIONS[n], np.random.default_rng(1), rounds
    found: list[Took] = []
    for _ in range(WARM + count):
        label += 1
        found.append(timed(partial(service.decide, "s", label)))
        service.execute("s", label)
        service.report("s", items_of(rng, service, "s", label))
    del found[:WARM]
    bare = bare_rounds(service, count)
    print(f"decide, {n:,} arms, {rounds:,} rounds, {count} times {in_words(found)}")
    ratio = processor(found) / processor(bare)
    print(f"    bare learner {in_words(bare)}; the service takes {ratio:.1f} times as long", flush=True)
    service.close()


def bare_rounds(service: Service, count: int) -> list[Took]:
    """The same rounds with a learner in memory."""
    ledger = service.open_streams.ledger_at("s", None)
    learner: Learner = learned(history_of(ledger), ledger.settings.question).learner
    rng = np.random.default_rng(2)

    def play() -> None:
        x = learner.outline().chosen
        number = learner.play(x)
        learner.report(number, *complete(rng, x))

    return [timed(play) for _ in range(WARM + count)][WARM:]


def relearn(folder: Path) -> None:
    service = Service(SqliteLog(folder / "relearn.db"))
    for kind, context in (("y", {}), ("payoff", {}), ("context", {"price": 0.5})):
        filled(service, kind, 10, 10_000, kind)
        took = []
        for label in range(10_001, 10_005):
            took.append(timed(partial(service.decide, kind, label, context=context)))
            service.execute(kind, label)
            arms = [None] if kind == "payoff" else names(10)
            service.report(kind, [Outcome(round=label, arm=arm, y=0.01 * (label % 7)) for arm in arms])
        del took[0]
        print(f"decide with {kind}, 10 arms, 10,000 rounds: {in_words(took)}", flush=True)
    service.close()


# --- outcomes --------------------------------------------------------------------------------------------------------


def outcomes(folder: Path) -> None:
    service = Service(SqliteLog(folder / "outcomes.db"))
    n, rng = 100, np.random.default_rng(0)
    service.create_stream("s", {"arms": names(n), "budget": 10})
    for label in range(1, 10 * BATCHES + 1 + SINGLES // n + 1):
        service.execute("s", label, names(n)[:10])
    parts: dict[str, list[list[Any]]] = {"of 1,000 outcomes": [], "of one outcome": []}
    for k in range(BATCHES):
        labels = range(10 * k + 1, 10 * k + 11)
        parts["of 1,000 outcomes"].append([item for label in labels for item in items_of(rng, service, "s", label)])
    last = range(10 * BATCHES + 1, 10 * BATCHES + 1 + SINGLES // n)
    parts["of one outcome"] = [[item] for label in last for item in items_of(rng, service, "s", label)]
    for title, reports in parts.items():
        before = service.log.head("s").seq
        times = [timed(partial(service.report, "s", items)) for items in reports]
        a_minute = 60 * sum(map(len, reports)) / sum(took.clock for took in times)
        bare = fold_alone(service, before)
        ratio = processor(times) / processor(bare)
        print(f"report {title}: {a_minute:,.0f} outcomes a minute; {in_words(times)}")
        print(f"    bare ledger {in_words(bare)}; the service takes {ratio:.1f} times as long", flush=True)
    service.close()


def fold_alone(service: Service, before: int) -> list[Took]:
    """The events after a number taken into a ledger, from memory."""
    ledger, times = service.open_streams.ledger_at("s", before), []
    while entries := service.log.read("s", ledger.head.seq):
        times += [timed(partial(ledger.apply, entry)) for entry in entries]
    return times


# --- a refold, many streams ------------------------------------------------------------------------------------------


def refold(folder: Path) -> None:
    service = Service(SqliteLog(folder / "refold.db"))
    filled(service, "s", 100, 10_000)
    service.open_streams.forget()
    found: list[Ledger] = []
    fold = timed(lambda: found.append(service.open_streams.ledger_at("s", None)))
    whole = timed(lambda: service.decide("s", 10_001))
    bare = timed(partial(learn_and_choose, found[0]))
    print(f"refold of 1,000,000 rows:  {fold.clock:.2f} s [{fold.processor:.2f} s]")
    print(f"refold and first decision: {whole.clock:.2f} s [{whole.processor:.2f} s]")
    ratio = whole.processor / bare.processor
    print(f"    bare learning {bare.clock:.2f} s [{bare.processor:.2f} s]; the service takes {ratio:.1f} times as long")
    service.close()


def learn_and_choose(ledger: Ledger) -> None:
    history, question = history_of(ledger), ledger.settings.question
    chosen(learned(history, question), history, question)


def streams(folder: Path) -> None:
    path = folder / "many.db"
    service = Service(SqliteLog(path))
    for k in range(STREAMS):
        filled(service, f"s{k:05d}", 10, 20)
    service.close()
    subprocess.run([sys.executable, "-m", "benchmarks.service", str(path)], check=True)


def after_restart(path: str) -> None:
    """In a process of its own: how long the first answers take, and how much memory all streams need."""
    unit = 1024 if sys.platform != "darwin" else 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = perf_counter()
    service = Service(SqliteLog(path))
    service.decide("s00000", 21)
    first = perf_counter() - start
    waits = [timed(partial(service.decide, f"s{k:05d}", 21)) for k in range(1, STREAMS)]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit
    bare = [timed(partial(learn_and_choose, service.open_streams.ledger_at(f"s{k:05d}", 5))) for k in range(1, 101)]
    print(
        f"{STREAMS:,} streams: first answer {first:.2f} s after opening the log; {grown / 1e6:,.0f} MB for all of them"
    )
    ratio = processor(waits) / processor(bare)
    print(f"    first decision of each {in_words(waits)}; bare {in_words(bare)}: {ratio:.1f} times as long")
    service.close()


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks service")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--arms", nargs="+", type=int, choices=ARMS, default=ARMS)
    parser.add_argument("--rounds", nargs="+", type=int, default=ROUNDS)
    options = parser.parse_args(list(arguments))
    with TemporaryDirectory() as name:
        folder = Path(name)
        if "decide" in options.parts:
            for n, rounds in ((n, rounds) for n in options.arms for rounds in options.rounds):
                decide(folder, n, rounds)
        for part, measure in (
            ("relearn", relearn),
            ("outcomes", outcomes),
            ("refold", refold),
            ("streams", streams),
        ):
            if part in options.parts:
                measure(folder)


if __name__ == "__main__":
    after_restart(sys.argv[1])
