"""Kinds of failures, and their texts for each surface.

`documents.error_message` is for operators: the error's message and hint, which name variables,
fields and commands. The admins of a tenant cannot access these. The panel, the API's `errorMessage`
and the detail of a problem show the text of the kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from rag_assets.common import errors

FailureKind: TypeAlias = Literal[
    "unreadable",
    "encrypted",
    "empty",
    "scanned",
    "unsupported",
    "too-large",
    "too-slow",
    "too-complex",
    "lost",
    "changing",
    "credential",
    "no-key",
    "key-refused",
    "key-unreadable",
    "model-refused",
    "quota-exhausted",
    "address-refused",
    "request-refused",
    "cap-reached",
    "provider-unavailable",
    "provider-limits",
    "wrong-vectors",
    "bad-response",
    "text-rejected",
    "queued",
    "installation",
    "switched-off",
    "source-unavailable",
]
"""Persisted in `documents.error_kind`: a kind is never renamed."""

FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)

LEFT_OUT: frozenset[FailureKind] = frozenset(
    {"encrypted", "empty", "scanned", "unsupported", "too-large"}
)
"""Kinds that are not faults: such a document is skipped on purpose."""


@dataclass(frozen=True, slots=True)
class FailureWords:
    """The text of a kind of failure."""

    reason: str
    remedy: str
    """The step for an admin of the tenant, in one sentence."""
    can_retry: bool = False
    """Whether the same file can succeed when a retry is requested."""
    is_temporary: bool = False
    """Whether the cause is expected to end without a person's action."""

    @property
    def text(self) -> str:
        """Return the reason and remedy for a document in one line."""
        return f"{self.reason} {self.remedy}"

    @property
    def text_of_request(self) -> str:
        """Return the reason and remedy for a request, which only the caller can repeat."""
        return f"{self.reason} {'Try again later.' if self.is_temporary else self.remedy}"


def empty_note(chunk_count: int, dropped_count: int) -> str | None:
    """Return why searches find no passage of an indexed document; None if they find one."""
    if chunk_count:
        return None
    if dropped_count:
        return (
            "Searches cannot find this document: every passage contains a credential and is"
            " withheld."
        )
    return (
        "Searches cannot find this document: it contains no text, only front matter or blank lines."
    )


_WAIT = "No action is needed: processing is retried automatically."


def _describe_outage(reason: str) -> FailureWords:
    return FailureWords(reason, _WAIT, can_retry=True, is_temporary=True)


WORDS: Mapping[FailureKind, FailureWords] = {
    "unreadable": FailureWords(
        "The file is damaged, or its content does not fit its name.",
        "Open it, save it again, and upload the new copy.",
    ),
    "encrypted": FailureWords(
        "The file is protected by a password.", "Upload a copy without a password."
    ),
    "empty": FailureWords("There is no text in the file.", "Check that it is the right file."),
    "scanned": FailureWords(
        "Its pages are pictures without text.",
        "Run text recognition on it, or upload a version with text.",
    ),
    "unsupported": FailureWords(
        "Files of this format cannot be read.",
        "Save it as PDF, Word (.docx) or Markdown, and upload the new file.",
    ),
    "too-large": FailureWords("The file is too large.", "Split it into smaller files."),
    "too-slow": FailureWords(
        "Reading the file takes longer than is allowed for one file.",
        "Split it into smaller files.",
    ),
    "too-complex": FailureWords(
        "The file needs more memory, or has more parts, than is allowed for one file.",
        "Save it again, or split it into smaller files.",
    ),
    "lost": FailureWords("The stored file was lost or damaged.", "Upload the file again."),
    "changing": _describe_outage("The file changed while it was read."),
    "source-unavailable": _describe_outage(
        "The folder or server that holds the file does not answer."
    ),
    "credential": FailureWords(
        "The file contains a password or a key, which must not be searchable.",
        "Remove the password or key from the file, replace it wherever it is used, and upload"
        " the file again.",
    ),
    "no-key": FailureWords(
        "No key is set for the provider of models.",
        "Add a key of the provider, then retry.",
        can_retry=True,
    ),
    "key-refused": FailureWords(
        "The provider of models refuses the key.", "Set a valid key, then retry.", can_retry=True
    ),
    "key-unreadable": FailureWords(
        "The stored key of the provider of models can no longer be decrypted.",
        "Set the key again, then retry.",
        can_retry=True,
    ),
    "model-refused": FailureWords(
        "The provider of models does not offer the configured model.",
        "Have the operator of the service correct the model, then retry.",
        can_retry=True,
    ),
    "quota-exhausted": FailureWords(
        "The quota at the provider of models is exhausted.",
        "Raise the quota at the provider, then retry.",
        can_retry=True,
    ),
    "address-refused": FailureWords(
        "The configured address of the provider of models is not allowed or not trusted,"
        " so nothing was sent to it.",
        "Have the operator of the service correct or allow the address, then retry.",
        can_retry=True,
    ),
    "request-refused": FailureWords(
        "The provider of models refuses the request, and gives no reason.",
        "Have the operator of the service check the settings of the model, then retry.",
        can_retry=True,
    ),
    "cap-reached": FailureWords(
        "The cap on spending is reached.",
        "Wait until the cap is reset, or have it raised.",
        can_retry=True,
    ),
    "provider-unavailable": _describe_outage(
        "The provider of models does not answer, or reports an error of its own."
    ),
    "provider-limits": _describe_outage("The provider of models limits the rate of requests."),
    "wrong-vectors": FailureWords(
        "The provider of models returned the wrong number of vectors, or vectors of the wrong"
        " length.",
        "Have the operator of the service check the model and its address, then retry.",
        can_retry=True,
    ),
    "bad-response": FailureWords(
        "The provider of models returned a response that cannot be used.",
        "Processing is retried automatically; if the failure persists, inform the operator of"
        " the service.",
        can_retry=True,
        is_temporary=True,
    ),
    "text-rejected": FailureWords(
        "The provider of models rejects a text of the file, or returns no vector for it.",
        "Remove unusual parts, such as very long lines, and upload the file again.",
    ),
    "queued": FailureWords(
        "The texts of the file wait in a batch at the provider of models, for up to a day.",
        _WAIT,
        is_temporary=True,
    ),
    "installation": FailureWords(
        "The service could not process the file; the file itself is not the cause.",
        "Inform the operator of the service, then retry.",
        can_retry=True,
    ),
    "switched-off": FailureWords(
        "Guidelines are switched off in this organization.",
        "An admin of the organization can switch them on; then processing continues automatically.",
    ),
}

