"""The state that the routes of a server share: the service, the tokens, those who wait for changes, the metrics."""

import asyncio
import json
import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from anyio import CapacityLimiter
from fastapi import Header, Path, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spillover.http.access import Caller, ServerSettings, TokenFile, is_loopback
from spillover.http.messages import Problem
from spillover.service import Receipt, Service, StorageError
from spillover.service.decisions import warm_up
from spillover.service.events import Entry, json_text
from spillover.service.log import EventLog
from spillover.service.open_streams import Watcher

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
MEDIA_TYPE = CONTENT_TYPE_LATEST
SHARED = "PROMETHEUS_MULTIPROC_DIR"  # where several worker processes keep their figures
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Metrics:
    """What a server counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "spillover_requests", "Requests answered.", ("method", "route", "status"), registry=self.registry
        )
        self.latency = Histogram(
            "spillover_request_seconds",
            "Seconds until a request was answered.",
            ("method", "route"),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.appended = Counter("spillover_events", "Events appended to the log.", ("kind",), registry=self.registry)
        self.outcomes = Counter("spillover_outcomes", "Outcomes by status.", ("status",), registry=self.registry)
        self.folds = Histogram(
            "spillover_fold_seconds", "Seconds to fold a stream.", buckets=SECONDS, registry=self.registry
        )
        self.open_streams = Gauge(
            "spillover_streams_open", "Streams in memory.", registry=self.registry, multiprocess_mode="livesum"
        )
        self.listening = Gauge(
            "spillover_listeners",
            "Connections that wait for changes.",
            registry=self.registry,
            multiprocess_mode="livesum",
        )

    def text(self) -> bytes:
        """All figures, of all worker processes if there are several."""
        if os.environ.get(SHARED):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            return generate_latest(registry)
        return generate_latest(self.registry)


class Watch:
    """A layer that measures."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, sending)
        finally:
            method = scope["method"] if scope["method"] in METHODS else "other"
            route = route_path(scope)
            self.metrics.requests.labels(method, route, str(status)).inc()
            self.metrics.latency.labels(method, route).observe(time.perf_counter() - start)


def route_path(scope: Scope) -> str:
    """The path of the route with the names of its parts, not their values."""
    route = scope.get("route")
    return "none" if route is None else str(route.path)


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


logger = logging.getLogger(__name__)


class ServerState(Watcher):
    """What a server knows; it tells the metrics, and those who wait for changes, of what is recorded."""

    def __init__(self, service: Service, settings: ServerSettings, say: Callable[[str], None]) -> None:
        self.service, self.settings, self.say = service, settings, say
        self.tokens = TokenFile(settings.tokens)
        self.tokens.current()  # a file that cannot be read is said at the start
        # another name is for a proxy, behind which everybody comes from this machine
        self.needs_token = bool(settings.hosts) or not is_loopback(settings.host)
        self.metrics = Metrics()
        self.listeners = Listeners(service.log, settings, self.metrics)
        self.readers: CapacityLimiter  # threads for requests that read
        self.lookouts: CapacityLimiter  # threads for those who ask whether the server works
        self.ready = threading.Event()
        service.open_streams.watcher = self

    def begin(self) -> None:
        """Prepare what belongs to an event loop, inside it, and what decisions need, in a thread."""
        self.stopped = threading.Event()
        self.warming = threading.Thread(target=self.warm_up, name="spillover-warm-up", daemon=True)
        self.warming.start()
        self.readers, self.lookouts = CapacityLimiter(self.settings.readers), CapacityLimiter(1)
        self.listeners.begin(asyncio.get_running_loop())

    def warm_up(self) -> None:
        try:
            warm_up(self.stopped, self.say)
        except Exception:
            logger.exception("warming up failed: the first decisions may take long")
        if not self.stopped.is_set():
            self.ready.set()
            self.say("ready")

    def end(self) -> None:
        """Stop to prepare, and end all connections that wait."""
        self.stopped.set()
        self.listeners.stop()
        self.warming.join()

    def recorded(self, entry: Entry) -> None:
        self.metrics.appended.labels(entry.event.kind).inc()
        self.listeners.changed(entry.stream, entry.seq)

    def folded(self, entries: int, seconds: float) -> None:
        self.metrics.folds.observe(seconds)


class Json(Response):
    """JSON without NaN or infinities."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json_text(content).encode()


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request that may be answered: who asks, under which idempotency key."""

    server: ServerState
    caller: Caller
    key: str | None

    @property
    def service(self) -> Service:
        return self.server.service

    @property
    def recorded_by(self) -> dict[str, Any]:
        """The arguments of all calls that record something."""
        return {"key": self.key, "author": self.caller.name}

    def receipt(self, receipt: Receipt, **extra: Any) -> Response:
        """The answer to a request that recorded something; 200 if it had been recorded before."""
        text = receipt.entry.to_json({"again": receipt.again, **extra})
        return Response(text, 200 if receipt.again else 201, media_type=Json.media_type)


KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        min_length=1,
        description="The same key with the same request gives the first answer again; with another one it is a 409.",
    ),
]


def call_of(request: Request, key: str | None = None) -> Call:
    return Call(server=request.app.state.server, caller=request.state.caller, key=key)


StreamName = Annotated[str, Path(description="The name of the stream.", max_length=200)]
