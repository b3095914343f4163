"""Live changes: whoever listens to a stream hears of each new entry (server-sent events)."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool

from spillover.http.answers import Problem
from spillover.http.guard import ServerSettings
from spillover.http.metrics import Metrics
from spillover.service import StorageError
from spillover.service.log import EventLog


class Listener:
    """A connection that waits: the last number that it should hear of, and a signal that there is a new one."""

    def __init__(self, seq: int) -> None:
        self.seq = seq
        self.news = asyncio.Event()


class Listeners:
    """All who wait. What this process records is told at once; what others record is looked for every other second."""

    def __init__(self, log: EventLog, settings: ServerSettings, metrics: Metrics) -> None:
        self.log, self.settings, self.metrics = log, settings, metrics
        self.waiting: defaultdict[str, set[Listener]] = defaultdict(set)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.stopping = False

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    def changed(self, stream: str, seq: int) -> None:
        """Tell of a new entry; called by the thread that recorded it."""
        if stream in self.waiting and self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.tell, stream, seq)

    def tell(self, stream: str, seq: int) -> None:
        for listener in self.waiting.get(stream, ()):
            if seq > listener.seq:
                listener.seq = seq
                listener.news.set()

    def stop(self) -> None:
        """End all connections that wait, so that the server can stop."""
        self.stopping = True
        for listeners in self.waiting.values():
            for listener in listeners:
                listener.news.set()

    async def look(self) -> None:
        """Look for what other servers recorded; runs as long as the server."""
        while not self.stopping:
            await asyncio.sleep(self.settings.poll)
            for stream in list(self.waiting):
                try:
                    head = await run_in_threadpool(self.log.head, stream)
                except StorageError:
                    break  # it may come back
                self.tell(stream, head.seq)

    def check_room(self) -> None:
        if sum(len(listeners) for listeners in self.waiting.values()) >= self.settings.most_listeners:
            detail = f"too many connections wait for changes: must be {self.settings.most_listeners} at most"
            raise Problem(503, detail, headers={"Retry-After": "10"})

    async def listen(self, stream: str, seq: int) -> AsyncIterator[str]:
        """The events of a connection: the number of the last entry, at once and whenever there is a new one."""
        listener = Listener(seq)
        self.waiting[stream].add(listener)
        self.metrics.listening.inc()
        listener.news.set()
        try:
            while not self.stopping:
                try:
                    await asyncio.wait_for(listener.news.wait(), self.settings.heartbeat)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                listener.news.clear()
                if not self.stopping:
                    yield f"id: {listener.seq}\ndata: {json.dumps({'seq': listener.seq})}\n\n"
        finally:
            self.metrics.listening.dec()
            self.waiting[stream].discard(listener)
            if not self.waiting[stream]:
                del self.waiting[stream]
