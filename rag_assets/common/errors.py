"""Every error the project raises on purpose, in one tree.

A message says what is wrong and where; the optional hint says what to do. Neither may ever
hold a secret or the text of a document. The command line prints both and never a traceback.

    RagAssetsError
    ├── InvalidRequest            a request's parameters are not usable
    ├── UnknownDocument           none of that id, or none that the caller may read
    ├── ConfigurationError        settings, tenants.yaml, arguments
    │   ├── UnknownTenant
    │   ├── UnknownSource
    │   ├── NoRecordsSource       no source, or not just one, takes a tenant's records
    │   ├── UnknownProfile
    │   ├── NoReranker            the tenant has none, and a search asks for it
    │   └── NoChatModel           the tenant has none that could be asked
    ├── ServiceUnavailable        Postgres or Elasticsearch is away
    │   └── TenantBusy            others write for the tenant, and do not end
    ├── ListingFailed             a source could not be listed: never the same as an empty one
    ├── DeletionsHeld             a sync would delete suspiciously much
    ├── TenantLocked              somebody else writes for this tenant
    ├── TenantGone                the tenant was removed or re-created under a running writer
    ├── DocumentRejected          this one document cannot be processed: quarantine it
    │   ├── DocumentTooLarge
    │   ├── DocumentVanished      gone since it was listed: the next listing decides
    │   ├── DocumentTimeout
    │   └── DocumentTooCostly     it needs more memory than a document may use
    ├── EmbeddingError
    │   ├── EmbeddingStopped       nothing more can be embedded for this tenant for now
    │   │   ├── EmbedderUnavailable   passing: try again later
    │   │   ├── EmbedderRefused       until a person changes something: key, model, quota
    │   │   │   ├── NoProviderKey     what HTTP calls 402
    │   │   │   └── KeyUnreadable     there is one, and it does not decrypt
    │   │   └── CapReached            the tenant's own cap on spending
    │   ├── InputRejected         this text cannot be embedded: quarantine its documents
    │   ├── BatchLost             what a provider's batch came to cannot be had any more
    │   ├── OutOfTime             the deadline came before its turn: nothing was sent
    │   └── BadVectors            malformed, not finite, zeros: stop the tenant for now
    │       └── WrongShape        wrong count or dimension: until a person changes something
    ├── RerankFailed              a search goes on without: never seen by who asks
    ├── ChatError                 a chat model wrote nothing that could be used
    │   ├── ChatUnavailable       passing: try again later
    │   │   └── ChatTimeout          it took longer than it may
    │   ├── ChatRefused           until a person changes something: key, model, quota
    │   ├── PromptRejected        what it was asked is too long, or not to its liking
    │   └── ChatFailed            its answer is malformed
    ├── PassagesWithdrawn         what an answer rests on may not be read any more
    ├── SearchRejected            a search is more than the index takes
    └── IndexInconsistent         the live index is not the one the catalog knows
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

Fault: TypeAlias = Literal["key", "model", "quota"]
"""What a provider refuses a request for, as far as it says so."""

RerankFault: TypeAlias = Literal[
    "late", "unavailable", "refused", "malformed", "not usable", "resting"
]
"""Why a search was not reranked; "resting": it failed several times and is left alone for now."""


class RagAssetsError(Exception):
    """Base of all expected errors.

    Args:
        message: what is wrong and where, in one line.
        hint: what the reader can do about it, in one line.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def advice(self) -> str:
        """Message and hint in one line, where there is no room for two."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


class InvalidRequest(RagAssetsError):
    """A parameter of a request is not usable; the message names it and quotes nothing of it."""


class UnknownDocument(RagAssetsError):
    """No document of that id exists, or none that the caller may read; it does not say which."""


class ConfigurationError(RagAssetsError):
    """A setting, a tenant's configuration or an argument is not usable."""


class UnknownTenant(ConfigurationError):
    """No tenant of that id exists, or it has been removed."""


class UnknownSource(ConfigurationError):
    """The tenant has no source of that name."""


class NoRecordsSource(ConfigurationError):
    """The tenant has no source that records can be pushed to, or several and none was named."""


class UnknownProfile(ConfigurationError):
    """No profile of that name exists."""


class NoReranker(ConfigurationError):
    """The tenant has no reranker, and a search asks for one."""


class NoChatModel(ConfigurationError):
    """The tenant has no chat model, or none that could be asked as it is configured."""


class ServiceUnavailable(RagAssetsError):
    """A server that the project needs does not answer."""


