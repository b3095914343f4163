"""Keep cells in a folder: files that are written atomically, verified when read, and computed by one process each.

store.json          what the folder holds: format, the experiment's text, the list of its cells
experiment.toml     the same text, for people
cells/ID.npz        arrays, and about.json beside them; `numpy.load` reads it
claims/ID           exists while a process computes the cell, and says which process that is
"""

import errno
import hashlib
import io
import json
import os
import socket
import zipfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from filelock import BaseFileLock, FileLock, Timeout
from numpy.typing import NDArray

from spillover.files import read_regular, write_atomically

FORMAT = 1
SEAL = b"sha256:"  # a zip file may end in a comment: ours is the hash of everything before it
SEAL_LENGTH = len(SEAL) + 64
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}  # a file system without locks
MOST_CLAIMS = 250  # at a time: each is an open file, and a process may often have 1,024 of them
UNNAMED = "a process that cannot be named"


class Damaged(ValueError):
    """A cell file that is incomplete or was changed."""


class CellStore:
    """The files of one experiment. Reading never writes; writing starts with `open`."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.cells = self.folder / "cells"
        self.claims = self.folder / "claims"
        self.held: dict[str, BaseFileLock] = {}  # cells that this process computes, with the locks on their claims

    # --- the folder --------------------------------------------------------------------------------------------------

    def about(self) -> dict[str, Any] | None:
        """The content of `store.json`; None if there is none."""
        path = self.folder / "store.json"
        try:
            content = json.loads(read_regular(path))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: must be a complete JSON file written by run_experiment: {error}") from None
        written = content.get("format") if isinstance(content, dict) else None
        check_format(path, written, FORMAT)
        return dict(content)

    def open(self, about: dict[str, Any], text: str) -> None:
        """Create the folder if needed, and write `store.json`."""
        if self.about() is None and self.cells.is_dir() and any(self.cells.glob("*.npz")):
            raise ValueError(f"{self.folder}: has cells but no store.json: not a store of this program")
        self.cells.mkdir(parents=True, exist_ok=True)
        self.claims.mkdir(exist_ok=True)
        content = json.dumps({"format": FORMAT, **about}, indent=1, allow_nan=False).encode()
        if not has_content(self.folder / "store.json", content):
            write_atomically(self.folder / "store.json", content)
            write_atomically(self.folder / "experiment.toml", text.encode())
        self.sweep()

    def sweep(self) -> None:
        """Remove incomplete files and claims of killed processes; a process that is still writing holds its claim."""
        for path in self.cells.glob(".*.npz.*"):
            cell = path.name.split(".")[1]
            if self.claim(cell) and cell in self.held:  # without locks nobody knows who is writing
                path.unlink(missing_ok=True)
                self.release(cell)
        for path in self.claims.glob("*"):
            if self.claim(path.name):
                self.release(path.name)

    # --- cells -------------------------------------------------------------------------------------------------------

    def path(self, cell: str) -> Path:
        return self.cells / f"{cell}.npz"

    def has(self, cell: str) -> bool:
        """Whether there is a file; `read` verifies it."""
        return self.path(cell).exists()

    def write(self, cell: str, arrays: dict[str, NDArray[Any]], about: dict[str, Any]) -> None:
        try:
            write_atomically(self.path(cell), seal(arrays, {"cell": cell, **about}))
        except OSError as error:  # the error of a full disk does not name the file
            raise OSError(error.errno, error.strerror, str(self.path(cell))) from error

    def read(self, cell: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """The arrays and their description; raises FileNotFoundError, or Damaged if the file has changed."""
        path = self.path(cell)
        arrays, about = unseal(read_regular(path), path)
        if about.get("cell") != cell:
            raise Damaged(f"{path}: is the file of another cell, {about.get('cell')}")
        return arrays, about

    def is_whole(self, cell: str) -> bool:
        """Whether a cell is there and not damaged."""
        try:
            self.read(cell)
        except (FileNotFoundError, Damaged):
            return False
        return True

    # --- claims: two processes on one store share the work -----------------------------------------------------------

    def claim(self, cell: str) -> bool:
        """Claim a cell, unless another process has it. The system releases the claims of dead processes.

        Without locks, and beyond a number of claims, nothing is claimed: the work may be done twice, which is harmless.
        """
        if len(self.held) >= MOST_CLAIMS:
            return cell not in self.held
        path = self.claims / cell
        # not bound to a thread: engines submit work in one thread and collect results in another
        lock = FileLock(path, thread_local=False)
        while cell not in self.held:
            try:
                lock.acquire(blocking=False)
            except Timeout:
                if path.exists():
                    return False  # otherwise its last owner has just removed it
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    raise
                return True
            else:
                self.held[cell] = lock
                with suppress(OSError):  # Windows does not let a locked file be written: then nobody is named
                    path.write_text(f"process {os.getpid()} on {socket.gethostname()}, since {now()}", encoding="utf-8")
                return True
        return False

    def holder(self, cell: str) -> str:
        """Say who has claimed a cell."""
        try:
            return read_regular(self.claims / cell).decode() or UNNAMED
        except (OSError, ValueError):
            return UNNAMED

    def release(self, cell: str) -> None:
        lock = self.held.pop(cell, None)
        if lock is not None:
            with suppress(PermissionError):  # Windows cannot remove an open file: an empty one stays
                (self.claims / cell).unlink(missing_ok=True)
            lock.release()

    def release_all(self) -> None:
        """Release what this process has claimed."""
        for cell in list(self.held):
            self.release(cell)

    def is_free(self, cell: str) -> bool:
        """Whether no other process computes a cell."""
        free = self.claim(cell)
        self.release(cell)
        return free


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def has_content(path: Path, content: bytes) -> bool:
    try:
        return read_regular(path) == content
    except FileNotFoundError:
        return False


def seal(arrays: dict[str, NDArray[Any]], about: dict[str, Any]) -> bytes:
    """An npz file with a description, `about.json`, and its hash as the last bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("about.json", json.dumps(about, allow_nan=False))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        archive.comment = bytes(SEAL_LENGTH)
    content = file.getvalue()[:-SEAL_LENGTH]
    return content + SEAL + hashlib.sha256(content).hexdigest().encode()


def unseal(content: bytes, path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arguments of `seal`; raises Damaged if the hash does not match."""
    body, end = content[:-SEAL_LENGTH], content[-SEAL_LENGTH:]
    if end != SEAL + hashlib.sha256(body).hexdigest().encode():
        raise Damaged(f"{path}: is damaged: its {len(content)} bytes do not have the hash that they should end with")
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files if name != "about.json"}
        return arrays, json.loads(archive["about.json"])


def check_format(path: Path, written: Any, newest: int) -> None:
    """Refuse a file of results whose format this version cannot read."""
    if not isinstance(written, int) or written < 1:
        raise ValueError(f"{path}: format = {written!r}: must be a whole number from 1 to {newest}")
    if written > newest:
        raise ValueError(
            f"{path}: format = {written}: this version of spillover reads formats up to {newest}; "
            "use a newer version, or another folder"
        )
