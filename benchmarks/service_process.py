"""A server in a process of its own, and files to fill its database with; for the benchmark of the service."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

PATIENCE = 300.0  # seconds until a server must have started
ADDRESS = r"http://127\.0\.0\.1:\d+"


@dataclass(frozen=True)
class Served:
    """A running server."""

    url: str
    pid: int

    @property
    def memory(self) -> float:
        """Mebibytes of memory that it has in use (Linux)."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) / 1024 if found else float("nan")

    @property
    def processor(self) -> float:
        """Seconds of the processor that it has used, with threads that have ended (Linux)."""
        numbers = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")  # in user and in kernel mode


def serving(folder: Path) -> AbstractContextManager[Served]:
    """`spillover serve` on the database of a folder, when it is ready."""
    command = ("spillover", "serve", "--port", "0", "--database", str(folder / "streams.db"))
    return started(folder / "output", command, rf"({ADDRESS})/[\s\S]*spillover: ready")


def serving_plain(folder: Path) -> AbstractContextManager[Served]:
    """The plain endpoint on a database in a folder."""
    command = ("benchmarks.plain_endpoint", str(folder / "plain.db"))
    return started(folder / "plain-output", command, f"({ADDRESS})")


@contextmanager
def started(output: Path, command: tuple[str, ...], said: str) -> Iterator[Served]:
    """A module of Python that serves. said: what it prints when it does, with the address as a group."""
    with output.open("w") as file:
        process = subprocess.Popen([sys.executable, "-m", *command], stdout=file, stderr=file)
    try:
        end = monotonic() + PATIENCE
        while (found := re.search(said, output.read_text())) is None:
            if process.poll() is not None or monotonic() > end:
                raise RuntimeError(output.read_text())
            sleep(0.01)
        yield Served(found[1], process.pid)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def history_file(path: Path, arms: int, rounds: int, *, complete: bool = True, budget: int = 3) -> Path:
    """Random decisions and outcomes, as a table; complete: whether outcomes are there."""
    draw = np.random.default_rng(0)
    chosen = np.argsort(draw.random((rounds, arms)), axis=1) < budget
    z = np.where(chosen, draw.random((rounds, arms)).round(4), np.nan)
    y = np.nan_to_num(z) + 0.2 * draw.random((rounds, arms)).round(4)
    columns = {
        "round": np.repeat(np.arange(1, rounds + 1), arms),
        "arm": np.tile([f"arm {k}" for k in range(1, arms + 1)], rounds),
        "chosen": chosen.ravel().astype(np.int8),
        "z": (z if complete else np.full_like(z, np.nan)).ravel(),
        "y": (y if complete else np.full_like(y, np.nan)).ravel(),
    }
    parquet.write_table(pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()}), path)
    return path