class TenantBusy(ServiceUnavailable):
    """A request waited too long for others that write for the same tenant."""


class ListingFailed(RagAssetsError):
    """A source could not be listed completely; what it holds is unknown."""


class DeletionsHeld(RagAssetsError):
    """A source lost so many documents at once that a person should look first."""


class TenantLocked(RagAssetsError):
    """Another process writes for this tenant."""


class TenantGone(RagAssetsError):
    """The tenant was removed, disabled or re-created while this writer was at work."""


class DocumentRejected(RagAssetsError):
    """One document cannot be processed; it is quarantined with this message."""


class DocumentTooLarge(DocumentRejected):
    """The document is larger than the source allows."""


class DocumentVanished(DocumentRejected):
    """The document went away after it was listed; leave it to the next listing."""


class DocumentTimeout(DocumentRejected):
    """The document took longer than one document may take."""


class DocumentTooCostly(DocumentRejected):
    """The document needed more memory than one document may use."""


class EmbeddingError(RagAssetsError):
    """Texts could not be turned into vectors.

    Attributes:
        requests: attempts made before it was raised; 0 where it was not even asked.
        tokens: that they were charged for: an answer is paid for, whatever is in it.
    """

    requests: int = 1
    tokens: int = 0


class EmbeddingStopped(EmbeddingError):
    """Nothing more can be embedded for a tenant for now, whatever the text."""


class EmbedderUnavailable(EmbeddingStopped):
    """The embedder does not answer for now; the work is kept for a later run.

    Args:
        message, hint: see RagAssetsError.
        retry_after: seconds after which it asked to be tried again, if it did.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class EmbedderRefused(EmbeddingStopped):
    """The provider refuses until a person changes something: the key, the model, the quota.

    Args:
        message, hint: see RagAssetsError.
        fault: what it refuses the request for; None if that is something else, or not known.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, fault: Fault | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.fault = fault


class NoProviderKey(EmbedderRefused):
    """The tenant has no key for its provider: what HTTP calls 402, payment required."""

    requests = 0


class KeyUnreadable(EmbedderRefused):
    """The tenant's stored key cannot be decrypted: another master key, or an altered row."""

    requests = 0


class CapReached(EmbeddingStopped):
    """The tenant's cap on spending is reached; what was done is kept.

    Args:
        message, hint: see RagAssetsError.
        until: when it goes on by itself; None if a person must say so.
    """

    requests = 0

    def __init__(
        self, message: str, *, hint: str | None = None, until: datetime | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.until = until


class InputRejected(EmbeddingError):
    """The embedder refuses these texts for good."""


class BatchLost(EmbeddingError):
    """What a provider's batch came to cannot be had any more: its texts are to be sent again."""


class OutOfTime(EmbeddingError):
    """A call could not begin before its deadline; nothing was sent, and nothing is wrong."""

    requests = 0


class BadVectors(EmbeddingError):
    """The embedder returned vectors that must not be stored."""


class WrongShape(BadVectors):
    """Not one vector for each text, or not of the length that was asked for: another model's."""


class RerankFailed(RagAssetsError):
    """Passages could not be reranked; they keep the order in which they were found.

    Args:
        message, hint: see RagAssetsError.
        fault: in a word, as a search's answer tells it.
    """

    def __init__(self, message: str, fault: RerankFault, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.fault = fault


class ChatError(RagAssetsError):
    """A chat model wrote nothing that could be used.

    Attributes:
        requests: attempts made before it was raised; 0 where it was not even asked.
    """

    requests: int = 1


class ChatUnavailable(ChatError):
    """The chat model does not answer for now.

    Args:
        message, hint: see RagAssetsError.
        retry_after: seconds after which it asked to be tried again, if it did.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class ChatTimeout(ChatUnavailable):
    """The chat model took longer than an answer may."""


class ChatRefused(ChatError):
    """The provider refuses until a person changes something: the key, the model, the quota.

    Args:
        message, hint: see RagAssetsError.
        fault: what it refuses the request for; None if that is something else, or not known.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, fault: Fault | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.fault = fault


class PromptRejected(ChatError):
    """The chat model takes this request never: it is too long, or its provider minds it."""


class ChatFailed(ChatError):
    """The chat model's answer is malformed."""


class PassagesWithdrawn(RagAssetsError):
    """Something that an answer was written from may not be read any more by whoever asked."""


class SearchRejected(RagAssetsError):
    """A search is of more words and filters than the index takes at once."""


class IndexInconsistent(RagAssetsError):
    """The live index was lost, replaced or altered behind the catalog's back."""
