"""Problem documents (RFC 9457): the kind of each error, in one table, and the responses.

The response to a server error contains only its kind; details are logged with the request's id.
"""

from __future__ import annotations

import math
import re
from asyncio import to_thread
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException

from rag_assets.api.admission import ClientGone, Overloaded
from rag_assets.api.identity import Forbidden, ForeignOrigin, Unauthenticated
from rag_assets.api.log_lines import LOGGER
from rag_assets.api.rate_limits import RetryLater, TooManyAttempts, TooManyRequests
from rag_assets.api.responses import InvalidField, Problem
from rag_assets.common.errors import (
    BlobMissing,
    CapReached,
    ChatFailed,
    ChatRefused,
    ChatTimeout,
    ChatUnavailable,
    ConfiguredByOperator,
    DeletionsHeld,
    IndexInconsistent,
    InputRejected,
    InvalidRequest,
    KeyUnreadable,
    MalformedResponse,
    NoChatModel,
    NoProviderKey,
    NoRecordsSource,
    NoReranker,
    NoUploadsSource,
    NoVectorBackend,
    OnHold,
    PassagesWithdrawn,
    PromptRejected,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    RagAssetsError,
    RestorePending,
    RoleRefused,
    SchemaTooNew,
    SearchRejected,
    ServiceUnavailable,
    TenantBusy,
    TenantGone,
    TransientFailure,
    UnknownDocument,
    UnknownProject,
    UnknownRun,
    UnknownSource,
    UnknownTenant,
    UploadRefused,
    UploadsFull,
    UploadTooLarge,
    UploadUnreadable,
    VersionChanged,
)
from rag_assets.common.errors import ProblemKind as Kind
from rag_assets.common.failure_kinds import OF_PROVIDERS, WORDS, failure_kind
from rag_assets.common.invalid_values import InvalidFields, allowed_value, sent_value
from rag_assets.plugins.registry import installed_systems

_MAX_FIELDS = 50
"""Maximum number of invalid fields in a response."""
_BODY_ERRORS = frozenset({"dict_type", "model_attributes_type", "model_type"})
"""Types of errors about a whole body, which is not parsed if its Content-Type is wrong."""
_MAX_DEPTH = 12
"""Maximum number of parts in the path of a field."""


def list_invalid_fields(
    errors: Sequence[Mapping[str, Any]], names: Collection[str]
) -> list[InvalidField]:
    """Return the first invalid fields of a validation.

    Args:
        names: names in the OpenAPI description; other names may be secrets of the caller.
    """
    return [
        InvalidField(field=_format_path(error, names), problem=_describe_error(error))
        for error in errors[:_MAX_FIELDS]
    ]


def _format_path(error: Mapping[str, Any], names: Collection[str]) -> str:
    path = [*error["loc"][1:]]
    if error["type"] == "union_tag_invalid":
        path.append(error["ctx"]["discriminator"].strip("'"))
    parts = [str(p) if isinstance(p, int) or p in names else "*" for p in path[:_MAX_DEPTH]]
    return re.sub(r"\*(\.\*)+", "*", ".".join(parts)) or "body"


def _describe_error(error: Mapping[str, Any]) -> str:
    if error["type"] in _BODY_ERRORS and len(error["loc"]) == 1:
        return "it must be a JSON object, sent with Content-Type: application/json"
    allowed = allowed_value(error)
    # In a URL, every value is a string.
    sent = sent_value(error) if error["loc"][0] == "body" else None
    return allowed if sent is None else f"{allowed}; got {sent}"


MEDIA_TYPE = "application/problem+json"
_UNAUTHORIZED = 401
_INTERNAL = 500
_RETRY_SECONDS = 5
_PROBLEM = TypeAdapter(Problem)


