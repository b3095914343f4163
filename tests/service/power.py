"""A disk in memory that forgets what was not synced when the power is cut."""

from typing import Any

import apsw
import numpy as np

SECTOR = 512
NAME = "power-cuts"


class PowerCut(Exception):
    """The power is off."""


class Disk:
    """Files; each has what is surely on the disk, and writes of which nobody knows."""

    def __init__(self, rng: np.random.Generator, steps: int) -> None:
        self.rng, self.steps = rng, steps  # writes and syncs until the power is cut
        self.durable: dict[str, bytearray] = {}
        self.content: dict[str, bytearray] = {}
        self.unsynced: dict[str, list[tuple[int, bytes | None]]] = {}

        self.refusal: type[Exception] | None = None  # what writing fails with: the disk is full, or read-only
        self.gone = False  # whether the power was cut, and the process is gone: what it still does has no effect

    def step(self) -> bool:
        """Whether a write or a sync has an effect."""
        if self.refusal is not None:
            raise self.refusal
        self.steps -= 1
        if self.steps < 0 and not self.gone:
            raise PowerCut
        return self.steps >= 0

    def write(self, name: str, data: bytes, offset: int) -> None:
        if not self.step():
            return
        put(self.content[name], data, offset)
        self.unsynced[name].append((offset, bytes(data)))

    def truncate(self, name: str, size: int) -> None:
        if not self.step():
            return
        del self.content[name][size:]
        self.unsynced[name].append((size, None))

    def sync(self, name: str) -> None:
        if not self.step():
            return
        self.durable[name] = bytearray(self.content[name])
        self.unsynced[name] = []

    def after_the_cut(self) -> dict[str, bytes]:
        """What is on the disk when the power is back: each sector of an unsynced write made it there, or did not."""
        found = {}
        for name, durable in self.durable.items():
            image = bytearray(durable)
            for offset, data in self.unsynced[name]:
                if data is None:
                    if self.rng.random() < 0.5:
                        del image[offset:]
                    continue
                for start in range(0, len(data), SECTOR):
                    if self.rng.random() < 0.5:
                        put(image, data[start : start + SECTOR], offset + start)
            found[name] = bytes(image)
        return found


def put(content: bytearray, data: bytes, offset: int) -> None:
    if len(content) < offset:
        content.extend(b"\0" * (offset - len(content)))
    content[offset : offset + len(data)] = data


class PowerFile:
    """An open file of the disk."""

    def __init__(self, disk: Disk, name: str) -> None:
        self.disk, self.name = disk, name

    def xRead(self, amount: int, offset: int) -> bytes:
        return bytes(self.disk.content[self.name][offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        self.disk.write(self.name, data, offset)

    def xTruncate(self, size: int) -> None:
        self.disk.truncate(self.name, size)

    def xSync(self, flags: int) -> None:
        self.disk.sync(self.name)

    def xFileSize(self) -> int:
        return len(self.disk.content[self.name])

    def xLock(self, level: int) -> None: ...

    def xUnlock(self, level: int) -> None: ...

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return SECTOR

    def xDeviceCharacteristics(self) -> int:
        return 0

    def xClose(self) -> None: ...


class PowerDisk(apsw.VFS):
    """The disk as SQLite sees it."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(NAME, "")
        self.disk = disk

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        for files in (self.disk.durable, self.disk.content):
            files.setdefault(path, bytearray())
        self.disk.unsynced.setdefault(path, [])
        flags[1] = flags[0]
        return PowerFile(self.disk, path)

    def xAccess(self, path: str, flags: int) -> bool:
        return path in self.disk.content

    def xDelete(self, path: str, sync: bool) -> None:
        if self.disk.step():
            for files in (self.disk.durable, self.disk.content, self.disk.unsynced):
                files.pop(path, None)

    def xFullPathname(self, path: str) -> str:
        return path


class Connection:
    """An apsw connection with the methods of sqlite3 that a log uses."""

    def __init__(self, path: str, disk: Disk) -> None:
        self.disk, self.vfs = disk, PowerDisk(disk)
        self.inner = apsw.Connection(path, vfs=NAME)
        self.inner.execute("PRAGMA locking_mode=EXCLUSIVE")  # WAL without shared memory

    def execute(self, text: str, values: Any = ()) -> Any:
        return self.inner.execute(text, values)

    def executescript(self, text: str) -> None:
        self.inner.execute(text)

    def close(self) -> None:
        self.disk.gone = self.disk.steps < 0
        self.inner.close()