_KINDS_BY_FAULT: Mapping[errors.Fault, FailureKind] = {
    "key": "key-refused",
    "model": "model-refused",
    "quota": "quota-exhausted",
    "address": "address-refused",
}
_KINDS_BY_ERROR: Mapping[type[errors.RagAssetsError], FailureKind] = {
    errors.DocumentEncrypted: "encrypted",
    errors.DocumentEmpty: "empty",
    errors.DocumentScanned: "scanned",
    errors.DocumentUnsupported: "unsupported",
    errors.ParserUnusable: "installation",
    errors.DocumentTooLarge: "too-large",
    errors.DocumentTimeout: "too-slow",
    errors.DocumentTooCostly: "too-complex",
    errors.DocumentVanished: "changing",
    errors.DocumentUnreachable: "source-unavailable",
    errors.BlobMissing: "lost",
    errors.BlobAltered: "lost",
    errors.DocumentRejected: "unreadable",
    errors.WrongShape: "wrong-vectors",
    errors.MalformedResponse: "bad-response",
    errors.ChatFailed: "bad-response",
    errors.InputRejected: "text-rejected",
    errors.NoProviderKey: "no-key",
    errors.KeyUnreadable: "key-unreadable",
    errors.NotOptedIn: "switched-off",
    errors.ProviderRefused: "request-refused",
    errors.RequestRefused: "request-refused",
    errors.CapReached: "cap-reached",
    errors.TransientFailure: "provider-unavailable",
    errors.RequestsStopped: "provider-unavailable",
    errors.ProviderError: "provider-unavailable",
    errors.RagAssetsError: "installation",
}


OF_PROVIDERS: frozenset[FailureKind] = frozenset(
    {
        *("no-key", "key-refused", "key-unreadable", "model-refused", "quota-exhausted"),
        *("address-refused", "request-refused", "provider-unavailable", "provider-limits"),
        *("wrong-vectors", "bad-response"),
    }
)
"""Kinds whose texts fit both a request to a model and a document."""


def failure_kind(error: errors.RagAssetsError) -> FailureKind:
    """Return the kind of failure of an error."""
    if isinstance(error, errors.RequestRefused) and error.fault is not None:
        return _KINDS_BY_FAULT[error.fault]
    if isinstance(error, errors.ProviderUnavailable) and error.is_limited:
        return "provider-limits"
    return next(_KINDS_BY_ERROR[base] for base in type(error).__mro__ if base in _KINDS_BY_ERROR)
