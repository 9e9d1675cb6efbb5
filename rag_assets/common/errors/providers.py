"""Failures of models, and of requests to their providers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from rag_assets.common.errors.base import RagAssetsError

Fault: TypeAlias = Literal["key", "model", "quota", "address"]
"""Why a request is refused: for an address before it is sent, otherwise by the provider."""

RerankFault: TypeAlias = Literal[
    "late", "unavailable", "refused", "malformed", "not usable", "resting"
]
"""Why a search was not reranked; "resting": the circuit breaker is open after failures."""


class TransientFailure(RagAssetsError):
    """A provider is unavailable; a later attempt may succeed.

    Args:
        message, hint: see RagAssetsError.
        retry_after: seconds to wait, if the provider requires it.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class RequestRefused(RagAssetsError):
    """A provider refuses until a person changes something: the key, the model, the quota.

    Args:
        message, hint: see RagAssetsError.
        fault: the reason; None if it is another reason or unknown.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, fault: Fault | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.fault = fault


class ProviderError(RagAssetsError):
    """A model, or a request to its provider, failed.

    Attributes:
        requests: attempts made before the error; 0 if no request was sent.
        tokens: tokens charged for these attempts; a malformed response is charged too.
    """

    requests: int = 1
    tokens: int = 0


class RequestsStopped(ProviderError):
    """No request of a tenant succeeds for now."""


class ProviderUnavailable(RequestsStopped, TransientFailure):
    """The provider is unavailable.

    Attributes:
        may_be_input: whether this input may be the cause: the provider reported an internal error
            or closed the connection, and did not require a pause.
        is_limited: whether the cause is the provider's rate limit.
    """

    may_be_input: bool = False
    is_limited: bool = False


class ProviderRefused(RequestsStopped, RequestRefused):
    """The provider refuses every request of a tenant."""


class NoProviderKey(ProviderRefused):
    """The tenant's key for its provider is missing.

    Args:
        message, hint: see RagAssetsError.
        provider: the provider without a key.
        address: where an admin of the tenant sets it.
    """

    requests = 0

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        provider: str | None = None,
        address: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.provider = provider
        self.address = address


class KeyUnreadable(ProviderRefused):
    """The tenant's stored key cannot be decrypted: its master key or its row was replaced."""

    requests = 0


class NotOptedIn(ProviderRefused):
    """The tenant's organization has not opted in, so none of its texts is embedded.

    The problem that a profile names as `opt_in_problem` is a subclass.
    """

    requests = 0

    @classmethod
    def from_organization(cls, organization: str | None) -> NotOptedIn:
        """Return the error for the tenants of an organization."""
        return cls(f"organization {organization!r} has not opted in")


class CapReached(RequestsStopped):
    """The tenant's spending cap is reached; completed work is kept.

    Args:
        message, hint: see RagAssetsError.
        until: when the cap is reset; None if a person has to continue.
    """

    requests = 0

    def __init__(
        self, message: str, *, hint: str | None = None, until: datetime | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.until = until


class InputRejected(ProviderError):
    """The provider permanently rejects this input.

    Attributes:
        is_compared: whether the provider has accepted another input since this rejection.
    """

    is_compared: bool = False


class BatchLost(ProviderError):
    """The results of a provider's batch are lost: its texts must be sent again."""


class DeadlineExceeded(ProviderError):
    """The deadline passed before the call could start; no request was sent."""

    requests = 0


class MalformedResponse(ProviderError):
    """The provider's response is malformed, or larger than allowed."""


class BadVectors(MalformedResponse):
    """The embedder returned vectors that must not be stored.

    Attributes:
        usable: the valid vectors of the response, by the index of their text.
        reasons: why the other vectors are not valid, by the index of their text; empty if the
            vectors cannot be assigned to texts.
    """

    usable: Mapping[int, Any] = MappingProxyType({})
    reasons: Mapping[int, str] = MappingProxyType({})


class WrongShape(BadVectors):
    """The embedder returned vectors of the wrong number or dimension: its model has changed."""


class RerankFailed(RagAssetsError):
    """Passages could not be reranked; they keep the order of the search.

    Args:
        message, hint: see RagAssetsError.
        fault: the reason, as in search responses.
    """

    def __init__(self, message: str, fault: RerankFault, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.fault = fault


class ChatError(RagAssetsError):
    """A chat model returned no usable answer.

    Attributes:
        requests: attempts made before the error; 0 if no request was sent.
    """

    requests: int = 1


class ChatUnavailable(ChatError, TransientFailure):
    """The chat model is unavailable."""


class ChatTimeout(ChatUnavailable):
    """The chat model took longer than allowed."""


class ChatRefused(ChatError, RequestRefused):
    """The chat model's provider refuses."""


class PromptRejected(ChatError):
    """The chat model rejects this prompt: it is too long, or violates the provider's policy."""


class ChatFailed(ChatError):
    """The chat model's answer is malformed."""
