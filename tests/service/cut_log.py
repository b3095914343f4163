"""A log on a simulated disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from spillover.service.errors import StorageError
from spillover.service.log import SqliteLog
from tests.service.power import Connection, Disk


class CutLog(SqliteLog):
    """A log on a disk whose power will be cut; it has one connection, which reads and writes."""

    def __init__(self, path: Path, disk: Disk, synchronous: str = "FULL") -> None:
        self.disk = disk
        super().__init__(path, synchronous=synchronous)

    def connect(self, path: Path, *, readonly: bool = False) -> Any:
        return Connection(path.name, self.disk)

    def commit_together(self, jobs: Any) -> Any:
        try:
            return super().commit_together(jobs)
        except apsw.Error as error:
            return [StorageError(str(error)) for _ in jobs]

    @contextmanager
    def reading(self) -> Iterator[Any]:
        yield self.writer
