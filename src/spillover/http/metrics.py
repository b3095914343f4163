"""Figures for Prometheus. No name of a stream, arm or token is among them."""

import os

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
MEDIA_TYPE = CONTENT_TYPE_LATEST
SHARED = "PROMETHEUS_MULTIPROC_DIR"  # where several worker processes keep their figures


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
