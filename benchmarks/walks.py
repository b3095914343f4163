"""Count the files that three calls pass through: `next` on a CSV, a round of `simulate`, an outcome posted.

A file counts if a function of it runs; a move is a call from a function of one file to a function of another. Nothing
that runs while a module is loaded counts, and each call is made once before, so that nothing is left to load.
"""

import asyncio
import gc
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import spillover as sp

PACKAGE = Path(sp.__file__).parent


class Watch:
    """Notes the calls of functions of the package, in all threads that are started while it watches."""

    def __init__(self) -> None:
        self.files, self.moves, self.counts = Counter[str](), 0, False
        self.places: dict[str, str | None] = {}

    def place_of(self, frame: FrameType | None) -> str | None:
        """The file of the nearest function of the package, among a frame and those that called it."""
        while frame is not None:
            name = frame.f_code.co_filename
            if name not in self.places:
                path = Path(name)
                self.places[name] = str(path.relative_to(PACKAGE)) if path.is_relative_to(PACKAGE) else None
            if self.places[name] is not None:
                return self.places[name]
            frame = frame.f_back
        return None

    def note(self, frame: FrameType, event: str, given: object) -> None:
        """Count a call, as `sys.setprofile` reports it."""
        code = frame.f_code
        if self.counts and event == "call" and code.co_name != "<module>" and self.place_of(frame):
            here = str(self.place_of(frame))
            if Path(code.co_filename) == PACKAGE / here:
                self.files[here] += 1
                self.moves += here != self.place_of(frame.f_back)


def walk(prepare: Callable[[Path], Callable[[], Any]]) -> Watch:
    """Watch a call, the second one of its kind."""
    watch = Watch()
    threading.setprofile(watch.note)
    with tempfile.TemporaryDirectory() as folder:
        call = prepare(Path(folder))
        call()
        gc.disable()  # what clears objects away calls functions, too
        sys.setprofile(watch.note)
        watch.counts = True
        try:
            call()
        finally:
            watch.counts = False
            sys.setprofile(None)
            threading.setprofile(None)
            gc.enable()
    return watch


def next_on_a_csv(folder: Path) -> Callable[[], Any]:
    """`spillover next` on a table with a row for each round."""
    from click.testing import CliRunner

    from spillover.cli import main

    rng, path = np.random.default_rng(0), folder / "shops.csv"
    names = ("north", "south", "west")
    lines = [",".join(["week", *(f"promo_{name}" for name in names), *(f"sales_{name}" for name in names)])]
    for week in range(1, 41):
        chosen = rng.permutation(3) < 2
        sales = 5.0 + 3.0 * chosen + rng.normal(size=3)
        lines.append(",".join([str(week), *map(str, chosen.astype(int)), *(f"{value:.2f}" for value in sales)]))
    path.write_text("\n".join(lines) + "\n")
    return lambda: CliRunner().invoke(main, ["next", str(path), "--budget", "2", "--quiet"], catch_exceptions=False)


def one_round(folder: Path) -> Callable[[], Any]:
    """A round of NDC-SEM, round by round."""
    return lambda: sp.simulate(sp.NDCSEM(), sp.SyntheticSEM(horizon=1, changes=()), 0, replications=1)


def one_post(folder: Path) -> Callable[[], Any]:
    """An outcome of a round that was decided and executed, posted to the service."""
    import httpx

    from spillover.http import create_app
    from spillover.service import Service, SqliteLog

    transport = httpx.ASGITransport(app=create_app(Service(SqliteLog(folder / "log.db"))))
    client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
    runner = asyncio.Runner()

    def post(path: str, content: Any) -> Any:
        return runner.run(client.post(f"/v1/streams{path}", json=content)).raise_for_status().json()

    post("", {"name": "shop", "settings": {"arms": ["a", "b", "c"], "budget": 2}})
    chosen = {}
    for k in (1, 2):
        chosen[k] = post("/shop/decisions", {"round": k})["chosen"]
        post("/shop/executions", {"round": k})
    outcomes = iter([{"round": k, "arm": chosen[k][0], "z": 0.5, "y": 0.5}] for k in (1, 2))
    return lambda: post("/shop/outcomes", {"outcomes": next(outcomes)})


WALKS = {"next on a CSV": next_on_a_csv, "a round of simulate": one_round, "an outcome posted": one_post}


def main() -> None:
    print("| walk | files | calls | moves |\n|---|---|---|---|")
    for name, prepare in WALKS.items():
        found = walk(prepare)
        print(f"| {name} | {len(found.files)} | {found.files.total():,} | {found.moves:,} |")
        if "--files" in sys.argv:
            print("\n".join(f"    {count:6,}  {file}" for file, count in found.files.most_common()))


if __name__ == "__main__":
    main()
