"""All errors that the project raises deliberately, in one tree below RagAssetsError.

A message states the problem and its place; the optional hint states the remedy. Neither may ever
hold a secret or the text of a document. The command line prints both and never a traceback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """A kind of problem in API responses."""

    status: int
    name: str
    """The last part of the problem's type."""
    title: str
    detail: str | None = None
    """Text for the caller; replaces the error's message, which is for the operator."""


class RagAssetsError(Exception):
    """Base of all expected errors.

    Args:
        message: the problem and its place, in one line.
        hint: the remedy, in one line.

    Attributes:
        exit_status: exit status of a command that fails with this error.
        problem_kind: the API's response; None if the table in api/problems.py defines it.
    """

    exit_status = 1
    problem_kind: ClassVar[ProblemKind | None] = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def advice(self) -> str:
        """Return message and hint in one line."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


# -- settings, tenants.yaml and arguments


_MAX_SHOWN_LINES = 10


class ConfigurationError(RagAssetsError):
    """A setting, a tenant's configuration or an argument is not usable."""


class TenantDisabled(ConfigurationError):
    """The tenant is disabled, so no run works on it."""

    def __init__(self, tenant_id: str) -> None:
        super().__init__(
            f"tenant {tenant_id!r} is disabled, so it is not indexed",
            hint=f"enable the tenant with `rag-assets tenants enable {tenant_id}`",
        )


class ForeignInstallation(ConfigurationError):
    """A catalog, a folder, an index or a process belongs to another installation, or is a copy."""


class PlaceChanged(ConfigurationError):
    """A store of the installation is not at the address that its catalog records."""


class UnknownTenant(ConfigurationError):
    """No tenant has that id, or it has been removed."""


class UnknownProject(ConfigurationError):
    """No tenant has this project and organization, or the caller's token is for another project."""


class UnknownSource(ConfigurationError):
    """No source of the tenant has that name."""


class UnknownGeneration(ConfigurationError):
    """No build of the tenant has that number, or the build is being removed."""


class NoRecordsSource(ConfigurationError):
    """No source of the tenant accepts pushed records, or several do and the request names none."""


class NoUploadsSource(ConfigurationError):
    """No source of the tenant accepts uploads, or several do and the request names none."""


class UnknownProfile(ConfigurationError):
    """No profile has that name."""


class WrongJudgements(ConfigurationError):
    """Lines of judgement files are wrong; none of these files was stored."""

    def __init__(self, lines: Sequence[str]) -> None:
        more = len(lines) - _MAX_SHOWN_LINES
        suffix = f"; and {more:,} more" if more > 0 else ""
        super().__init__(
            f"{'; '.join(lines[:_MAX_SHOWN_LINES])}{suffix}",
            hint="correct these lines and import again: nothing was stored",
        )
        self.lines = tuple(lines)


class NoReranker(ConfigurationError):
    """A search requires a reranker, and the tenant has none."""


class NoChatModel(ConfigurationError):
    """The tenant lacks a chat model that is usable as configured."""


class ConfiguredByOperator(RagAssetsError):
    """The operator defines the project in tenants.yaml; the API cannot change it."""


# -- requests that cannot be answered or carried out as they are


class InvalidRequest(RagAssetsError):
    """A request parameter is not usable; the message names it and does not quote it."""


class UnknownDocument(RagAssetsError):
    """No document has that id, or the caller may not read it; the error does not reveal which."""


class RoleRefused(RagAssetsError):
    """Callers of this role may not query this tenant."""


class NoVectorBackend(RagAssetsError):
    """The installation cannot answer from this vector back end."""


class UnknownRun(RagAssetsError):
    """No agent run of the project has that name."""


class DeletionsHeld(RagAssetsError):
    """The request would remove so many records that a person must confirm it."""


class UploadRefused(RagAssetsError):
    """A file is not accepted as an upload; none of it is kept."""


class UploadTooLarge(UploadRefused):
    """The file is larger than its source accepts."""


class UploadsFull(UploadRefused):
    """The source has reached its limit of files or bytes."""


