"""All errors that the project raises deliberately, in one tree.

A message states what is wrong and where; the optional hint states the remedy. Neither may ever
hold a secret or the text of a document. The command line prints both and never a traceback.

    RagAssetsError
    ├── InvalidRequest            a request's parameters are not usable
    ├── UnknownDocument           no such document, or not readable by the caller
    ├── RoleRefused               callers of this role may not ask this tenant
    ├── NotVerified               an entry of experience without a verified solution
    ├── EntryDiffers              another entry was captured under the same external id
    ├── UnknownExperience         no such entry, pattern, question or checkpoint
    ├── NoExperience              the tenant keeps no experience of projects
    ├── NoCodeMemory              the project has no code memory
    ├── DeletionsHeld             a manifest would take away more than is taken without a word
    ├── DamagedIndex              an index of an agent's documentation is not what was written
    ├── NoWorkspace               the tenant is no workspace
    ├── NoVectorBackend           the installation cannot answer from it
    ├── UnknownRun                the project has no such run of an agent
    ├── ConfigurationError        settings, tenants.yaml, arguments
    │   ├── UnknownTenant
    │   ├── UnknownAgent          agents.yaml declares none of this id
    │   ├── UnknownSource
    │   ├── UnknownGeneration
    │   ├── NoRecordsSource       not exactly one source accepts a tenant's records
    │   ├── NoUploadsSource       not exactly one source accepts a tenant's uploads
    │   ├── UnknownProfile
    │   ├── UnknownProject        no tenant is this project of this organization
    │   ├── WrongJudgements       lines of a file of judgements are wrong
    │   ├── NoReranker            the tenant has none, and a search requires it
    │   └── NoChatModel           the tenant has no usable one
    ├── ConfiguredByOperator      tenants.yaml defines the project, and nothing else changes it
    ├── BuildNotWritable          a build's entries cannot be made any more
    ├── ServiceUnavailable        Postgres or Elasticsearch is unavailable
    │   ├── VectorsUnavailable    the back end of a build's vectors is unavailable
    │   └── TenantBusy            other writers keep the tenant's lock for too long
    ├── ListingFailed             a source could not be listed; it does not count as empty
    ├── TenantLocked              another process writes for this tenant
    ├── CatalogSetBack            the catalog was restored from an earlier dump: nothing is deleted
    ├── OnHold                    it may not be deleted for good until a hold is lifted
    ├── TenantGone                the tenant was removed or re-created under a running writer
    ├── DocumentRejected          this one document cannot be processed: quarantine it
    │   ├── DocumentTooLarge
    │   ├── DocumentVanished      removed after it was listed
    │   ├── DocumentEncrypted
    │   ├── DocumentEmpty         there is no text in it
    │   ├── DocumentScanned       its pages are pictures, without text
    │   ├── DocumentUnsupported   no parser reads what it is
    │   ├── ParserUnusable        the installation lacks what its parser needs
    │   ├── DocumentTimeout
    │   ├── DocumentTooCostly     it needs more memory than a document may use
    │   ├── BlobMissing           an uploaded file is not in the store of blobs
    │   └── BlobAltered           an uploaded file was damaged there
    ├── UploadRefused             a file is not accepted as an upload
    │   ├── UploadTooLarge
    │   ├── UploadsFull           its source holds as much as it may
    │   └── UploadUnreadable      no parser reads what it is
    ├── TextRefused               a text of an application's cannot be kept
    ├── VersionChanged            what is to be replaced is another version by now
    ├── VersionMissing            it is not said which version is to be replaced
    ├── TransientFailure          base of ProviderUnavailable and ChatUnavailable
    ├── RequestRefused            base of ProviderRefused and ChatRefused
    ├── ProviderError             a model, or a request to its provider, failed
    │   ├── RequestsStopped       no request of this tenant succeeds for now
    │   │   ├── ProviderUnavailable   transient: try again later
    │   │   ├── ProviderRefused       until a person changes the key, model or quota
    │   │   │   ├── NoProviderKey     the tenant has no key; HTTP 402
    │   │   │   ├── KeyUnreadable     the stored key cannot be decrypted
    │   │   │   └── GuidelinesOff     the organization has switched them off
    │   │   └── CapReached            the tenant's spending cap
    │   ├── InputRejected         this input is never accepted: quarantine its documents
    │   ├── BatchLost             the results of a provider's batch are gone
    │   ├── DeadlineExceeded      the deadline passed before the call began: nothing was sent
    │   └── MalformedResponse     the response cannot be used
    │       └── BadVectors        malformed, not finite, zeros: stop the tenant for now
    │           └── WrongShape    wrong count or dimension: needs a person
    ├── RerankFailed              the search continues without scores
    ├── ChatError                 a chat model returned no usable answer
    │   ├── ChatUnavailable       transient: try again later
    │   │   └── ChatTimeout          the time limit passed
    │   ├── ChatRefused           until a person changes the key, model or quota
    │   ├── PromptRejected        the prompt is too long, or violates the provider's policy
    │   └── ChatFailed            its answer is malformed
    ├── PassagesWithdrawn         a source of an answer is no longer readable
    ├── SearchRejected            a search exceeds the index's limit of words and filters
    ├── BuildNotAskable           a build cannot be searched until a person acts
    └── IndexInconsistent         the serving index is not the one that the catalog records
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, TypeAlias

_SHOWN_LINES = 10

Fault: TypeAlias = Literal["key", "model", "quota"]
"""Why a provider refuses a request, if its response has the reason."""

RerankFault: TypeAlias = Literal[
    "late", "unavailable", "refused", "malformed", "not usable", "resting"
]
"""Why a search was not reranked; "resting": the circuit breaker is open after failures."""


class RagAssetsError(Exception):
    """Base of all expected errors.

    Args:
        message: what is wrong and where, in one line.
        hint: the remedy, in one line.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def advice(self) -> str:
        """Message and hint in one line."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


class InvalidRequest(RagAssetsError):
    """A parameter of a request is not usable; the message names it and does not quote it."""


class UnknownDocument(RagAssetsError):
    """No document has that id, or the caller may not read it; the error does not reveal which."""


class RoleRefused(RagAssetsError):
    """Callers of this role may not ask this tenant."""


class NotVerified(RagAssetsError):
    """An entry of experience has no verified solution, and nothing else is embedded."""


class EntryDiffers(RagAssetsError):
    """Another entry was captured under the same external id."""


class UnknownExperience(RagAssetsError):
    """The tenant has no such entry, pattern, question or checkpoint."""


class NoExperience(RagAssetsError):
    """The tenant keeps no experience of projects: its profile is another one."""


class NoCodeMemory(RagAssetsError):
    """The project has no code memory: its tenants have other profiles."""


class NoWorkspace(RagAssetsError):
    """The tenant is no workspace: its profile is another one."""


class NoVectorBackend(RagAssetsError):
    """The installation cannot answer from this back end."""


class UnknownRun(RagAssetsError):
    """The project has no run of an agent of that name."""


class ConfigurationError(RagAssetsError):
    """A setting, a tenant's configuration or an argument is not usable."""


