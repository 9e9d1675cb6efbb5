"""Conversion of calls to requests, and of responses to answers, errors or retries.

The blocking and the asynchronous client only send and wait.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, TypedDict, TypeVar
from urllib.parse import urlsplit

import httpx2
from pydantic import TypeAdapter, ValidationError

from rag_assets.api.responses import Problem
from rag_assets.client.calls import Call, FormFile
from rag_assets.client.errors import NotReached, NotSent, NotUnderstood, build_refusal
from rag_assets.common.errors import ConfigurationError


class ClientOptions(TypedDict):
    """Arguments of a client from environment variables.

    | variable | default | meaning |
    |---|---|---|
    | RAG_ASSETS_URL | http://127.0.0.1:8000 | address of the service |
    | RAG_ASSETS_TOKEN | required | a service token or a JWT |
    | RAG_ASSETS_TENANT | none | default for calls without a tenant |
    | RAG_ASSETS_PROJECT | none | default for calls about guidelines or code without a project |
    """

    url: str
    token: str
    tenant: str | None
    project: str | None


def from_environment(environ: Mapping[str, str] | None = None) -> ClientOptions:
    """Read the arguments of a client from environment variables; see ClientOptions."""
    env = os.environ if environ is None else environ
    token = env.get("RAG_ASSETS_TOKEN")
    if not token:
        raise ConfigurationError(
            "RAG_ASSETS_TOKEN is not set",
            hint="create a service token with `rag-assets tokens create`",
        )
    return ClientOptions(
        url=env.get("RAG_ASSETS_URL") or "http://127.0.0.1:8000",
        token=token,
        tenant=env.get("RAG_ASSETS_TENANT") or None,
        project=env.get("RAG_ASSETS_PROJECT") or None,
    )


T = TypeVar("T")

FAILURES = (httpx2.TransportError, httpx2.InvalidURL, ValueError)
"""Errors raised when a request gets no answer; ValueError if it cannot be encoded."""

_CONNECT_SECONDS = 5.0
_PAUSE_SECONDS = 0.2
_FIRST_REFUSED_STATUS = 400
_RATE_EXCEEDED_STATUS = 429
_UNAVAILABLE_STATUS = 503


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of a client; see BaseClient."""

    url: str
    token: str | Callable[[], str] = field(repr=False)
    tenant: str | None
    timeout: float
    retries: int
    patience: float
    allow_http: bool = False
    project: str | None = None

    def __post_init__(self) -> None:
        scheme, host = _parse_address(self.url)
        if scheme == "http" and not (self.allow_http or _is_loopback(host)):
            raise ConfigurationError(
                f"the token would be sent to {host} without encryption",
                hint="use https, or set allow_http=True if the network is trusted",
            )

    def build_client_arguments(self) -> dict[str, Any]:
        """Return the keyword arguments for creating an HTTP client of httpx2."""
        return {
            "base_url": self.url,
            # A redirect could send the token to another host.
            "follow_redirects": False,
            # A proxy from the environment would get the token, and cannot reach loopback.
            "trust_env": not _is_loopback(_parse_address(self.url)[1]),
        }

    def build_request_arguments(self, call: Call[Any]) -> dict[str, Any]:
        """Return the keyword arguments with which httpx2 sends a call."""
        request = call.with_defaults(self.tenant, self.project)
        content_type = {} if request.lines is None else {"Content-Type": "application/x-ndjson"}
        return {
            **_build_form(request.file),
            "content": request.content if request.lines is None else request.lines,
            "method": request.method,
            "url": request.address,
            "params": {n: value for n, value in request.parameters.items() if value is not None},
            "json": request.body,
            "timeout": httpx2.Timeout(max(self.timeout, request.seconds), connect=_CONNECT_SECONDS),
            "headers": {
                **content_type,
                **request.headers,
                "Authorization": f"Bearer {self._get_token()}",
            },
        }

    def _get_token(self) -> str:
        token = self.token if isinstance(self.token, str) else self.token()
        if not re.fullmatch(r"[\x21-\x7e]+", token):
            raise ConfigurationError(
                "the token is empty or contains invalid characters",
                hint="use a service token from `rag-assets tokens create`, or a JWT",
            )
        return token

    def iter_pauses(self) -> Iterator[float | None]:
        """Yield the minimum wait before each further attempt, in seconds; None after the last."""
        for attempt in range(self.retries):
            yield _PAUSE_SECONDS * 2**attempt
        yield None


