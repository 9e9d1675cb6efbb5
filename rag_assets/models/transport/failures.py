"""Errors for failures at a provider: transient or permanent, and caused by the input or not.

No message quotes the provider, because a response may repeat a key or a text.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from ssl import SSLCertVerificationError

from rag_assets.common.errors import (
    Fault,
    InputRejected,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
)

_MAX_RETRY_SECONDS = 86_400.0
"""Maximum seconds of a pause that a server requires: longer pauses are cut to a day."""

_TRANSIENT = frozenset({408, 409, 425, 429})
_INPUT_REJECTED = frozenset({400, 413, 422})
_FAULTS: Mapping[int, Fault] = {401: "key", 402: "quota", 403: "key", 404: "model"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """The facts about a response that reports a failure."""

    status: int
    headers: Mapping[str, str]
    fault: Fault | None = None
    """The fault that the body states, if the status does not imply a fault."""
    retry_after: float | None = None
    """Seconds to wait that the body requires."""


class HttpRefusal(Exception):
    """The error for a failed response, without its content, which may repeat a key or a text."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.headers = headers


def classify_refusal(refusal: Refusal, model: str) -> ProviderError:
    """Return the error for a refusal."""
    status = refusal.status
    fault = refusal.fault or _FAULTS.get(status)
    if fault is not None:
        return _build_refused_error(fault, status, model)
    if status in _INPUT_REJECTED:
        return InputRejected(f"{model} rejects a text (HTTP {status})")
    if status in _TRANSIENT or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _build_unavailable_error(refusal, model)
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return ProviderRefused(
            f"{model} redirects to a different address (HTTP {status}), which is not followed",
            hint="set base_url to that address if this is intended",
            fault="address",
        )
    return ProviderRefused(
        f"{model} refuses the request (HTTP {status})",
        hint="check the model and base_url in tenants.yaml",
    )


def classify_interruption(error: BaseException, model: str) -> ProviderError:
    """Return the error for a broken connection, which is usually transient.

    If one of its causes is an error of this project, such as an address that is not permitted, that
    error is returned unchanged. A certificate that cannot be verified is a permanent failure, which
    needs a person.
    """
    for cause in iter_causes(error):
        if isinstance(cause, ProviderError):
            return cause
        if isinstance(cause, SSLCertVerificationError):
            return ProviderRefused(
                f"{model} has a certificate that cannot be verified",
                hint="check base_url and the certificate of the server",
                fault="address",
            )
        if isinstance(cause, TimeoutError) or "Timeout" in type(cause).__name__:
            return ProviderUnavailable(f"{model} did not answer in time")
    error = ProviderUnavailable(f"{model} cannot be reached, or closed the connection")
    error.may_be_input = True
    return error


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that a response's headers require; None without such a header."""
    milliseconds = _parse_seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    header = headers.get("retry-after")
    seconds = _parse_seconds(header)
    if seconds is not None or header is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _build_unavailable_error(refusal: Refusal, model: str) -> ProviderUnavailable:
    stated_seconds = refusal.retry_after
    wait = parse_retry_after(refusal.headers) if stated_seconds is None else stated_seconds
    wait = None if wait is None else min(wait, _MAX_RETRY_SECONDS)
    is_limited = refusal.status == HTTPStatus.TOO_MANY_REQUESTS
    problem = "limits requests" if is_limited else "is unavailable"
    error = ProviderUnavailable(f"{model} {problem} (HTTP {refusal.status})", retry_after=wait)
    error.is_limited = is_limited
    error.may_be_input = wait is None and refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return error


def _build_refused_error(fault: Fault, status: int, model: str) -> ProviderRefused:
    if fault == "key":
        return ProviderRefused(
            f"the key for {model} is refused (HTTP {status})",
            hint="set a valid key with `rag-assets keys set`",
            fault=fault,
        )
    if fault == "quota":
        return ProviderRefused(
            f"the quota for {model} is exhausted (HTTP {status})",
            hint="increase the quota at the provider, then run `rag-assets sync`",
            fault=fault,
        )
    return ProviderRefused(
        f"the provider has no such model: {model} (HTTP {status})",
        hint="check the model and base_url in tenants.yaml",
        fault=fault,
    )


def _parse_seconds(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def iter_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, outermost first."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def build_unsent_refusal(message: str, *, hint: str | None = None) -> ProviderRefused:
    """Return the error for a request that was refused here and not sent."""
    error = ProviderRefused(message, hint=hint, fault="address")
    error.requests = 0
    return error