class UnknownAgent(ConfigurationError):
    """No file agents.yaml declares an agent of this id."""


class UnknownTenant(ConfigurationError):
    """No tenant has that id, or it has been removed."""


class UnknownProject(ConfigurationError):
    """No tenant is this project of this organization, or the caller's token is not for it."""


class UnknownSource(ConfigurationError):
    """The tenant has no source of that name."""


class UnknownGeneration(ConfigurationError):
    """The tenant has no build of that number, or it is being removed."""


class NoRecordsSource(ConfigurationError):
    """The tenant has no source that records can be pushed to, or several and none was named."""


class NoUploadsSource(ConfigurationError):
    """The tenant has no source that files can be uploaded to, or several and none was named."""


class UnknownProfile(ConfigurationError):
    """No profile has that name."""


class WrongJudgements(ConfigurationError):
    """Lines of files of judgements are wrong; nothing of these files was stored.

    Args:
        lines: each with its file, its number and the reason; at least one.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        more = len(lines) - _SHOWN_LINES
        rest = f"; and {more:,} more" if more > 0 else ""
        super().__init__(
            f"{'; '.join(lines[:_SHOWN_LINES])}{rest}",
            hint="correct these lines and import again: nothing was stored",
        )
        self.lines = tuple(lines)


class NoReranker(ConfigurationError):
    """The tenant has no reranker, and a search requires one."""


class NoChatModel(ConfigurationError):
    """The tenant has no chat model, or none that is usable as configured."""


class ConfiguredByOperator(RagAssetsError):
    """The operator defines the project in tenants.yaml: it is not changed over the API."""


class BuildNotWritable(RagAssetsError):
    """A build's entries cannot be made any more: its recipe or its model is not available."""


class ServiceUnavailable(RagAssetsError):
    """A server that the project needs does not answer."""


class VectorsUnavailable(ServiceUnavailable):
    """The back end that a build's vectors are searched in does not answer."""


class TenantBusy(ServiceUnavailable):
    """A request waited too long for other writers of the same tenant."""


class ListingFailed(RagAssetsError):
    """A source could not be listed completely; what it holds is unknown."""


class TenantLocked(RagAssetsError):
    """Another process writes for this tenant."""


class OnHold(RagAssetsError):
    """A person has decided that it leaves no store until a hold is lifted."""


class DeletionsHeld(RagAssetsError):
    """So many records would be removed that a person has to allow it."""


