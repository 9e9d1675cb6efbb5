"""All errors that the project raises deliberately, in one tree.

A message states the problem and its place; the optional hint states the remedy. Neither may ever
hold a secret or the text of a document. The command line prints both and never a traceback.

    RagAssetsError
    ├── InvalidRequest            a request's parameters are not usable
    ├── UnknownDocument           no such document, or not readable by the caller
    ├── RoleRefused               callers of this role may not ask this tenant
    ├── DeletionsHeld             a manifest would delete too much without confirmation
    ├── NoVectorBackend           the installation lacks that back end
    ├── UnknownRun                no such agent run in the project
    ├── ConfigurationError        settings, tenants.yaml, arguments
    │   ├── ForeignInstallation   a catalog, store, folder or process is another installation's
    │   ├── PlaceChanged          a store's address differs from the record
    │   ├── TenantDisabled        no run works on the tenant
    │   ├── UnknownTenant
    │   ├── UnknownSource
    │   ├── UnknownGeneration
    │   ├── NoRecordsSource       not exactly one source accepts a tenant's records
    │   ├── NoUploadsSource       not exactly one source accepts a tenant's uploads
    │   ├── UnknownProfile
    │   ├── UnknownProject        no tenant is this project of this organization
    │   ├── WrongJudgements       lines of a file of judgements are wrong
    │   ├── NoReranker            a search requires one, and the tenant has none
    │   └── NoChatModel           the tenant lacks a usable chat model
    ├── ConfiguredByOperator      only tenants.yaml configures the project
    ├── BuildNotWritable          entries can no longer be written to a build
    ├── ServiceUnavailable        Postgres or Elasticsearch is unavailable
    │   ├── IndexUnavailable      Elasticsearch refuses until an operator acts
    │   ├── DiskFull              a disk of the installation is full
    │   ├── LakeDamaged           files of the lake were lost or damaged
    │   ├── VectorsUnavailable    the back end of a build's vectors is unavailable
    │   └── TenantBusy            other writers keep the tenant's lock for too long
    ├── ListingFailed             a source could not be listed; it does not count as empty
    ├── SchemaTooNew              a newer program upgraded the catalog's schema
    ├── OlderProgramRuns          an upgrade of the schema would stop a running process
    ├── SessionsNotKept           a pooler in front of Postgres does not keep sessions
    ├── TenantLocked              another process writes for this tenant
    ├── CatalogSetBack            the catalog was restored from an earlier dump: deletion stops
    │   └── RestorePending        it lacks security changes: no token is accepted either
    ├── ClockDoubted              the clock may be wrong: deletion by age stops
    ├── ErasureIncomplete         something that was to be erased still exists in a store
    ├── OnHold                    it must not be deleted for good until a hold is lifted
    ├── TenantGone                the tenant was removed or re-created under a running writer
    ├── DocumentRejected          this one document cannot be processed: quarantine it
    │   ├── DocumentTooLarge
    │   ├── DocumentVanished      removed after it was listed
    │   ├── DocumentUnreachable   its disk or share returned an error: tried again
    │   ├── DocumentEncrypted
    │   ├── DocumentEmpty         it contains no text
    │   ├── DocumentScanned       its pages are images without text
    │   ├── DocumentUnsupported   no parser supports its format
    │   ├── ParserUnusable        the installation lacks what its parser needs
    │   ├── DocumentTimeout
    │   ├── DocumentTooCostly     it needs more memory than a document may use
    │   ├── BlobMissing           an uploaded file is not in the store of blobs
    │   └── BlobAltered           an uploaded file was damaged there
    ├── UploadRefused             a file is not accepted as an upload
    │   ├── UploadTooLarge
    │   ├── UploadsFull           its source has reached its limit
    │   └── UploadUnreadable      no parser supports its format
    ├── VersionChanged            the version to be replaced has changed
    ├── TransientFailure          base of ProviderUnavailable and ChatUnavailable
    ├── RequestRefused            base of ProviderRefused and ChatRefused
    ├── ProviderError             a model, or a request to its provider, failed
    │   ├── RequestsStopped       no request of this tenant succeeds for now
    │   │   ├── ProviderUnavailable   transient: try again later
    │   │   ├── ProviderRefused       a person must change the key, model or quota
    │   │   │   ├── NoProviderKey     the tenant's key is missing; HTTP 402
    │   │   │   ├── KeyUnreadable     the stored key cannot be decrypted
    │   │   │   └── NotOptedIn        the organization has not opted in
    │   │   └── CapReached            the tenant's spending cap
    │   ├── InputRejected         this input is never accepted: quarantine its documents
    │   ├── BatchLost             the results of a provider's batch are lost
    │   ├── DeadlineExceeded      the deadline passed before the call started
    │   └── MalformedResponse     the response cannot be used
    │       └── BadVectors        malformed, not finite, zeros: stop the tenant for now
    │           └── WrongShape    wrong count or dimension: needs a person
    ├── RerankFailed              the search continues without scores
    ├── ChatError                 a chat model returned no usable answer
    │   ├── ChatUnavailable       transient: try again later
    │   │   └── ChatTimeout          the time limit passed
    │   ├── ChatRefused           a person must change the key, model or quota
    │   ├── PromptRejected        the prompt is too long, or violates the provider's policy
    │   └── ChatFailed            its answer is malformed
    ├── PassagesWithdrawn         a source of an answer is no longer readable
    ├── SearchRejected            a search exceeds the index's limit of words and filters
    ├── BuildNotAskable           a build cannot be searched until a person acts
    └── IndexInconsistent         the serving index is not the recorded index
"""

