"""Metrics of requests for Prometheus, without a breakdown by tenant."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from rag_assets.api.settings import METRICS_FOLDER

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class RequestMetrics:
    """The counts and durations of requests."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self.requests = Counter(
            "rag_assets_http_requests", "Requests answered.", labels, registry=self._registry
        )
        self.seconds = Histogram(
            "rag_assets_http_request_seconds",
            "Seconds from a request to the end of its answer.",
            ("route",),
            buckets=_BUCKETS,
            registry=self._registry,
        )

    def text(self) -> bytes:
        """Return the metrics as text for Prometheus, summed over all workers, also ended ones."""
        folder = os.environ.get(METRICS_FOLDER)
        if folder is None:
            return generate_latest(self._registry)
        all_workers = CollectorRegistry()
        MultiProcessCollector(all_workers, folder)  # type: ignore[no-untyped-call]
        return generate_latest(all_workers)