class CatalogSetBack(RagAssetsError):
    """The catalog is an earlier one than the lake was written with; nothing is deleted by it."""


class TenantGone(RagAssetsError):
    """The tenant was removed, disabled or re-created while this writer was working."""


class DocumentRejected(RagAssetsError):
    """One document cannot be processed; it is quarantined with this message."""


class DocumentTooLarge(DocumentRejected):
    """The document is larger than the source allows."""


class DocumentVanished(DocumentRejected):
    """The document was removed after it was listed; the next listing notices it."""


class DocumentEncrypted(DocumentRejected):
    """The document needs a password that is not known."""


class DocumentEmpty(DocumentRejected):
    """There is no text in the document."""


class DocumentScanned(DocumentRejected):
    """The document's pages are pictures, and no text is found in them."""


class DocumentUnsupported(DocumentRejected):
    """No parser reads what the document is."""


class ParserUnusable(DocumentRejected):
    """The installation lacks something that the document's parser needs."""


class DocumentTimeout(DocumentRejected):
    """The document exceeded the time limit of one document."""


class DocumentTooCostly(DocumentRejected):
    """The document exceeded the memory limit of one document."""


class BlobMissing(DocumentRejected):
    """An uploaded file is not in the store of blobs."""


class BlobAltered(DocumentRejected):
    """An uploaded file has another content in the store of blobs than was uploaded."""


class UploadRefused(RagAssetsError):
    """A file is not accepted as an upload; nothing of it is kept."""


class UploadTooLarge(UploadRefused):
    """The file is larger than its source accepts."""


class UploadsFull(UploadRefused):
    """The source holds as many files, or as many bytes, as it may."""


class UploadUnreadable(UploadRefused):
    """No parser reads what the file is, by its content, or its source does not accept that."""


class TextRefused(RagAssetsError):
    """A text of an application's cannot be kept.

    Args:
        problems: of it, none of which quotes the text.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(
            f"the text cannot be kept: {'; '.join(problems)}", hint="change it, and set it again"
        )
        self.problems = tuple(problems)


class VersionChanged(RagAssetsError):
    """What is to be replaced is another version by now."""


class VersionMissing(RagAssetsError):
    """There is something to be replaced, and it is not said which version of it."""


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
        fault: why it refuses; None if the reason is another one, or unknown.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, fault: Fault | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.fault = fault


class ProviderError(RagAssetsError):
    """A model, or a request to its provider, failed.

    Attributes:
        requests: attempts made before it was raised; 0 if nothing was sent.
        tokens: charged for them; a malformed response is charged too.
    """

    requests: int = 1
    tokens: int = 0


class RequestsStopped(ProviderError):
    """No request of a tenant succeeds for now."""


class ProviderUnavailable(RequestsStopped, TransientFailure):
    """The provider is unavailable."""


class ProviderRefused(RequestsStopped, RequestRefused):
    """The provider refuses every request of a tenant."""


class NoProviderKey(ProviderRefused):
    """The tenant has no key for its provider.

    Args:
        message, hint: see RagAssetsError.
        provider: whose key is missing.
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


class GuidelinesOff(ProviderRefused):
    """Nothing is embedded while the tenant's organization has its guidelines switched off."""

    requests = 0


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
    """The provider permanently rejects this input."""


class BatchLost(ProviderError):
    """The results of a provider's batch are lost: its texts must be sent again."""


class DeadlineExceeded(ProviderError):
    """A call could not begin before its deadline; nothing was sent."""

    requests = 0


class MalformedResponse(ProviderError):
    """The provider's response is malformed, or larger than allowed."""


class BadVectors(MalformedResponse):
    """The embedder returned vectors that must not be stored."""


class WrongShape(BadVectors):
    """The embedder returned a wrong number or dimension of vectors: its model is another one."""


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
        requests: attempts made before it was raised; 0 if nothing was sent.
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


class PassagesWithdrawn(RagAssetsError):
    """The caller may no longer read a source of an answer."""


class SearchRejected(RagAssetsError):
    """A search exceeds the index's limit of words and filters."""


class BuildNotAskable(RagAssetsError):
    """A build cannot be searched until a person acts: its model, its key or its index is gone.

    Args:
        generation: its number.
        cause: the error of the search.
    """

    def __init__(self, generation: int, cause: RagAssetsError) -> None:
        super().__init__(f"build {generation} cannot be searched: {cause.message}", hint=cause.hint)
        self.generation = generation


class DamagedIndex(RagAssetsError):
    """What a store holds cannot be read; it is set aside and built again.

    Args:
        place: of the store.
    """

    def __init__(self, place: str) -> None:
        super().__init__(f"the index in {place} is damaged", hint="index the agent again")


class IndexInconsistent(RagAssetsError):
    """The serving index was lost, replaced or modified outside of rag-assets."""