_NO_TENANT = Kind(
    404,
    "unknown-tenant",
    "There is no such tenant",
    detail="it was removed, or never existed; contact the operator of the service",
)
INVALID = Kind(422, "invalid-request", "The request is not valid")
KINDS: Mapping[type[RagAssetsError], Kind] = {
    Unauthenticated: Kind(401, "unauthenticated", "A valid token is required"),
    NoProviderKey: Kind(402, "no-provider-key", "The tenant has no key for its provider"),
    CapReached: Kind(402, "cap-reached", "The tenant's cap on spending is reached"),
    Forbidden: Kind(403, "forbidden", "The token does not permit this request"),
    RoleRefused: Kind(
        403, "role-refused", "The caller's role does not permit this request to this tenant"
    ),
    ForeignOrigin: Kind(403, "foreign-origin", "Web pages of this origin are not allowed"),
    UnknownTenant: _NO_TENANT,
    TenantGone: _NO_TENANT,
    UnknownDocument: Kind(404, "unknown-document", "There is no such document"),
    UnknownProject: Kind(404, "unknown-project", "There is no such project"),
    UnknownRun: Kind(404, "unknown-run", "The project has no such run"),
    NoVectorBackend: Kind(
        409, "no-vector-backend", "The installation cannot answer from this back end"
    ),
    UnknownSource: Kind(404, "unknown-source", "The tenant has no such source"),
    ConfiguredByOperator: Kind(
        409,
        "configured-by-operator",
        "The operator configures this",
        detail="contact the operator of the service",
    ),
    NoReranker: Kind(409, "no-reranker", "The tenant has no reranker"),
    NoUploadsSource: Kind(
        409, "no-uploads-source", "The tenant does not have exactly one source of uploads"
    ),
    NoRecordsSource: Kind(
        409, "no-records-source", "The tenant does not have exactly one source of records"
    ),
    NoChatModel: Kind(409, "no-chat-model", "The tenant has no usable chat model"),
    DeletionsHeld: Kind(409, "deletions-held", "Too many records would be removed at once"),
    OnHold: Kind(409, "on-hold", "The document is on hold and must not be deleted"),
    PassagesWithdrawn: Kind(
        409, "passages-withdrawn", "The passages behind the answer were withdrawn"
    ),
    InvalidRequest: INVALID,
    InputRejected: Kind(422, "question-rejected", "The question cannot be embedded"),
    PromptRejected: Kind(422, "prompt-rejected", "The chat model rejects the request"),
    SearchRejected: Kind(422, "search-rejected", "The search exceeds the limits of the index"),
    BlobMissing: Kind(404, "file-lost", "The stored file was lost", "upload the file again"),
    UploadsFull: Kind(413, "project-full", "The project has no room for more files"),
    VersionChanged: Kind(
        412, "changed-meanwhile", "The stored version was changed in the meantime"
    ),
    UploadTooLarge: Kind(413, "too-large", "The file is too large"),
    UploadUnreadable: Kind(415, "unsupported-file", "The file has a format that is not accepted"),
    UploadRefused: Kind(422, "upload-refused", "The file cannot be uploaded"),
    TooManyRequests: Kind(429, "too-many-requests", "The token's rate is exceeded"),
    TooManyAttempts: Kind(429, "too-many-attempts", "Too many requests came without a valid token"),
    ClientGone: Kind(499, "client-gone", "The client has disconnected"),
    # A ProviderError always comes from embedding: chat and reranking raise errors of other classes.
    MalformedResponse: Kind(
        502, "embedder-failed", "The embedding provider's response cannot be used"
    ),
    ProviderRefused: Kind(
        502, "embedder-refused", "The question cannot be sent to its embedding provider"
    ),
    ChatFailed: Kind(502, "chat-failed", "The chat model's response cannot be used"),
    ChatRefused: Kind(
        502, "chat-refused", "The request cannot be sent to the chat model's provider"
    ),
    KeyUnreadable: Kind(500, "key-unreadable", "The tenant's key cannot be used"),
    ProviderUnavailable: Kind(503, "embedder-unavailable", "The embedding provider is unavailable"),
    ProviderError: Kind(503, "embedder-unavailable", "The question could not be embedded"),
    Overloaded: Kind(503, "overloaded", "Too many requests are waiting", "try again"),
    ChatUnavailable: Kind(503, "chat-unavailable", "The chat model's provider is unavailable"),
    ChatTimeout: Kind(504, "chat-late", "The chat model took too long"),
    IndexInconsistent: Kind(503, "index-inconsistent", "The tenant's index is being repaired"),
    RestorePending: Kind(
        503,
        "restore-pending",
        "The service's catalog was restored, and the operator has not accepted it yet",
        detail="contact the operator of the service; until then, no token is accepted",
    ),
    TenantBusy: Kind(
        503, "tenant-busy", "Other writes to the tenant are still running", "try again"
    ),
    ServiceUnavailable: Kind(503, "unavailable", "A required server is unavailable"),
    SchemaTooNew: Kind(503, "unavailable", "A required server is unavailable"),
    RagAssetsError: Kind(500, "internal", "The service failed"),
}
HTTP_KINDS: Sequence[Kind] = (
    Kind(400, "bad-request", "The request cannot be read"),
    Kind(404, "not-found", "There is nothing at this address"),
    Kind(405, "method-not-allowed", "This address does not support the method"),
    Kind(408, "too-slow", "The request arrived too slowly"),
    Kind(413, "too-large", "The request is too large"),
    Kind(414, "address-too-long", "The request's address is too long"),
    Kind(415, "unsupported-encoding", "The body is compressed, which is not supported"),
    Kind(431, "head-too-large", "The request's headers are too many or too large"),
)
_HTTP: Mapping[int, Kind] = {kind.status: kind for kind in HTTP_KINDS}


class HttpRefusal(HTTPException):
    """A refusal of a request, with a status and a detail that never quotes the request."""


