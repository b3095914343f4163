"""The service over HTTP: outcomes a minute, decisions, many streams; each beside its bare cost in Python.

`python -m benchmarks service-http [--parts plain outcomes decide streams] [--arms 10 100] [--rounds 100 10000]
[--streams 10000] [--quick]`

plain: the same requests to the service and to a plain endpoint that stores them and decides nothing, in turns.
outcomes: reports of 1,000 outcomes, and of one, by four clients at a time. Bare: the same events folded in memory.
decide: a decision after each new round, with its outcomes reported before. Bare: a `Learner` in memory that chooses,
plays and learns the same.
streams: many streams, and the memory and the time to the first answer of a server that has just been started.
"""

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

import httpx
import numpy as np

from benchmarks.service_plain import compare
from benchmarks.service_process import Served, history_file, serving
from benchmarks.service_streams import filled
from spillover.history import read_history
from spillover.learner.one import Learner
from spillover.recommendation.decide import learned
from spillover.service import Service, SqliteLog
from spillover.service.ledger import Ledger

PARTS = ("plain", "outcomes", "decide", "streams")
CLIENTS = 4
USUAL, PACED = 100_000, 26  # outcomes a minute of a busy service, and batches of each client at that rate
BATCH = 1_000
DECISIONS = 100  # measured, after WARM that are not
WARM = 10
TIMEOUT = 600.0


def main(arguments: Sequence[str] = ()) -> None:
    options = parsed(arguments)
    for part in options.parts:
        MEASURES[part](options)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks service-http")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--arms", nargs="+", type=int, default=(10, 100))
    parser.add_argument("--rounds", nargs="+", type=int, default=(100, 10_000))
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--outcomes", type=int, default=200_000)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    options = parser.parse_args(list(arguments))
    if options.quick:
        options.arms, options.rounds, options.streams = (10,), (100,), 50
        options.outcomes = 16_000
    return options


def percentiles(seconds: Sequence[float]) -> str:
    low, high = np.percentile(np.array(seconds) * 1e3, [50, 99])
    return f"p50 {low:.1f} ms, p99 {high:.1f} ms"


def imported(folder: Path, name: str, path: Path, budget: int = 3) -> None:
    """Begin a stream without a server."""
    service = Service(SqliteLog(folder / "streams.db"))
    service.import_history(name, path, {"budget": budget})
    service.close()


# --- outcomes --------------------------------------------------------------------------------------------------------


