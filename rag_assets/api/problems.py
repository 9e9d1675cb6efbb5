"""Everything that can go wrong, as problem documents (RFC 9457), decided in one table.

A problem of ours is told by its kind alone; what it says about our servers goes into the log,
under the request's id.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from rag_assets.api.admission import ClientGone, Overloaded
from rag_assets.api.identity import Forbidden, ForeignOrigin, Unauthenticated
from rag_assets.api.invalid_fields import InvalidField, invalid_fields
from rag_assets.api.log_lines import LOGGER
from rag_assets.api.rate_limits import TooManyAttempts, TooManyRequests
from rag_assets.common.errors import (
    BadVectors,
    CapReached,
    ChatFailed,
    ChatRefused,
    ChatTimeout,
    ChatUnavailable,
    EmbedderRefused,
    EmbedderUnavailable,
    EmbeddingError,
    IndexInconsistent,
    InputRejected,
    InvalidRequest,
    KeyUnreadable,
    NoChatModel,
    NoProviderKey,
    NoRecordsSource,
    NoReranker,
    PassagesWithdrawn,
    PromptRejected,
    RagAssetsError,
    SearchRejected,
    ServiceUnavailable,
    TenantBusy,
    TenantGone,
    UnknownDocument,
    UnknownSource,
    UnknownTenant,
)

MEDIA_TYPE = "application/problem+json"
_INTERNAL = 500
_RETRY_SECONDS = 5


class Problem(BaseModel):
    """A problem document.

    Attributes:
        type: names the kind of problem, and stays the same from version to version.
        title: the kind in words.
        status: of the response.
        detail: what is wrong and what to do.
        request_id: under which the log knows it.
        errors: of a request that is not valid.
    """

    type: str
    title: str
    status: int
    detail: str | None = None
    request_id: str = ""
    errors: list[InvalidField] | None = Field(default=None)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem.

    Attributes:
        name: in its type.
        detail: what whoever asks is told, in place of what the operator would be.
    """

    status: int
    name: str
    title: str
    detail: str | None = None


_NO_TENANT = Kind(
    404,
    "unknown-tenant",
    "There is no such tenant",
    detail="it was removed, or there never was one; ask whoever runs the service",
)
INVALID = Kind(422, "invalid-request", "The request is not valid")
_KINDS: Mapping[type[RagAssetsError], Kind] = {
    Unauthenticated: Kind(401, "unauthenticated", "A valid token is needed"),
    NoProviderKey: Kind(402, "no-provider-key", "The tenant has no key for its provider"),
    CapReached: Kind(402, "cap-reached", "The tenant's cap on spending is reached"),
    Forbidden: Kind(403, "forbidden", "The token is not for this"),
    ForeignOrigin: Kind(403, "foreign-origin", "Web pages of this origin may not ask"),
    UnknownTenant: _NO_TENANT,
    TenantGone: _NO_TENANT,
    UnknownDocument: Kind(404, "unknown-document", "There is no such document"),
    UnknownSource: Kind(404, "unknown-source", "The tenant has no such source"),
    NoReranker: Kind(409, "no-reranker", "The tenant has no reranker"),
    NoRecordsSource: Kind(409, "no-records-source", "It is not clear where records go"),
    NoChatModel: Kind(409, "no-chat-model", "The tenant has no chat model that could be asked"),
    PassagesWithdrawn: Kind(409, "passages-withdrawn", "What the answer rests on was withdrawn"),
    InvalidRequest: INVALID,
    InputRejected: Kind(422, "question-rejected", "The question cannot be embedded"),
    PromptRejected: Kind(422, "prompt-rejected", "The chat model rejects the request"),
    SearchRejected: Kind(422, "search-rejected", "The search is more than the index takes"),
    TooManyRequests: Kind(429, "too-many-requests", "The token's rate is exceeded"),
    TooManyAttempts: Kind(429, "too-many-attempts", "Too many requests came without a valid token"),
    ClientGone: Kind(499, "client-gone", "The client has hung up"),
    BadVectors: Kind(502, "embedder-failed", "The embedding provider failed"),
    EmbedderRefused: Kind(502, "embedder-refused", "The embedding provider refuses"),
    ChatFailed: Kind(502, "chat-failed", "The chat model's provider failed"),
    ChatRefused: Kind(502, "chat-refused", "The chat model's provider refuses"),
    KeyUnreadable: Kind(500, "key-unreadable", "The tenant's key cannot be used"),
    EmbedderUnavailable: Kind(503, "embedder-unavailable", "The embedding provider is away"),
    EmbeddingError: Kind(503, "embedder-unavailable", "The question could not be embedded"),
    Overloaded: Kind(
        503, "overloaded", "More requests wait than can be answered soon", "ask again"
    ),
    ChatUnavailable: Kind(503, "chat-unavailable", "The chat model's provider is away"),
    ChatTimeout: Kind(504, "chat-late", "The chat model took too long"),
    IndexInconsistent: Kind(503, "index-inconsistent", "The tenant's index is being mended"),
    TenantBusy: Kind(503, "tenant-busy", "The tenant is being written to", "ask again"),
    ServiceUnavailable: Kind(503, "unavailable", "A server that is needed is away"),
    RagAssetsError: Kind(500, "internal", "The service failed"),
}
_HTTP: Mapping[int, Kind] = {
    kind.status: kind
    for kind in (
        Kind(400, "bad-request", "The request cannot be read"),
        Kind(404, "not-found", "There is nothing at this address"),
        Kind(405, "method-not-allowed", "This address does not take that method"),
        Kind(408, "too-slow", "The request came too slowly"),
        Kind(413, "too-large", "The request is too large"),
        Kind(414, "address-too-long", "The request's address is too long"),
        Kind(415, "unsupported-encoding", "The body is compressed, which is not read here"),
        Kind(431, "head-too-large", "The request's headers are too many or too large"),
    )
}


