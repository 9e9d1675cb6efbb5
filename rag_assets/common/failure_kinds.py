"""Kinds of failures of documents, and what the people of a tenant can do about each.

`documents.error_message` speaks to operators: it names variables, fields and commands. Whoever
uploads files has none of these; they are told by the kind alone.
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
    "cap-reached",
    "provider-unavailable",
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
"""Kinds that are no fault: such a document is left out as it is."""


@dataclass(frozen=True, slots=True)
class FailureWords:
    """What is said about a kind of failure.

    Attributes:
        reason: what is the matter, in one sentence.
        remedy: what a person of the tenant does about it, in one sentence.
    """

    reason: str
    remedy: str


def empty_note(chunk_count: int, dropped_count: int) -> str | None:
    """Return why nothing of a document that is ready is found; None if something of it is.

    Args:
        chunk_count: passages that are found.
        dropped_count: passages that were withheld for a credential.
    """
    if chunk_count:
        return None
    if dropped_count:
        return "Nothing of it is found: each of its passages holds a credential, and is withheld."
    return "Nothing of it is found: it has no passage of text, only front matter or blanks."


_WAIT = "Nothing needs to be done: it is tried again by itself."
WORDS: Mapping[FailureKind, FailureWords] = {
    "unreadable": FailureWords(
        "The file is damaged, or is not what its name says.",
        "Open it, save it anew, and upload that.",
    ),
    "encrypted": FailureWords(
        "The file is protected by a password.", "Upload a copy without a password."
    ),
    "empty": FailureWords("There is no text in the file.", "See that it is the right file."),
    "scanned": FailureWords(
        "Its pages are pictures without text.",
        "Have text recognition run over it, or upload a version with text.",
    ),
    "unsupported": FailureWords(
        "Files of this kind cannot be read.",
        "Save it as PDF, Word or Markdown, and upload that.",
    ),
    "too-large": FailureWords("The file is too large.", "Split it into smaller files."),
    "too-slow": FailureWords(
        "Reading the file takes longer than a file may take.", "Split it into smaller files."
    ),
    "too-complex": FailureWords(
        "The file unfolds to more than a file may hold.",
        "Save it anew, or split it into smaller files.",
    ),
    "lost": FailureWords("The stored file was lost or damaged.", "Upload the file again."),
    "changing": FailureWords("The file changed while it was read.", _WAIT),
    "source-unavailable": FailureWords("Where the file lies does not answer.", _WAIT),
    "credential": FailureWords(
        "The file holds a password or a key that must not be found.",
        "Take it out of the file, change it where it is used, and upload the file again.",
    ),
    "no-key": FailureWords(
        "There is no key of a provider of models.", "Add the key of a provider, then retry."
    ),
    "key-refused": FailureWords(
        "The provider of models refuses the key, the model or the quota.",
        "Check the account at the provider, or give another key, then retry.",
    ),
    "cap-reached": FailureWords(
        "The cap on spending is reached.", "Wait until it is reset, or have it raised."
    ),
    "provider-unavailable": FailureWords("The provider of models does not answer.", _WAIT),
    "text-rejected": FailureWords(
        "The provider of models rejects a text of the file.",
        "Take unusual parts out of the file, such as very long lines, and upload it again.",
    ),
    "queued": FailureWords("Its texts wait at the provider of models, for up to a day.", _WAIT),
    "installation": FailureWords(
        "The service could not process the file.",
        "Tell the operator of the service; the file itself is not to blame.",
    ),
    "switched-off": FailureWords(
        "The organization has its guidelines switched off.",
        "Have an admin of the organization switch them on; then it goes on by itself.",
    ),
}

_OF_ERRORS: Mapping[type[errors.RagAssetsError], FailureKind] = {
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
    errors.WrongShape: "installation",
    errors.InputRejected: "text-rejected",
    errors.NoProviderKey: "no-key",
    errors.KeyUnreadable: "installation",
    errors.GuidelinesOff: "switched-off",
    errors.ProviderRefused: "key-refused",
    errors.RequestRefused: "key-refused",
    errors.CapReached: "cap-reached",
    errors.TransientFailure: "provider-unavailable",
    errors.RequestsStopped: "provider-unavailable",
    errors.ProviderError: "provider-unavailable",
    errors.RagAssetsError: "installation",
}


def failure_kind(error: errors.RagAssetsError) -> FailureKind:
    """The kind of failure that an error means for a document."""
    return next(_OF_ERRORS[base] for base in type(error).__mro__ if base in _OF_ERRORS)
