"""Problem documents (RFC 9457) for all errors, defined in one table.

The response to a server error contains only its kind; the details are logged with the request's id.
"""

from __future__ import annotations

import math
import re
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
from rag_assets.api.rate_limits import TooManyAttempts, TooManyRequests
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
"""Maximum number of reported fields: a body can have very many invalid fields."""
_NO_OBJECT = frozenset({"dict_type", "model_attributes_type", "model_type"})
"""Error types that concern the whole body: with a wrong Content-Type, it arrives unparsed."""
_DEEPEST = 12
"""Maximum number of parts in the path of a field."""


def invalid_fields(
    errors: Sequence[Mapping[str, Any]], names: Collection[str]
) -> list[InvalidField]:
    """Return the first invalid fields of a validation.

    Args:
        errors: errors from Pydantic.
        names: names in the OpenAPI description; all other names come from the caller and may be
            secrets.
    """
    return [
        InvalidField(field=_field(error, names), problem=_problem(error))
        for error in errors[:_MAX_FIELDS]
    ]


def _field(error: Mapping[str, Any], names: Collection[str]) -> str:
    where = [*error["loc"][1:]]
    if error["type"] == "union_tag_invalid":
        where.append(error["ctx"]["discriminator"].strip("'"))
    parts = [str(p) if isinstance(p, int) or p in names else "*" for p in where[:_DEEPEST]]
    return re.sub(r"\*(\.\*)+", "*", ".".join(parts)) or "body"


def _problem(error: Mapping[str, Any]) -> str:
    if error["type"] in _NO_OBJECT and len(error["loc"]) == 1:
        return "it must be a JSON object, sent with Content-Type: application/json"
    allowed = allowed_value(error)
    # In a URL, every value is a string.
    came = sent_value(error) if error["loc"][0] == "body" else None
    return allowed if came is None else f"{allowed}; {came} came"


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
    Unauthenticated: Kind(401, "unauthenticated", "A valid token is needed"),
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
    ServiceUnavailable: Kind(503, "unavailable", "A server that is needed is unavailable"),
    SchemaTooNew: Kind(503, "unavailable", "A server that is needed is unavailable"),
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


class Refused(HTTPException):
    """A request that is refused with a status and a detail that never quotes the request."""


def document_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses of a route that answers with a problem for these statuses.

    Only the response for callers without a token (401) names the class of problems, so that the
    schema is included once. Otherwise FastAPI would derive it again for each of ten statuses of
    each route.
    """
    shown = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    return {
        status: {
            **({"model": Problem} if status == _UNAUTHORIZED else shown),
            "description": _description(status),
        }
        for status in statuses
    }


def handle_problems(app: FastAPI) -> None:
    """Add the handlers that answer every expected error with a problem document."""
    app.add_exception_handler(RagAssetsError, _rag_assets_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(InvalidFields, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)


def problem_response(
    request_id: str,
    kind: Kind,
    detail: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    errors: Sequence[InvalidField] | None = None,
    lacks: NoProviderKey | None = None,
) -> JSONResponse:
    """Return a problem as a response.

    Args:
        detail: details that the caller may know.
        errors: the invalid fields.
        lacks: error that names the provider whose key is missing.
    """
    problem = Problem(
        type=f"urn:rag-assets:problem:{kind.name}",
        title=kind.title,
        status=kind.status,
        detail=detail,
        request_id=request_id,
        errors=None if errors is None else tuple(errors),
        provider=None if lacks is None else lacks.provider,
        address=None if lacks is None else lacks.address,
    )
    return JSONResponse(
        _PROBLEM.dump_python(problem, exclude_none=True),
        kind.status,
        dict(headers or {}),
        MEDIA_TYPE,
    )


def answer_unexpected_error(request_id: str, error: Exception) -> JSONResponse:
    """Return the response to an unexpected error, and log the error."""
    kind, _ = classify(request_id, error)
    return problem_response(request_id, kind)


def problem_text(error: Exception, request_id: str) -> str:
    """Return a problem in one line, for text interfaces; log it as for an HTTP response."""
    kind, detail = classify(request_id, error)
    return detail or f"{kind.title} (request {request_id})"


def http_kind(status: int) -> Kind:
    """Return the kind of a problem that only its status describes."""
    return _HTTP.get(status) or Kind(status, "http", "The request cannot be served")


def _description(status: int) -> str:
    kinds = [*all_kinds().values(), *_HTTP.values(), INVALID]
    return "; ".join(dict.fromkeys(kind.title for kind in kinds if kind.status == status))


async def _rag_assets_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RagAssetsError)  # noqa: S101
    request_id = request.state.request_id
    kind, detail = classify(request_id, error)
    lacks = error if isinstance(error, NoProviderKey) else None
    return problem_response(request_id, kind, detail, headers=_headers(error, kind), lacks=lacks)


def classify(request_id: str, error: Exception) -> tuple[Kind, str | None]:
    """Return the kind of an error and the details that the caller may know; log all other details.

    Args:
        request_id: id of the request that failed.
        error: an expected or unexpected error.
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
    return kind, kind.detail or _find_text_of_failure(error)


def get_problem_kind(error: type[RagAssetsError]) -> Kind:
    """Return the kind of problem of an error class."""
    return error.problem_kind or next(KINDS[base] for base in error.__mro__ if base in KINDS)


@lru_cache(maxsize=1)
def all_kinds() -> Mapping[type[RagAssetsError], Kind]:
    """Return the kinds of problems of the core and of all systems, by error class."""
    classes = installed_systems().load("problems").values()
    return {**KINDS, **{error: error.problem_kind for error in classes}}


def _find_text_of_failure(error: RagAssetsError) -> str | None:
    """Return the text for a failure of a provider; None for other failures, which are logged."""
    failure = failure_kind(error)
    return WORDS[failure].text_of_request if failure in OF_PROVIDERS else None


def _headers(error: RagAssetsError, kind: Kind) -> Mapping[str, str]:
    match error:
        case Unauthenticated():
            return {"WWW-Authenticate": 'Bearer realm="rag-assets"'}
        case TooManyRequests() | TooManyAttempts() | Overloaded():
            return {"Retry-After": str(error.retry_after)}
        case TransientFailure() if error.retry_after is not None:
            return {"Retry-After": str(math.ceil(error.retry_after))}
    return {"Retry-After": str(_RETRY_SECONDS)} if kind.status == 503 else {}  # noqa: PLR2004


async def _validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError | InvalidFields)  # noqa: S101
    found = error.errors if isinstance(error, InvalidFields) else error.errors()
    errors = invalid_fields(found, request.app.state.description.names)
    return problem_response(
        request.state.request_id, INVALID, "correct the fields listed in `errors`", errors=errors
    )


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    kind = http_kind(error.status_code)
    # The message is not used: messages of libraries may quote the request.
    detail = error.detail if isinstance(error, Refused) else None
    return problem_response(request.state.request_id, kind, detail, headers=error.headers)