def document_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses of a route for these statuses, as problem documents.

    Only 401 names the class Problem: FastAPI would derive its schema again for each status of each
    route.
    """
    problem_content = {
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    }
    kinds = [*get_kinds_by_error().values(), *_HTTP.values(), INVALID]
    return {
        status: {
            **({"model": Problem} if status == _UNAUTHORIZED else problem_content),
            "description": "; ".join(
                dict.fromkeys(kind.title for kind in kinds if kind.status == status)
            ),
        }
        for status in statuses
    }


def handle_problems(app: FastAPI) -> None:
    """Add handlers that answer expected errors with problem documents."""
    app.add_exception_handler(RagAssetsError, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_validation_error)
    app.add_exception_handler(InvalidFields, _answer_validation_error)
    app.add_exception_handler(HTTPException, _answer_http_error)


def build_problem_response(
    request_id: str,
    kind: Kind,
    detail: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    errors: Sequence[InvalidField] | None = None,
    missing_key: NoProviderKey | None = None,
) -> JSONResponse:
    """Return a problem document as a response."""
    problem = Problem(
        type=f"urn:rag-assets:problem:{kind.name}",
        title=kind.title,
        status=kind.status,
        detail=detail,
        request_id=request_id,
        errors=None if errors is None else tuple(errors),
        provider=None if missing_key is None else missing_key.provider,
        address=None if missing_key is None else missing_key.address,
    )
    return JSONResponse(
        _PROBLEM.dump_python(problem, exclude_none=True),
        kind.status,
        dict(headers or {}),
        MEDIA_TYPE,
    )


def answer_unexpected_error(request_id: str, error: Exception) -> JSONResponse:
    """Return the response to an unexpected error, and log the error."""
    kind, _ = classify_error(request_id, error)
    return build_problem_response(request_id, kind)


def format_problem(error: Exception, request_id: str) -> str:
    """Describe an error in one line for text interfaces; log the error if it is a server error."""
    kind, detail = classify_error(request_id, error)
    return detail or f"{kind.title} (request {request_id})"


def get_http_kind(status: int) -> Kind:
    """Return the kind of problem of an HTTP status."""
    return _HTTP.get(status) or Kind(status, "http", "The request cannot be served")


async def _answer_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RagAssetsError)  # noqa: S101
    request_id = request.state.request_id
    kind, detail = classify_error(request_id, error)
    missing_key = error if isinstance(error, NoProviderKey) else None
    return build_problem_response(
        request_id, kind, detail, headers=_build_headers(error, kind), missing_key=missing_key
    )


def classify_error(request_id: str, error: Exception) -> tuple[Kind, str | None]:
    """Return the kind of an error, and the details that the caller may see; log server errors.

    The details are None if they must not be shown.
    """
    if not isinstance(error, RagAssetsError):
        # The message may quote a document or a key, so only the type is logged.
        reason = f"unexpected {type(error).__name__}"
        LOGGER.error("problem", extra={"request_id": request_id, "reason": reason})
        return KINDS[RagAssetsError], None
    kind = get_problem_kind(type(error))
    if kind.status < _INTERNAL:
        return kind, kind.detail or error.advice
    LOGGER.warning("problem", extra={"request_id": request_id, "reason": error.advice})
    failure = failure_kind(error)
    text = WORDS[failure].text_of_request if failure in OF_PROVIDERS else None
    return kind, kind.detail or text


def get_problem_kind(error: type[RagAssetsError]) -> Kind:
    """Return the kind of problem of an error class."""
    return error.problem_kind or next(KINDS[base] for base in error.__mro__ if base in KINDS)


@lru_cache(maxsize=1)
def get_kinds_by_error() -> Mapping[type[RagAssetsError], Kind]:
    """Return the kind of problem for each error class, including the classes of all systems."""
    classes = installed_systems().load("problems").values()
    return {**KINDS, **{error: error.problem_kind for error in classes}}


def _build_headers(error: RagAssetsError, kind: Kind) -> Mapping[str, str]:
    match error:
        case Unauthenticated():
            return {"WWW-Authenticate": 'Bearer realm="rag-assets"'}
        case RetryLater():
            return {"Retry-After": str(error.retry_after)}
        case TransientFailure() if error.retry_after is not None:
            return {"Retry-After": str(math.ceil(error.retry_after))}
    return {"Retry-After": str(_RETRY_SECONDS)} if kind.status == 503 else {}  # noqa: PLR2004


async def _answer_validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError | InvalidFields)  # noqa: S101
    details = error.errors if isinstance(error, InvalidFields) else error.errors()
    names = await to_thread(lambda: request.app.state.description.names)
    errors = list_invalid_fields(details, names)
    return build_problem_response(
        request.state.request_id, INVALID, "correct the fields listed in `errors`", errors=errors
    )


async def _answer_http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    kind = get_http_kind(error.status_code)
    # Messages of libraries may quote the request, so they are not used.
    detail = error.detail if isinstance(error, HttpRefusal) else None
    return build_problem_response(request.state.request_id, kind, detail, headers=error.headers)
