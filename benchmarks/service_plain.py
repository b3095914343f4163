"""The service beside a plain endpoint that stores requests and decides nothing: the same requests, in turns."""

import http.client
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, thread_time
from typing import Any
from unittest.mock import patch
from urllib.parse import quote, urlsplit

import numpy as np

from benchmarks.service_process import Served, history_file, serving, serving_plain
from spillover.history import read_history
from spillover.learner.one import Learner
from spillover.recommendation.decide import Question, learned
from spillover.service import Outcome, Service, SqliteLog
from spillover.service import decisions as decisions_module
from spillover.service import service as service_module
from spillover.types import Array

ARMS, BUDGET, PAST = 10, 3, 100
TURNS = 8  # of each server
WARM = 5  # requests before the first turn, which are not counted
MANY = 500  # streams
Loop = Callable[[http.client.HTTPConnection, str, range], list[float]]


def compare(quick: bool) -> None:
    """Print how many times as long the service takes, and of whole rounds what the least is that it could take."""
    count = 5 if quick else 40
    streams = 20 if quick else MANY
    with TemporaryDirectory() as name:
        folder = Path(name)
        table = prepare(folder, streams)
        with serving(folder) as ours, serving_plain(folder) as plain:
            servers = (ours, plain)
            print_ratio("decide, 1 connection", servers, decisions, ["alone"], count)
            print_ratio("decide, 1 connection, no rounds yet", servers, decisions, ["empty"], count)
            print_ratio("decide, 8 connections", servers, decisions, [f"eight {k}" for k in range(8)], count)
            bare = bare_rounds(table, TURNS * count)
            print_ratio("decide, execute and report, 1 connection", servers, whole_rounds, ["rounds"], count, bare=bare)
            print_steps(folder, TURNS * count)
            many, laps = f"decide, {streams} streams in turn, 1 connection", in_turn(streams)
            count = streams // TURNS
            print_ratio(f"{many}, again", servers, laps, ["new"], count, before=streams)
            print_ratio(f"{many}, the first time", servers, laps, ["other"], count, before=0)
            print_ratio(f"{many}, the first time, to learn {PAST} rounds", servers, laps, ["many"], count, before=0)


def prepare(folder: Path, streams: int) -> Path:
    """Streams with a short history each, which is returned, and some without."""
    service = Service(SqliteLog(folder / "streams.db"))
    table = history_file(folder / "past.parquet", ARMS, PAST, budget=BUDGET)
    for name in ("alone", "rounds", *(f"eight {k}" for k in range(8)), *(f"many {k}" for k in range(streams))):
        service.import_history(name, table, {"budget": BUDGET})
    for name in ("empty", *(f"{kind} {k}" for kind in ("new", "other") for k in range(streams))):
        service.create_stream(name, {"arms": [f"arm {k}" for k in range(1, ARMS + 1)], "budget": BUDGET})
    service.close()
    return table


def bare_rounds(table: Path, count: int) -> Array:
    """Seconds that a learner in memory takes to choose, play and learn a round."""
    learner = learned(read_history(str(table)), Question(budget=BUDGET)).learner
    found = []
    for number in range(WARM + count):
        start = perf_counter()
        x = learner.choose()
        z = np.where(x, number % 89 / 89, 0.0)
        learner.report(learner.play(), z=z, y=number * np.arange(1, ARMS + 1) % 97 / 97)
        found.append(perf_counter() - start)
    return np.array(found[WARM:])


# what is timed of a round in the service: where a function is found, its name, and what it does
STEPS: tuple[tuple[Any, str, str], ...] = (
    (Service, "decide", "decide"),
    (decisions_module, "plain_history", "- what is known as a table"),
    (decisions_module, "learned", "- learn the last round"),
    (Learner, "explain", "- estimates with their intervals"),
    (decisions_module, "chosen", "- choose"),
    (service_module, "issued", "- what is stored of it"),
    (Service, "execute", "execute"),
    (Service, "report", "report"),
    (service_module, "take_items", "- check each outcome"),
    (SqliteLog, "append", "- written to the disk, of all three"),
)


