"""Errors of the client, in one hierarchy.

ClientError
├── NotSent                 the request cannot be sent
├── NotReached              no answer: no connection, or a timeout
├── NotUnderstood           the response does not come from this service
└── Refused                 the service, or a proxy in front of it, answered with a problem
    ├── Invalid             400, 413, 415, 422: the request must be corrected
    ├── Unauthenticated     401: the token is not valid
    ├── PaymentRequired     402: the tenant lacks a key for its provider, or reached its cap
    ├── Forbidden           403: the token does not permit the request
    ├── NotFound            404
    ├── Conflict            409, 412, 428
    ├── TooManyRequests     429: the token's rate is exceeded
    └── Failed              5xx: the service, or a server that it needs, failed
        └── Unavailable     503: temporarily unavailable
"""

from __future__ import annotations

from collections.abc import Mapping

from rag_assets.api.responses import Problem
from rag_assets.common.errors import RagAssetsError

_FAILED_STATUS = 500


class ClientError(RagAssetsError):
    """Base of all errors of a client."""


class NotSent(ClientError):
    """The request was not sent: JSON, UTF-8 or a header cannot represent one of its values."""


class NotReached(ClientError):
    """No answer arrived; the request may or may not have taken effect."""


class NotUnderstood(ClientError):
    """The response comes from another service, or from an unsupported version."""


class Refused(ClientError):
    """The service, or a proxy in front of it, answered with an error.

    Args:
        problem: the problem document of the response.
        retry_after: seconds after which the request may be repeated, if the service reports them.

    Attributes:
        status: HTTP status of the response.
        type: URN of the kind of problem, such as urn:rag-assets:problem:no-provider-key.
        detail: the problem and its remedy, if the service reports them.
        request_id: id of the request in the service's log.
    """

    def __init__(self, problem: Problem, retry_after: float | None = None) -> None:
        fields = "; ".join(f"{error.field}: {error.problem}" for error in problem.errors or ())
        text = ": ".join(filter(None, (problem.title, problem.detail, fields)))
        super().__init__(f"{problem.status} {text}")
        self.problem = problem
        self.status = problem.status
        self.type = problem.type
        self.detail = problem.detail
        self.request_id = problem.request_id
        self.retry_after = retry_after

    @property
    def kind(self) -> str:
        """Return the last part of the type, such as no-provider-key."""
        return self.type.rpartition(":")[2]


class Invalid(Refused):
    """The request must be corrected; `problem.errors` names the fields."""


class Unauthenticated(Refused):
    """The request lacks a valid token."""


class PaymentRequired(Refused):
    """The tenant lacks a key for its provider, or has reached its spending cap."""


class Forbidden(Refused):
    """The token is valid, but does not permit the request."""


class NotFound(Refused):
    """The tenant, document, record or address does not exist."""


class Conflict(Refused):
    """The request conflicts with the current state."""


class TooManyRequests(Refused):
    """The token's rate is exceeded."""


class Failed(Refused):
    """The service, or a server that it needs, failed."""


class Unavailable(Failed):
    """The service is temporarily unavailable."""


_BY_STATUS: Mapping[int, type[Refused]] = {
    400: Invalid,
    401: Unauthenticated,
    402: PaymentRequired,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    428: Conflict,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: TooManyRequests,
    503: Unavailable,
}


def build_refusal(problem: Problem, retry_after: float | None = None) -> Refused:
    """Return the error that represents a problem document, according to its status."""
    other = Failed if problem.status >= _FAILED_STATUS else Refused
    return _BY_STATUS.get(problem.status, other)(problem, retry_after)