class Refused(HTTPException):
    """A request that is refused by a status, with something to say that repeats nothing of it."""


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How OpenAPI is told that a route answers these statuses with a problem."""
    return {status: {"model": Problem, "description": _described(status)} for status in statuses}


def handle_problems(app: FastAPI) -> None:
    """Let an application answer every failure that is foreseen with a problem document."""
    app.add_exception_handler(RagAssetsError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)


def problem_response(
    request_id: str,
    kind: Kind,
    detail: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    errors: list[InvalidField] | None = None,
) -> JSONResponse:
    """A problem as a response."""
    problem = Problem(
        type=f"urn:rag-assets:problem:{kind.name}",
        title=kind.title,
        status=kind.status,
        detail=detail,
        request_id=request_id,
        errors=errors,
    )
    return JSONResponse(
        problem.model_dump(exclude_none=True), kind.status, dict(headers or {}), MEDIA_TYPE
    )


def unexpected(request_id: str, error: Exception) -> JSONResponse:
    """The response to a failure that nobody foresaw."""
    kind, _ = _judged(request_id, error)
    return problem_response(request_id, kind)


def told(error: Exception, request_id: str) -> str:
    """A problem in one line, for doors that answer in words; logged as if it were a response."""
    kind, detail = _judged(request_id, error)
    return detail or f"{kind.title} (request {request_id})"


def http_kind(status: int) -> Kind:
    """The kind of a problem that is told by its status alone."""
    return _HTTP.get(status) or Kind(status, "http", "The request cannot be served")


def _described(status: int) -> str:
    kinds = [*_KINDS.values(), *_HTTP.values(), INVALID]
    return "; ".join(dict.fromkeys(kind.title for kind in kinds if kind.status == status))


async def _ours(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RagAssetsError)  # noqa: S101
    request_id = request.state.request_id
    kind, detail = _judged(request_id, error)
    return problem_response(request_id, kind, detail, headers=_headers(error, kind))


def _judged(request_id: str, error: Exception) -> tuple[Kind, str | None]:
    """The kind of a failure, and what whoever asked may know of it; the log gets the rest."""
    if not isinstance(error, RagAssetsError):
        # Its message may quote a document or a key, so only its kind is logged.
        reason = f"unexpected {type(error).__name__}"
        LOGGER.error("problem", extra={"request_id": request_id, "reason": reason})
        return _KINDS[RagAssetsError], None
    kind = next(_KINDS[base] for base in type(error).__mro__ if base in _KINDS)
    if kind.status < _INTERNAL:
        return kind, kind.detail or error.advice
    LOGGER.warning("problem", extra={"request_id": request_id, "reason": error.advice})
    return kind, kind.detail


def _headers(error: RagAssetsError, kind: Kind) -> Mapping[str, str]:
    match error:
        case Unauthenticated():
            return {"WWW-Authenticate": 'Bearer realm="rag-assets"'}
        case TooManyRequests() | TooManyAttempts() | Overloaded():
            return {"Retry-After": str(error.retry_after)}
        case EmbedderUnavailable() | ChatUnavailable() if error.retry_after is not None:
            return {"Retry-After": str(math.ceil(error.retry_after))}
    return {"Retry-After": str(_RETRY_SECONDS)} if kind.status == 503 else {}  # noqa: PLR2004


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    errors = invalid_fields(error.errors(), request.app.state.description.names)
    return problem_response(
        request.state.request_id, INVALID, "mend the fields that are named", errors=errors
    )


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    kind = http_kind(error.status_code)
    # What libraries say may repeat what was sent.
    detail = error.detail if isinstance(error, Refused) else None
    return problem_response(request.state.request_id, kind, detail, headers=error.headers)
