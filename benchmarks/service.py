"""What the service costs: decisions, outcomes, folding a log again, many streams; beside the same without it."""

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from spillover.recommendation.question import chosen, learned
from spillover.service import Outcome, Service, SqliteLog
from spillover.service.events import RoundsImported
from spillover.service.histories import history_of
from spillover.service.one_thread import one_thread

DECISIONS = 60
DELAY = 5  # rounds until an outcome is reported
BATCHES = 30
SINGLES = 600
STREAMS = 10_000


def names(n: int) -> list[str]:
    return [f"arm {k:04d}" for k in range(n)]


def outcome_of(rng: np.random.Generator, x: Any) -> tuple[Any, Any]:
    """Own rewards of the chosen arms, and outcomes with some spill-over to the next arm."""
    z = np.where(x, np.clip(rng.normal(0.5, 0.1, x.shape), 0, 1), 0.0)
    return z, z + 0.2 * np.roll(z, 1, axis=-1)


def filled(service: Service, stream: str, n: int, rounds: int) -> None:
    """A stream with a history of random decisions."""
    rng, arms, budget = np.random.default_rng(0), names(n), max(n // 10, 1)
    service.create_stream(stream, {"arms": arms, "budget": budget})
    x = rng.permuted(np.tile(np.arange(n) < budget, (rounds, 1)), axis=1)
    z, y = outcome_of(rng, x)
    with service.desk.writing(stream) as ledger:
        for start in range(0, rounds, 500):
            part = tuple(
                {
                    "round": str(t + 1),
                    "chosen": [arms[k] for k in np.flatnonzero(x[t])],
                    "context": {},
                    "z": np.where(x[t], z[t], np.nan).astype(object).tolist(),
                    "y": y[t].tolist(),
                }
                for t in range(start, min(start + 500, rounds))
            )
            for known in part:
                known["z"] = [None if value != value else value for value in known["z"]]
            event = RoundsImported(source="benchmark", rounds=part)
            service.desk.record(ledger, event, f"import:{start}", {"start": start}, "")


def items_of(rng: np.random.Generator, service: Service, stream: str, label: int) -> list[Outcome]:
    """All outcomes of a round."""
    with service.desk.writing(stream) as ledger:
        arms, x = ledger.settings.arms, ledger.x[ledger.rows[str(label)]].copy()
    z, y = outcome_of(rng, x)
    return [Outcome(round=label, arm=arm, z=float(z[k]) if x[k] else None, y=float(y[k])) for k, arm in enumerate(arms)]


def timed(work: Callable[[], Any]) -> float:
    """Seconds on the clock."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def show(label: str, seconds: list[float], more: str = "") -> None:
    p50, p99 = np.quantile(seconds, [0.5, 0.99]) * 1e3
    print(f"{label:<46} p50 {p50:8.2f} ms   p99 {p99:8.2f} ms{more}", flush=True)


def decide(folder: Path, n: int, rounds: int) -> None:
    """Decisions one after another, outcomes in order, learned before the next decision is asked for."""
    service = Service(SqliteLog(folder / f"{n}-{rounds}.db"))
    filled(service, "s", n, rounds)
    rng, waits, reports = np.random.default_rng(1), [], []
    for label in range(rounds + 1, rounds + 1 + DECISIONS):
        waits.append(timed(partial(service.decide, "s", label)))
        service.execute("s", label)
        if label - DELAY > rounds:
            items = items_of(rng, service, "s", label - DELAY)
            reports.append(timed(partial(service.report, "s", items)))
        assert service.background is not None
        service.background.idle()
    ledger = service.desk.ledger_at("s", None)

    def bare() -> None:
        with one_thread():
            history = history_of(ledger)
            chosen(learned(history, ledger.settings.question), history, ledger.settings.question)

    without = min(timed(bare) for _ in range(3))
    ratio = f"   {np.median(waits[3:]) / without:6.3f} of learning it all ({without * 1e3:,.0f} ms)"
    show(f"decide, {n} arms, {rounds:,} rounds", waits[3:], ratio)
    show(f"report of {min(n, 1_000)} outcomes, {n} arms", reports)
    service.close()


def outcomes(folder: Path) -> None:
    """Outcomes a minute, in batches of 1,000 and one at a time, by one caller."""
    service = Service(SqliteLog(folder / "outcomes.db"), ahead=False)
    n, rng = 100, np.random.default_rng(0)
    service.create_stream("s", {"arms": names(n), "budget": 10})
    for label in range(1, 10 * BATCHES + 1 + SINGLES // n + 1):
        service.execute("s", label, names(n)[:10])
    batches = []
    for k in range(BATCHES):
        items = [item for label in range(10 * k + 1, 10 * k + 11) for item in items_of(rng, service, "s", label)]
        batches.append(timed(partial(service.report, "s", items)))
    show("report of 1,000 outcomes", batches, f"   {60_000 / np.mean(batches):,.0f} outcomes a minute")
    last = range(10 * BATCHES + 1, 10 * BATCHES + 1 + SINGLES // n)
    single = [item for label in last for item in items_of(rng, service, "s", label)]
    waits = [timed(partial(service.report, "s", [item])) for item in single]
    show("report of one outcome", waits, f"   {60 / np.mean(waits):,.0f} outcomes a minute")
    service.close()


def refold(folder: Path) -> None:
    """A log of a million rows (10,000 rounds of 100 arms) folded from the beginning."""
    service = Service(SqliteLog(folder / "refold.db"), ahead=False)
    filled(service, "s", 100, 10_000)
    seconds = min(timed(lambda: service.desk.ledger_at("s", None)) for _ in range(3))
    print(f"fold 1,000,000 rows from the log{seconds:25.2f} s", flush=True)
    service.close()


def many_streams(folder: Path) -> None:
    """Streams of 10 arms and 20 rounds: all open, and the first answers after a restart."""
    path = folder / "many.db"
    service = Service(SqliteLog(path), ahead=False)
    for k in range(STREAMS):
        filled(service, f"s{k:05d}", 10, 20)
    service.close()
    subprocess.run([sys.executable, "-m", "benchmarks.service", str(path)], check=True)


def after_restart(path: str) -> None:
    """In a process of its own: how long the first answers take, and how much memory all streams need."""
    unit = 1024 if sys.platform != "darwin" else 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    service = Service(SqliteLog(path), ahead=False)
    service.decide("s00000", 21)
    print(f"{STREAMS:,} streams: first answer after a restart{1e3 * (time.perf_counter() - started):12.1f} ms")
    waits = [timed(partial(service.decide, f"s{k:05d}", 21)) for k in range(1, STREAMS)]
    show(f"{STREAMS:,} streams: first decision of each", waits)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit
    print(f"{STREAMS:,} streams in memory{grown / 1e6:30,.0f} MB")
    service.close()


def main() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        for n, rounds in ((10, 100), (10, 10_000), (100, 100), (100, 10_000), (1_000, 100)):
            decide(folder, n, rounds)
        outcomes(folder)
        refold(folder)
        many_streams(folder)


if __name__ == "__main__":
    after_restart(sys.argv[1])
