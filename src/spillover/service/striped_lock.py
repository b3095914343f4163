"""Locks by name, of which there may be any number, in a fixed amount of memory."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

STRIPES = 1_024


class StripedLock:
    """A lock for every name; a few names share one."""

    def __init__(self) -> None:
        self.locks = [threading.Lock() for _ in range(STRIPES)]

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        with self.locks[crc32(name.encode()) % STRIPES]:
            yield
