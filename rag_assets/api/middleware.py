"""What surrounds every request: its id, its line in the log, its figures."""

from __future__ import annotations

import re
import time
import uuid

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag_assets.api.admission import CLIENT_GONE
from rag_assets.api.log_lines import LOGGER
from rag_assets.api.problems import unexpected

_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Figures:
    """Counts and durations of requests, of no tenant's in particular."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self.requests = Counter(
            "rag_assets_http_requests", "Requests answered.", labels, registry=self.registry
        )
        self.seconds = Histogram(
            "rag_assets_http_request_seconds",
            "Seconds from a request to the end of its answer.",
            ("route",),
            buckets=_BUCKETS,
            registry=self.registry,
        )


class Surrounded:
    """Gives each request an id and an end, and records how it ended.

    Args:
        app: answers the request.
        figures: are added to.
    """

    def __init__(self, app: ASGIApp, figures: Figures) -> None:
        self._app = app
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _GIVEN_ID.fullmatch(given) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                answer = MutableHeaders(scope=message)
                answer["X-Request-ID"] = request_id
                answer["Cache-Control"] = "no-store"
                answer["X-Content-Type-Options"] = "nosniff"
            await send(message)

        async def hung_up() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        CLIENT_GONE.set(hung_up)
        try:
            await self._app(scope, receive, noting)
        except Exception as error:
            refusal = unexpected(request_id, error)
            if not status:
                await refusal(scope, receive, noting)
        finally:
            self._record(scope, status, time.perf_counter() - started)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        # Not the path: it holds what was sent.
        route = getattr(scope.get("route"), "path", "none")
        self._figures.requests.labels(_method(scope), route, status).inc()
        self._figures.seconds.labels(route).observe(seconds)
        state = scope["state"]
        said = {"method": _method(scope), "route": route, "status": status}
        said |= {name: state[name] for name in ("request_id", "caller", "tenant") if name in state}
        LOGGER.info("request", extra={**said, "ms": round(1_000 * seconds, 1)})


def replayed(body: bytes, receive: Receive) -> Receive:
    """What receives a body that was read before, and then what comes after it."""
    done = False

    async def replay() -> Message:
        nonlocal done
        if done:
            return await receive()
        done = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _method(scope: Scope) -> str:
    known = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
    return scope["method"] if scope["method"] in known else "other"
