"""Middleware for all requests: ids, response headers, metrics and the log."""

from __future__ import annotations

import os
import re
import time
import uuid

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag_assets.api.admission import CLIENT_GONE
from rag_assets.api.log_lines import LOGGER
from rag_assets.api.problems import answer_unexpected_error
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

    def render(self) -> bytes:
        """Return the metrics of all workers, also of ended workers, as text for Prometheus."""
        folder = os.environ.get(METRICS_FOLDER)
        if folder is None:
            return generate_latest(self._registry)
        all_workers = CollectorRegistry()
        MultiProcessCollector(all_workers, folder)  # type: ignore[no-untyped-call]
        return generate_latest(all_workers)


_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestMiddleware:
    """Middleware that gives requests ids, answers unexpected errors, and records the outcome."""

    def __init__(self, app: ASGIApp, metrics: RequestMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        requested_id = Headers(scope=scope).get("x-request-id", "")
        request_id = requested_id if _REQUEST_ID.fullmatch(requested_id) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                headers.setdefault("Cache-Control", "no-store")
                headers["X-Content-Type-Options"] = "nosniff"
            await send(message)

        async def wait_for_disconnect() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        CLIENT_GONE.set(wait_for_disconnect)
        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as error:
            refusal = answer_unexpected_error(request_id, error)
            if not status:
                await refusal(scope, receive, send_with_headers)
        finally:
            self._record(scope, status, time.perf_counter() - started)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        # The path may contain data of the caller, so only the route is logged.
        route = getattr(scope.get("route"), "path", "none")
        self._metrics.requests.labels(_get_method(scope), route, status).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        state = scope["state"]
        fields = {"method": _get_method(scope), "route": route, "status": status}
        fields |= {
            name: state[name] for name in ("request_id", "caller", "tenant") if name in state
        }
        LOGGER.info("request", extra={**fields, "ms": round(1_000 * seconds, 1)})


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a receive channel that first replays a body that was already read."""
    replayed = False

    async def replay() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _get_method(scope: Scope) -> str:
    known = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
    return scope["method"] if scope["method"] in known else "other"
