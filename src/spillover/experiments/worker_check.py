"""Are the workers of a cluster fit for the work? Asked before the first cell."""

import platform
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from spillover.experiments.compute import versions
from spillover.experiments.fingerprint import source_digest
from spillover.experiments.group_work import sees_store
from spillover.experiments.pools import Pool, one_line
from spillover.store import CellStore


class Asked(NamedTuple):
    """What every worker is asked."""

    tasks: dict[str, Any]  # by the hash of their source code, one for each
    folder: Path | None = None  # of a store
    session: str = ""


class Answer(NamedTuple):
    """What a worker has."""

    machine: str
    differs: bool  # its source code
    sees_store: bool
    versions: dict[str, str]


def look(asked: Asked) -> Answer:
    """In a worker: compare its source code, and look for the store."""
    differs = any(source_digest(task) != source for source, task in asked.tasks.items())
    store_here = asked.folder is not None and sees_store(CellStore(asked.folder), asked.session)
    return Answer(platform.node(), differs, store_here, versions())


def check_workers(
    pool: Pool, tasks: dict[str, Any], address: str | None, folder: Path | None = None, session: str = ""
) -> bool:
    """Raise a ConnectionError that names a worker without the package, or with another version of it.

    tasks: one for each hash of source code that the work needs. Warns of other versions of Python, NumPy and Numba,
    with which results may differ in the last digits. Returns whether all workers see the store in this folder.
    """
    answers, ours = pool.on_every_worker(look, Asked(tasks, folder, session)), versions()
    for worker, answer in answers.items():
        if isinstance(answer, Exception):
            refuse(address, f"{worker} cannot load what it needs: {one_line(answer)}")
        if answer.differs:
            refuse(address, f"{worker} on {answer.machine} has another version")
        other = [f"{name} {version}" for name, version in answer.versions.items() if version != ours[name]]
        if other:
            here = ", ".join(f"{name} {version}" for name, version in ours.items())
            warnings.warn(
                f"worker {worker} on {answer.machine} has {', '.join(other)}, while this process has {here}: results "
                "may differ in the last digits",
                stacklevel=2,
            )
    return all(answer.sees_store for answer in answers.values())


def refuse(address: str | None, what: str) -> None:
    same = "a cluster whose workers all have this version of spillover, and of your own classes"
    raise ConnectionError(f"address = {address!r}: must be {same}; worker {what}")