@dataclass(frozen=True, slots=True)
class Retry:
    """A decision to send a request again after a number of seconds."""

    seconds: float


def parse_outcome(
    call: Call[T], response: httpx2.Response, settings: ClientSettings, pause: float | None
) -> T | Retry:
    """Return the answer in a response, or a Retry if the call should be sent again.

    Args:
        pause: minimum wait before another attempt, in seconds; None if no attempt remains.

    Raises:
        Refused: the service did not serve the request.
        NotUnderstood: the response does not come from this service.
    """
    if response.is_success:
        return _parse_answer(call, response)
    after = _parse_retry_after(response.headers)
    should_retry = response.status_code == _RATE_EXCEEDED_STATUS or (
        response.status_code == _UNAVAILABLE_STATUS and call.repeatable
    )
    if should_retry and pause is not None and after is not None and after <= settings.patience:
        return Retry(max(pause, after))
    raise build_refusal(_parse_problem(response), after)


def handle_failure(call: Call[Any], error: Exception, pause: float | None) -> Retry:
    """Return a Retry if a call without an answer should be sent again, or raise an error.

    Args:
        error: an instance of FAILURES.
        pause: minimum wait before another attempt, in seconds; None if no attempt remains.

    Raises:
        NotReached: the call should not be sent again.
        NotSent: the call cannot be sent.
    """
    is_sendable = isinstance(error, httpx2.TransportError)
    if not is_sendable or isinstance(error, httpx2.LocalProtocolError):
        # The original error contains the request.
        raise NotSent(
            f"{call.method} {call.path}: the request contains a value that cannot be sent",
            hint="use finite numbers, valid Unicode without lone surrogates, headers without line"
            " ends, and no very long address",
        ) from None
    # The service may have closed an idle persistent connection. Timeouts are not retried.
    is_transient = isinstance(error, httpx2.NetworkError | httpx2.RemoteProtocolError)
    if is_transient and call.repeatable and pause is not None:
        return Retry(pause)
    is_timeout = isinstance(error, httpx2.TimeoutException)
    raise NotReached(
        f"{call.method} {call.path}: {'no answer in time' if is_timeout else 'no answer'}",
        hint="check that the service runs and can be reached",
    ) from error


def _build_form(file: FormFile | None) -> dict[str, Any]:
    """Return the keyword arguments with which httpx2 sends a form; empty without a file."""
    if file is None:
        return {}
    fields = {name: value for name, value in file.fields.items() if value is not None}
    # The fields come first, so that the service knows them before it receives the file.
    return {"data": fields, "files": {"file": (file.name, file.content)}}


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _parse_address(url: str) -> tuple[str, str]:
    """Return the scheme and host of a service's address.

    Raises:
        ConfigurationError: the address lacks scheme or host, or contains a user name and a
            password, which would replace the token.
    """
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in {"http", "https"} and parts.hostname and "@" not in parts.netloc
    except ValueError:
        is_usable = False
    if not is_usable or re.search(r"\s", url):
        raise ConfigurationError(
            "the service's address is not usable",
            hint="use an address such as https://rag.example, without user name and password",
        )
    return parts.scheme, parts.hostname or ""


def _parse_answer(call: Call[T], response: httpx2.Response) -> T:
    if call.answer is str:
        return response.text  # type: ignore[return-value]
    kind: Any = call.answer
    try:
        answer: T = _get_adapter(kind).validate_json(response.content)
    except ValidationError as error:
        # The original message would quote the answer.
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field_path = ".".join(map(str, first["loc"])) or "the answer"
        raise NotUnderstood(
            f"{call.method} {call.path}: {field_path}: {first['msg']}",
            hint=(
                "check the address of the service, and that service and client have the same "
                "version"
            ),
        ) from None
    return answer


def _parse_problem(response: httpx2.Response) -> Problem:
    try:
        problem: Problem = _get_adapter(Problem).validate_json(response.content)
    except ValidationError:
        # The response comes from a proxy in front of the service.
        return Problem(
            "about:blank",
            _get_phrase(response.status_code),
            response.status_code,
            request_id=response.headers.get("x-request-id", ""),
        )
    return problem


def _get_phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "unknown status"


def _parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return Retry-After in seconds, from a number or a date; None if it is neither."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdecimal():
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return float(max(0, math.ceil((until - datetime.now(UTC)).total_seconds())))


@cache
def _get_adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
