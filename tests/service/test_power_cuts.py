"""Power cuts at any write: what was acknowledged is there when the power is back."""

import sqlite3
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from spillover.service.errors import StorageError
from spillover.service.events import Draft, Entry, OutcomeExpired
from spillover.service.log import SqliteLog

apsw = pytest.importorskip("apsw", reason="apsw is not installed: the test extra has it")
from tests.service.cut_log import CutLog  # noqa: E402
from tests.service.power import Disk, PowerCut  # noqa: E402

# a checkpoint may fail without the commit before it failing: SQLite goes on, and apsw has nobody to tell of the cut
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def draft(key: str, size: int) -> Draft:
    event = OutcomeExpired(round=key, reason="x" * size)
    return Draft(event=event, key=key, request="r", time="t", author="a", attachment=b"\xff" * size)


def cut(folder: Path, seed: int, synchronous: str) -> tuple[list[Entry], list[Entry], str]:
    """Write until the power is cut: what was acknowledged, what is there afterwards, and whether the file is whole."""
    rng = np.random.default_rng(seed)
    disk = Disk(rng, int(rng.integers(1, 400)))
    acknowledged: list[Entry] = []
    log = None
    try:
        log = CutLog(folder / "log.db", disk, synchronous)
        while True:
            stream = f"s{rng.integers(3)}"
            count = int(rng.integers(1, 4))
            drafts = [draft(f"{len(acknowledged)}-{k}", int(rng.integers(0, 3000))) for k in range(count)]
            acknowledged += log.append(log.head(stream), drafts)
    except (StorageError, PowerCut, apsw.Error):
        pass  # the power is off
    finally:
        if log is not None:
            log.file_lock.release()
            log.writer.close()
    for name, content in disk.after_the_cut().items():
        (folder / name).write_bytes(content)
    return acknowledged, *what_is_left(folder / "log.db")


def what_is_left(path: Path) -> tuple[list[Entry], str]:
    """The entries when the server starts again, and what SQLite says of the file."""
    try:
        log = SqliteLog(path)
    except StorageError as error:
        return [], str(error)
    try:
        whole = sqlite3.connect(path)
        state = str(whole.execute("PRAGMA integrity_check").fetchone()[0])
        whole.close()
        return [entry for head in log.streams() for entry in log.read(head.stream, 0, 100_000)], state
    finally:
        log.close()


def lost(folder: Path, seeds: range, synchronous: str) -> tuple[int, int]:
    """How many acknowledged entries were there before the cuts, and how many of them are gone."""
    written = gone = 0
    for seed in seeds:
        place = folder / f"{synchronous}-{seed}"
        place.mkdir()
        acknowledged, left, state = cut(place, seed, synchronous)
        assert state == "ok" or (not acknowledged and not left), state
        written += len(acknowledged)
        gone += len({entry.digest for entry in acknowledged} - {entry.digest for entry in left})
        check_numbers(left)
    return written, gone


def check_numbers(entries: list[Entry]) -> None:
    """Without gaps, each after the one before it."""
    for stream in {entry.stream for entry in entries}:
        own = [entry for entry in entries if entry.stream == stream]
        assert [entry.seq for entry in own] == list(range(1, len(own) + 1))
        assert all(b.content["previous"] == a.digest for a, b in pairwise(own))


def test_power_cuts_lose_nothing_that_was_acknowledged(tmp_path) -> None:
    written, gone = lost(tmp_path, range(12), "FULL")
    assert written > 100
    assert gone == 0


def test_the_same_cuts_lose_entries_without_full_synchronisation(tmp_path) -> None:
    """Which shows that the test above can fail."""
    written, gone = lost(tmp_path, range(12), "NORMAL")
    assert written > 100
    assert gone > 0


@pytest.mark.long
def test_three_hundred_power_cuts(tmp_path) -> None:
    written, gone = lost(tmp_path, range(1_000, 1_300), "FULL")
    assert (gone, written > 3_000) == (0, True)
