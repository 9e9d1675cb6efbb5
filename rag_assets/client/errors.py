"""Errors of the client, in one tree.

ClientError
├── NotSent                 it cannot be sent
├── NotReached              no answer came: no connection, or not in time
├── NotUnderstood           the response is not of this service
└── Refused                 the service, or a proxy before it, answered with a problem
    ├── Invalid             400, 413, 415, 422: the request has to be corrected
    ├── Unauthenticated     401: the token is not valid
    ├── PaymentRequired     402: the tenant has no key for its provider, or reached its cap
    ├── Forbidden           403: the token is not for this
    ├── NotFound            404
    ├── Conflict            409, 412, 428
    ├── TooManyRequests     429: the token's rate is exceeded
    └── Failed              5xx: the service, or what it needs, failed
        └── Unavailable     503: for now
"""

from __future__ import annotations

from collections.abc import Mapping

from rag_assets.api.responses import Problem
from rag_assets.common.errors import RagAssetsError

_FAILED = 500


class ClientError(RagAssetsError):
    """Base of all that a client raises on purpose."""


class NotSent(ClientError):
    """The request holds what cannot be sent, such as half a character; nothing was sent."""


class NotReached(ClientError):
    """No answer came. Whether the request was acted upon, is not known."""


class NotUnderstood(ClientError):
    """The response is not of this service, or of a version that this client does not support."""


class Refused(ClientError):
    """The request was not served.

    Args:
        problem: what the service says.
        retry_after: seconds after which it may be sent again, if the service says so.

    Attributes:
        status: of the response.
        type: names the kind of problem, as in urn:rag-assets:problem:no-provider-key.
        detail: what is wrong and what to do, as far as the service tells.
        request_id: under which its log knows the request.
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
        """The end of its type, as in no-provider-key."""
        return self.type.rpartition(":")[2]


class Invalid(Refused):
    """The request has to be corrected: `problem.errors` names the fields."""


class Unauthenticated(Refused):
    """There is no valid token."""


class PaymentRequired(Refused):
    """The tenant has no key for its provider, or has reached its cap on spending."""


class Forbidden(Refused):
    """The token is valid, but not for this."""


class NotFound(Refused):
    """There is no such tenant, document, record or address."""


class Conflict(Refused):
    """What is there does not allow it."""


class TooManyRequests(Refused):
    """The token's rate is exceeded."""


class Failed(Refused):
    """The service failed, or something that it needs."""


class Unavailable(Failed):
    """It is unavailable for now."""


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


def refusal(problem: Problem, retry_after: float | None = None) -> Refused:
    """The error that a problem is raised as."""
    other = Failed if problem.status >= _FAILED else Refused
    return _BY_STATUS.get(problem.status, other)(problem, retry_after)
