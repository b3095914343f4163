"""The service beside a plain endpoint that stores requests and decides nothing: the same requests, in turns."""

import http.client
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np

from benchmarks.service_process import Served, history_file, serving, serving_plain
from spillover.service import Service, SqliteLog

ARMS, BUDGET, PAST = 10, 3, 100
TURNS = 8  # of each server, one after the other
WARM = 5  # requests before the first turn, which are not counted
MANY = 500  # streams
Loop = Callable[[http.client.HTTPConnection, str, range], list[float]]


def compare(quick: bool) -> None:
    """Print how many times as long the service takes."""
    count = 5 if quick else 40
    streams = 20 if quick else MANY
    with TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, streams)
        with serving(folder) as ours, serving_plain(folder) as plain:
            servers = (ours, plain)
            print_ratio("decide, 1 connection", servers, decisions, ["alone"], count)
            print_ratio("decide, 1 connection, no rounds yet", servers, decisions, ["empty"], count)
            print_ratio("decide, 8 connections", servers, decisions, [f"eight {k}" for k in range(8)], count)
            print_ratio("decide, execute and report, 1 connection", servers, whole_rounds, ["rounds"], count)
            many, laps = f"decide, {streams} streams in turn, 1 connection", in_turn(streams)
            count = streams // TURNS
            print_ratio(f"{many}, again", servers, laps, ["new"], count, before=streams)
            print_ratio(f"{many}, the first time", servers, laps, ["other"], count, before=0)
            print_ratio(f"{many}, the first time, to learn {PAST} rounds", servers, laps, ["many"], count, before=0)


def prepare(folder: Path, streams: int) -> None:
    """Streams with a short history each, and some without."""
    service = Service(SqliteLog(folder / "streams.db"))
    table = history_file(folder / "past.parquet", ARMS, PAST, budget=BUDGET)
    for name in ("alone", "rounds", *(f"eight {k}" for k in range(8)), *(f"many {k}" for k in range(streams))):
        service.import_history(name, table, {"budget": BUDGET})
    for name in ("empty", *(f"{kind} {k}" for kind in ("new", "other") for k in range(streams))):
        service.create_stream(name, {"arms": [f"arm {k}" for k in range(1, ARMS + 1)], "budget": BUDGET})
    service.close()


def print_ratio(
    title: str, servers: tuple[Served, Served], loop: Loop, names: list[str], count: int, before: int = WARM
) -> None:
    """Both serve the same requests in turns, each connection a stream of its own; before: requests not counted.

    The ratio is the median over the turns: the disk of a busy machine is now fast, now slow.
    """
    at_once(servers[0], loop, names, range(PAST + 1, PAST + 1 + before))
    at_once(servers[1], loop, names, range(PAST + 1, PAST + 1 + before))
    took = np.empty((TURNS, 2))  # the median request of each turn
    wall = np.empty((TURNS, 2))  # seconds for a request, with all that happens at once
    used = np.empty((TURNS, 2))  # seconds of the processor for a request
    for turn in range(TURNS):
        start = PAST + 1 + before + turn * count
        for place, server in enumerate(servers):
            begun, before_it = perf_counter(), server.processor
            found = at_once(server, loop, names, range(start, start + count))
            wall[turn, place] = (perf_counter() - begun) / len(found)
            used[turn, place] = (server.processor - before_it) / len(found)
            took[turn, place] = np.median(found)
    (ours, plain), (ours_each, plain_each) = (1e3 * np.median(part, axis=0) for part in (took, wall))
    by_median, by_all, by_processor = (np.median(part[:, 0] / part[:, 1]) for part in (took, wall, used))
    print(
        f"{title}: {by_median:.1f} times a plain endpoint by the median ({ours:.2f} and {plain:.2f} ms), "
        f"{by_all:.1f} by all requests (one every {ours_each:.2f} and {plain_each:.2f} ms), "
        f"{by_processor:.1f} by processor time",
        flush=True,
    )


def at_once(server: Served, loop: Loop, names: list[str], rounds: range) -> list[float]:
    with ThreadPoolExecutor(len(names)) as pool:
        parts = pool.map(lambda name: on_connection(server, loop, name, rounds), names)
        return [seconds for part in parts for seconds in part]


def on_connection(server: Served, loop: Loop, name: str, rounds: range) -> list[float]:
    with connection(server) as opened:
        return loop(opened, name, rounds)


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
        items: list[dict[str, Any]] = [
            {"round": number, "arm": f"arm {k}", "y": number * k % 97 / 97} for k in range(1, ARMS + 1)
        ]
        items += [{"round": number, "arm": arm, "z": number % 89 / 89} for arm in decision["chosen"]]
        reporting, _ = post(opened, stream, "outcomes", {"outcomes": items})
        found.append(deciding + executing + reporting)
    return found


def in_turn(streams: int) -> Loop:
    """A decision in each of many streams, one after the other."""

    def loop(opened: http.client.HTTPConnection, name: str, rounds: range) -> list[float]:
        found = []
        for number in rounds:
            k, lap = number % streams, number // streams
            found.append(post(opened, f"{name} {k}", "decisions", {"round": PAST + 1 + lap})[0])
        return found

    return loop