class UploadUnreadable(UploadRefused):
    """No parser supports the file's content, or its source does not accept that format."""


class VersionChanged(RagAssetsError):
    """The version to be replaced has changed since it was read."""


class PassagesWithdrawn(RagAssetsError):
    """The caller may no longer read a source of an answer."""


class SearchRejected(RagAssetsError):
    """A search exceeds the index's limit of words and filters."""


# -- documents that cannot be processed: each is quarantined and does not stop the others


class DocumentRejected(RagAssetsError):
    """One document cannot be processed; it is quarantined with this message."""


class DocumentTooLarge(DocumentRejected):
    """The document is larger than the source allows."""


class DocumentVanished(DocumentRejected):
    """The document was removed after it was listed; the next listing notices it."""


class DocumentUnreachable(DocumentRejected):
    """The device or share that holds the document returned an error; it is tried again."""


class DocumentEncrypted(DocumentRejected):
    """The document needs a password that is not configured."""


class DocumentEmpty(DocumentRejected):
    """The document contains no text."""


class DocumentScanned(DocumentRejected):
    """The document's pages are images, and no text is found in them."""


class DocumentUnsupported(DocumentRejected):
    """No parser supports the document's format."""


class ParserUnusable(DocumentRejected):
    """The installation lacks something that the document's parser needs."""


class DocumentTimeout(DocumentRejected):
    """The document exceeded the time limit of one document."""


class DocumentTooCostly(DocumentRejected):
    """The document exceeded the memory limit of one document."""


class BlobMissing(DocumentRejected):
    """An uploaded file is missing from the blob store."""


class BlobAltered(DocumentRejected):
    """The content of an uploaded file in the blob store differs from the upload."""


# -- failures of stores and sources, and conflicts between concurrent processes


class BuildNotWritable(RagAssetsError):
    """Entries can no longer be written to a build: its recipe or its model is not available."""


class ServiceUnavailable(RagAssetsError):
    """A server that the project needs does not answer."""


class IndexUnavailable(ServiceUnavailable):
    """Elasticsearch refuses requests until an operator, for example, frees disk space."""


class DiskFull(ServiceUnavailable):
    """A disk of the installation is full, or nearly full."""


class LakeDamaged(ServiceUnavailable):
    """Files of the lake were lost or damaged, and cannot be read.

    The participle completes "the lake … cannot be".
    """

    def __init__(self, place: str, files: Sequence[str], participle: str) -> None:
        more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
        super().__init__(
            f"the lake at {place} cannot be {participle}: damaged file {files[0]}{more}",
            hint=(
                "rag-assets sync TENANT --repair restores its rows from the index and parses"
                " the missing documents again; rag-assets check TENANT --deep lists all"
                " damage"
            ),
        )
        self.files = tuple(files)


class VectorsUnavailable(ServiceUnavailable):
    """The back end with a build's vectors does not answer."""


class TenantBusy(ServiceUnavailable):
    """A request waited too long for other writers of the same tenant."""


class ListingFailed(RagAssetsError):
    """A source could not be listed completely; its full content is unknown."""


class SchemaTooNew(RagAssetsError):
    """A newer program has upgraded the catalog's schema."""


class OlderProgramRuns(RagAssetsError):
    """An upgrade of the catalog's schema would stop a running process of an older program."""


class SessionsNotKept(RagAssetsError):
    """Postgres is behind a pooler that does not keep a session across transactions."""


class TenantLocked(RagAssetsError):
    """Another process writes for this tenant."""


class OnHold(RagAssetsError):
    """A person has placed a hold: the held data stays in every store until the hold is lifted."""


class CatalogSetBack(RagAssetsError):
    """The catalog was restored from an earlier dump, so deletion stops."""


class RestorePending(CatalogSetBack):
    """The restored catalog lacks security changes, and no operator has accepted it yet."""


class ErasureIncomplete(RagAssetsError):
    """Content that was to be erased still exists in a store; the erasure stays open."""


class ClockDoubted(RagAssetsError):
    """The clock may be wrong, so deletion by age stops."""


class TenantGone(RagAssetsError):
    """The tenant was removed, disabled or re-created while this writer was working."""