def print_steps(folder: Path, count: int) -> None:
    """Print where the processor time of a round goes inside of the service, without HTTP."""
    spent = defaultdict[str, float](float)

    def timed(call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def found(*given: Any, **named: Any) -> Any:
            start = thread_time()
            try:
                return call(*given, **named)
            finally:
                spent[name] += thread_time() - start

        return found

    service, rounds = Service(SqliteLog(folder / "steps.db")), range(PAST + 1, PAST + 1 + WARM + count)
    service.import_history("rounds", folder / "past.parquet", {"budget": BUDGET})
    with ExitStack() as patches:
        for place, name, _ in STEPS:
            patches.enter_context(patch.object(place, name, timed(getattr(place, name), name)))
        for number in rounds:
            if number == PAST + WARM + 1:
                spent.clear()
            chosen = service.decide("rounds", number).event.chosen
            service.execute("rounds", number)
            service.report("rounds", [Outcome(**item) for item in outcomes_of(number, chosen)])
    service.close()
    print("of that, in the service, ms of processor time for a round:", flush=True)
    for _, name, what in STEPS:
        print(f"  {what:36} {1e3 * spent[name] / count:.2f}", flush=True)


def print_ratio(
    title: str,
    servers: tuple[Served, Served],
    loop: Loop,
    names: list[str],
    count: int,
    *,
    before: int = WARM,
    bare: Array | None = None,
) -> None:
    """Both serve the same requests in turns, each connection a stream of its own; before: requests not counted.

    One connection alternates between the servers after each request: a busy machine is now fast, now slow. bare: what
    a learner in memory takes for the same; the plain endpoint and this is the least that a service could take.
    """
    turns, each = (TURNS * count, 1) if len(names) == 1 else (TURNS, count)
    wall = np.empty((turns, 2))  # seconds for a request, with all that happens at once
    took = np.empty_like(wall)  # the median request
    with ExitStack() as stack:
        opened = [[stack.enter_context(connection(server)) for _ in names] for server in servers]
        for connections in opened if before else ():
            at_once(connections, loop, names, range(PAST + 1, PAST + 1 + before))
        before_it = [server.processor for server in servers]
        for turn in range(turns):
            start = PAST + 1 + before + turn * each
            for place, connections in enumerate(opened):
                begun = perf_counter()
                found = at_once(connections, loop, names, range(start, start + each))
                wall[turn, place] = (perf_counter() - begun) / len(found)
                took[turn, place] = np.median(found)
    ours, plain = 1e3 * np.median(took, axis=0)
    ours_each, plain_each = 1e3 * wall.mean(axis=0)
    used = [server.processor - earlier for server, earlier in zip(servers, before_it, strict=True)]
    ours_used, plain_used = (1e3 * seconds / (turns * each * len(names)) for seconds in used)
    print(
        f"{title}: {ours / plain:.1f} times a plain endpoint by the median ({ours:.2f} and {plain:.2f} ms), "
        f"{ours_each / plain_each:.1f} by all requests (one every {ours_each:.2f} and {plain_each:.2f} ms), "
        f"{ours_used / plain_used:.1f} by processor time ({ours_used:.2f} and {plain_used:.2f} ms)",
        flush=True,
    )
    if bare is not None:
        alone = 1e3 * float(np.median(bare))
        print(
            f"  a learner in memory takes {alone:.2f} ms for it; of the plain endpoint and that, the service takes "
            f"{ours / (plain + alone):.1f} times as long by the median, {ours_used / (plain_used + alone):.1f} by "
            "processor time",
            flush=True,
        )


def at_once(opened: list[http.client.HTTPConnection], loop: Loop, names: list[str], rounds: range) -> list[float]:
    """Seconds of each request, with all connections at a time."""
    if len(names) == 1:
        return loop(opened[0], names[0], rounds)
    with ThreadPoolExecutor(len(names)) as pool:
        parts = pool.map(loop, opened, names, [rounds] * len(names))
        return [seconds for part in parts for seconds in part]


@contextmanager
def connection(server: Served) -> Iterator[http.client.HTTPConnection]:
    where = urlsplit(server.url)
    found = http.client.HTTPConnection(str(where.hostname), where.port, timeout=600.0)
    try:
        yield found
    finally:
        found.close()


def post(opened: http.client.HTTPConnection, stream: str, what: str, content: dict[str, Any]) -> tuple[float, Any]:
    """Seconds until the answer, and the answer."""
    body, path = json.dumps(content).encode(), f"/v1/streams/{quote(stream)}/{what}"
    start = perf_counter()
    opened.request("POST", path, body, {"Content-Type": "application/json"})
    answer = opened.getresponse()
    text = answer.read()
    took = perf_counter() - start
    assert answer.status in (200, 201), text
    return took, json.loads(text)


def decisions(opened: http.client.HTTPConnection, stream: str, rounds: range) -> list[float]:
    return [post(opened, stream, "decisions", {"round": number})[0] for number in rounds]


def whole_rounds(opened: http.client.HTTPConnection, stream: str, rounds: range) -> list[float]:
    """Decide, execute and report each round: seconds of the three requests together."""
    found = []
    for number in rounds:
        deciding, decision = post(opened, stream, "decisions", {"round": number})
        executing, _ = post(opened, stream, "executions", {"round": number})
        reporting, _ = post(opened, stream, "outcomes", {"outcomes": outcomes_of(number, decision["chosen"])})
        found.append(deciding + executing + reporting)
    return found


def outcomes_of(number: int, chosen: Sequence[str]) -> list[dict[str, Any]]:
    """All outcomes of a round."""
    overall = [{"round": number, "arm": f"arm {k}", "y": number * k % 97 / 97} for k in range(1, ARMS + 1)]
    return overall + [{"round": number, "arm": arm, "z": number % 89 / 89} for arm in chosen]


def in_turn(streams: int) -> Loop:
    """A decision in each of many streams, one after the other."""

    def loop(opened: http.client.HTTPConnection, name: str, rounds: range) -> list[float]:
        found = []
        for number in rounds:
            k, lap = number % streams, number // streams
            found.append(post(opened, f"{name} {k}", "decisions", {"round": PAST + 1 + lap})[0])
        return found

    return loop
