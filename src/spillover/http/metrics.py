"""Figures for Prometheus. No name of a stream, arm or token is among them."""

import os
import time

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