class BuildNotSearchable(RagAssetsError):
    """A build cannot be searched until a person acts: its model, key or index is missing."""

    def __init__(self, generation: int, cause: RagAssetsError) -> None:
        super().__init__(f"build {generation} cannot be searched: {cause.message}", hint=cause.hint)
        self.generation = generation


class IndexInconsistent(RagAssetsError):
    """The serving index was lost, replaced or modified outside of rag-assets."""


# -- failures of models, and of requests to their providers


Fault: TypeAlias = Literal["key", "model", "quota", "address"]
"""Why a request is refused: for an address before it is sent, otherwise by the provider."""

RerankFault: TypeAlias = Literal[
    "late", "unavailable", "refused", "malformed", "not usable", "resting"
]
"""Why a search was not reranked; "resting": the circuit breaker is open after failures."""


class TransientFailure(RagAssetsError):
    """A provider is unavailable; a later attempt may succeed."""

    def __init__(
        self, message: str, *, hint: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class RequestRefused(RagAssetsError):
    """A provider refuses requests until a person changes the key, the model or the quota."""

    def __init__(
        self, message: str, *, hint: str | None = None, fault: Fault | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.fault = fault


class ProviderError(RagAssetsError):
    """A model, or a request to its provider, failed."""

    requests: int = 1
    """Attempts made before the error; 0 if no request was sent."""
    tokens: int = 0
    """Tokens charged for these attempts; a malformed response is charged too."""


class RequestsStopped(ProviderError):
    """No request of a tenant to its provider can succeed for now."""


class ProviderUnavailable(RequestsStopped, TransientFailure):
    """The provider is unavailable."""

    may_be_input: bool = False
    """Whether this input may be the cause: the provider reported an internal error or closed the
    connection, and did not require a pause."""
    is_limited: bool = False
    """Whether the cause is the provider's rate limit."""


class ProviderRefused(RequestsStopped, RequestRefused):
    """The provider refuses every request of a tenant."""


class NoProviderKey(ProviderRefused):
    """The tenant's key for its provider is missing.

    The address is the page on which an admin of the tenant sets the key.
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

    The cap is reset at `until`; None if only a person can let spending continue.
    """

    requests = 0

    def __init__(
        self, message: str, *, hint: str | None = None, until: datetime | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.until = until


class InputRejected(ProviderError):
    """The provider permanently rejects this input."""

    is_compared: bool = False


class BatchLost(ProviderError):
    """The results of a provider's batch are lost: its texts must be sent again."""


class DeadlineExceeded(ProviderError):
    """The deadline passed before the call could start; no request was sent."""

    requests = 0


class MalformedResponse(ProviderError):
    """The provider's response is malformed, or larger than allowed."""


class BadVectors(MalformedResponse):
    """The embedder returned vectors that must not be stored."""

    usable: Mapping[int, Any] = MappingProxyType({})
    """The valid vectors of the response, by the index of their text."""
    reasons: Mapping[int, str] = MappingProxyType({})
    """Why the other vectors are not valid, by the index of their text; empty if the vectors cannot
    be assigned to texts."""


class WrongShape(BadVectors):
    """The embedder returned vectors of the wrong number or dimension: its model has changed."""


class RerankFailed(RagAssetsError):
    """Passages could not be reranked; they keep the order of the search."""

    def __init__(self, message: str, fault: RerankFault, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.fault = fault


class ChatError(RagAssetsError):
    """A chat model returned no usable answer."""

    requests: int = 1
    """Attempts made before the error; 0 if no request was sent."""


class ChatUnavailable(ChatError, TransientFailure):
    """The chat model is unavailable."""


class ChatTimeout(ChatUnavailable):
    """The chat model took longer than allowed."""


class ChatRefused(ChatError, RequestRefused):
    """The chat model's provider refuses requests until a person changes the key, model or quota."""


class PromptRejected(ChatError):
    """The chat model rejects this prompt: it is too long, or violates the provider's policy."""


class ChatFailed(ChatError):
    """The chat model's answer is malformed."""