from __future__ import annotations

from rag_assets.common.errors.base import ProblemKind, RagAssetsError
from rag_assets.common.errors.configuration import (
    ConfigurationError,
    ConfiguredByOperator,
    ForeignInstallation,
    NoChatModel,
    NoRecordsSource,
    NoReranker,
    NoUploadsSource,
    PlaceChanged,
    TenantDisabled,
    UnknownGeneration,
    UnknownProfile,
    UnknownProject,
    UnknownSource,
    UnknownTenant,
    WrongJudgements,
)
from rag_assets.common.errors.documents import (
    BlobAltered,
    BlobMissing,
    DocumentEmpty,
    DocumentEncrypted,
    DocumentRejected,
    DocumentScanned,
    DocumentTimeout,
    DocumentTooCostly,
    DocumentTooLarge,
    DocumentUnreachable,
    DocumentUnsupported,
    DocumentVanished,
    ParserUnusable,
)
from rag_assets.common.errors.providers import (
    BadVectors,
    BatchLost,
    CapReached,
    ChatError,
    ChatFailed,
    ChatRefused,
    ChatTimeout,
    ChatUnavailable,
    DeadlineExceeded,
    Fault,
    InputRejected,
    KeyUnreadable,
    MalformedResponse,
    NoProviderKey,
    NotOptedIn,
    PromptRejected,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    RequestRefused,
    RequestsStopped,
    RerankFailed,
    RerankFault,
    TransientFailure,
    WrongShape,
)
from rag_assets.common.errors.requests import (
    DeletionsHeld,
    InvalidRequest,
    NoVectorBackend,
    PassagesWithdrawn,
    RoleRefused,
    SearchRejected,
    UnknownDocument,
    UnknownRun,
    UploadRefused,
    UploadsFull,
    UploadTooLarge,
    UploadUnreadable,
    VersionChanged,
)
from rag_assets.common.errors.stores import (
    BuildNotAskable,
    BuildNotWritable,
    CatalogSetBack,
    ClockDoubted,
    DiskFull,
    ErasureIncomplete,
    IndexInconsistent,
    IndexUnavailable,
    LakeDamaged,
    ListingFailed,
    OlderProgramRuns,
    OnHold,
    RestorePending,
    SchemaTooNew,
    ServiceUnavailable,
    SessionsNotKept,
    TenantBusy,
    TenantGone,
    TenantLocked,
    VectorsUnavailable,
)

__all__ = [
    "BadVectors",
    "BatchLost",
    "BlobAltered",
    "BlobMissing",
    "BuildNotAskable",
    "BuildNotWritable",
    "CapReached",
    "CatalogSetBack",
    "ChatError",
    "ChatFailed",
    "ChatRefused",
    "ChatTimeout",
    "ChatUnavailable",
    "ClockDoubted",
    "ConfigurationError",
    "ConfiguredByOperator",
    "DeadlineExceeded",
    "DeletionsHeld",
    "DiskFull",
    "DocumentEmpty",
    "DocumentEncrypted",
    "DocumentRejected",
    "DocumentScanned",
    "DocumentTimeout",
    "DocumentTooCostly",
    "DocumentTooLarge",
    "DocumentUnreachable",
    "DocumentUnsupported",
    "DocumentVanished",
    "ErasureIncomplete",
    "Fault",
    "ForeignInstallation",
    "IndexInconsistent",
    "IndexUnavailable",
    "InputRejected",
    "InvalidRequest",
    "KeyUnreadable",
    "LakeDamaged",
    "ListingFailed",
    "MalformedResponse",
    "NoChatModel",
    "NoProviderKey",
    "NoRecordsSource",
    "NoReranker",
    "NoUploadsSource",
    "NoVectorBackend",
    "NotOptedIn",
    "OlderProgramRuns",
    "OnHold",
    "ParserUnusable",
    "PassagesWithdrawn",
    "PlaceChanged",
    "ProblemKind",
    "PromptRejected",
    "ProviderError",
    "ProviderRefused",
    "ProviderUnavailable",
    "RagAssetsError",
    "RequestRefused",
    "RequestsStopped",
    "RerankFailed",
    "RerankFault",
    "RestorePending",
    "RoleRefused",
    "SchemaTooNew",
    "SearchRejected",
    "ServiceUnavailable",
    "SessionsNotKept",
    "TenantBusy",
    "TenantDisabled",
    "TenantGone",
    "TenantLocked",
    "TransientFailure",
    "UnknownDocument",
    "UnknownGeneration",
    "UnknownProfile",
    "UnknownProject",
    "UnknownRun",
    "UnknownSource",
    "UnknownTenant",
    "UploadRefused",
    "UploadTooLarge",
    "UploadUnreadable",
    "UploadsFull",
    "VectorsUnavailable",
    "VersionChanged",
    "WrongJudgements",
    "WrongShape",
]
