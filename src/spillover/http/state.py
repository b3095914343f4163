"""What the routes of a server share: the service, the tokens, those who wait for changes, the metrics."""

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from anyio import CapacityLimiter
from fastapi import Header, Path, Request, Response

from spillover.http.access import Caller, TokenFile
from spillover.http.answers import Json
from spillover.http.changes import Listeners
from spillover.http.guard import ServerSettings, is_loopback
from spillover.http.metrics import Metrics
from spillover.service import Receipt, Service
from spillover.service.decisions import warm_up
from spillover.service.events import Entry
from spillover.service.open_streams import Watcher

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