def outcomes(options: argparse.Namespace) -> None:
    arms, rounds = 10, max(100, options.outcomes // 10 // CLIENTS)
    singles = max(100, options.outcomes // 100) // CLIENTS
    with TemporaryDirectory() as name:
        folder = Path(name)
        table = history_file(folder / "waiting.parquet", arms, rounds + singles, complete=False)
        for k in range(CLIENTS):
            imported(folder, f"stream {k}", table)
        items = [
            {"round": t, "arm": f"arm {k}", "y": round(t % 97 / 97, 4)}
            for t in range(1, rounds + 1)
            for k in range(1, arms + 1)
        ]
        batches = [items[start : start + BATCH] for start in range(0, len(items), BATCH)]
        calm = batches[: max(2, min(PACED, len(batches) // 2))]
        lone = [[{"round": rounds + t, "arm": "arm 1", "y": 0.5}] for t in range(1, singles + 1)]
        with serving(folder) as served:
            _, latencies = report_all(served, calm, every=CLIENTS * BATCH * 60 / USUAL)
            first = latencies[:: len(calm)]  # which open a stream each, all at once
            later = [seconds for k, seconds in enumerate(latencies) if k % len(calm)]
            print(
                f"outcomes in batches of 1,000, {USUAL:,} a minute: {percentiles(later)}; "
                f"the first request of each client, right after the start, {max(first) * 1e3:.1f} ms at most",
                flush=True,
            )
            for title, bodies in (("in batches of 1,000", batches[len(calm) :]), ("singly", lone)):
                took, latencies = report_all(served, bodies)
                count = CLIENTS * sum(map(len, bodies))
                print(f"outcomes {title}: {count / took * 60:,.0f} a minute; {percentiles(latencies)}", flush=True)
                if title != "singly":
                    batched = took / count
        bare = folding_time(folder / "streams.db", "stream 0") / len(items)
        print(f"bare fold: {60 / bare:,.0f} a minute; in batches the service takes {batched / bare:.1f} times as long")


def report_all(
    served: Served, bodies: Sequence[Sequence[dict[str, Any]]], every: float = 0.0
) -> tuple[float, list[float]]:
    """Seconds in all, and of each request, with several clients at a time, each with a stream of its own.

    every: seconds from one request of a client to its next one, at least.
    """

    def report(k: int) -> list[float]:
        found = []
        with httpx.Client(base_url=served.url, timeout=TIMEOUT) as http:
            for body in bodies:
                start = perf_counter()
                answer = http.post(f"/v1/streams/stream {k}/outcomes", json={"outcomes": body})
                found.append(perf_counter() - start)
                sleep(max(every - found[-1], 0.0))
                assert answer.status_code == 200, answer.text
                assert answer.json()["statuses"][0]["status"] == "recorded", answer.text
        return found

    start = perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        latencies = [seconds for part in pool.map(report, range(CLIENTS)) for seconds in part]
    return perf_counter() - start, latencies


def folding_time(path: Path, stream: str) -> float:
    """Seconds to take the reports of a stream, which are in memory, into a ledger."""
    log = SqliteLog(path, readonly=True)
    ledger = Ledger(stream)
    spent = 0.0
    while entries := log.read(stream, ledger.head.seq):
        for entry in entries:
            start = perf_counter()
            ledger.apply(entry)
            spent += perf_counter() - start if entry.event.kind == "outcomes-reported" else 0.0
    log.close()
    return spent


# --- decisions -------------------------------------------------------------------------------------------------------


def decide(options: argparse.Namespace) -> None:
    for arms in options.arms:
        for rounds in options.rounds:
            with TemporaryDirectory() as name:
                folder = Path(name)
                table = history_file(folder / "past.parquet", arms, rounds)
                imported(folder, "stream", table)
                with serving(folder) as served:
                    latencies = decisions(served, arms, rounds, DECISIONS)
                bare = bare_decisions(table, arms)
            ratio = np.median(latencies) / np.median(bare)
            print(
                f"decide, {arms:,} arms, {rounds:,} rounds: {percentiles(latencies)}; "
                f"bare learner {percentiles(bare)}; ratio of the medians {ratio:.1f}",
                flush=True,
            )


def decisions(served: Served, arms: int, rounds: int, count: int) -> list[float]:
    """Seconds that each of `count` decisions takes, right after the reports of the round before."""
    found = []
    with httpx.Client(base_url=f"{served.url}/v1/streams/stream", timeout=TIMEOUT) as http:
        for number in range(rounds + 1, rounds + 1 + WARM + count):
            start = perf_counter()
            decision = http.post("/decisions", json={"round": number})
            found.append(perf_counter() - start)
            chosen = decision.json()["chosen"]
            http.post("/executions", json={"round": number})
            items: list[dict[str, Any]] = [{"round": number, "arm": f"arm {k}", "y": 0.5} for k in range(1, arms + 1)]
            items += [{"round": number, "arm": arm, "z": 0.5} for arm in chosen]
            for start_at in range(0, len(items), BATCH):
                http.post("/outcomes", json={"outcomes": items[start_at : start_at + BATCH]})
    return found[WARM:]


def bare_decisions(table: Path, arms: int) -> list[float]:
    """The same with a learner in memory."""
    learner: Learner = learned(read_history(str(table)), question_of(3)).learner
    found = []
    for _ in range(WARM + DECISIONS):
        start = perf_counter()
        x = learner.choose()
        number = learner.play()
        learner.report(number, z=np.where(x, 0.5, 0.0), y=np.full(arms, 0.5))
        found.append(perf_counter() - start)
    return found[WARM:]


def question_of(budget: int) -> Any:
    from spillover.recommendation.decide import Question

    return Question(budget=budget)


# --- many streams ----------------------------------------------------------------------------------------------------


def streams(options: argparse.Namespace) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        service = Service(SqliteLog(folder / "streams.db"))
        with ThreadPoolExecutor(8) as pool:  # their commits are made together
            for _ in pool.map(lambda k: filled(service, f"s{k}", 10, 5), range(options.streams)):
                pass
        service.close()
        start = perf_counter()
        with serving(folder) as served, httpx.Client(base_url=served.url, timeout=TIMEOUT) as http:
            first = http.post("/v1/streams/s0/decisions", json={"round": 6})
            ready = perf_counter() - start
            assert first.status_code == 201, first.text
            before = served.memory
            latencies = []
            for k in range(1, options.streams):
                begun = perf_counter()
                assert http.post(f"/v1/streams/s{k}/decisions", json={"round": 6}).status_code == 201
                latencies.append(perf_counter() - begun)
            after = served.memory
    print(
        f"{options.streams:,} streams: first answer {ready:.1f} s after the start of the process; a first decision in "
        f"each {percentiles(latencies)}; memory {before:,.0f} MiB with one open, {after:,.0f} MiB with all",
        flush=True,
    )


MEASURES: dict[str, Callable[[argparse.Namespace], None]] = {
    "plain": lambda options: compare(options.quick),
    "outcomes": outcomes,
    "decide": decide,
    "streams": streams,
}
