"""The findings and the progress of scans of stored texts for credentials."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rag_assets.storage.catalog.document_rows import Document, DocumentChange
from rag_assets.storage.catalog.erasure_rows import Erasure


@dataclass(frozen=True, slots=True)
class Place:
    """The progress of a scan.

    Attributes:
        phase: texts, names, columns or stores.
        after: the last key, document id or column that was scanned; empty before the first.
    """

    phase: str
    after: str = ""

    @classmethod
    def of(cls, scan: Erasure) -> Place:
        """Return the position recorded with a scan."""
        return cls(scan.progress["phase"], scan.progress["after"])


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version of a document, with the keys of its text and its chunks in the lake."""

    document_id: str
    parse_key: str
    chunk_set_key: str


@dataclass(frozen=True, slots=True)
class FoundTexts:
    """Texts in the lake in which credentials were found.

    Attributes:
        masked: by parse_key, the key in the lake under which the masked text is kept for holds;
            None if the text could not be masked, and is removed.
        chunk_sets: keys of all chunk sets made from them.
        hashes: text_sha256 of the chunks with credentials.
        present: documents with one of them as current text, with their number of reindex requests.
        rules: how many credentials were found, by rule.
    """

    masked: Mapping[str, str | None] = field(default_factory=dict)
    chunk_sets: Collection[str] = ()
    hashes: Collection[str] = ()
    present: Mapping[str, int] = field(default_factory=dict)
    rules: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MaskedDocument:
    """A document's row with its credentials masked.

    Attributes:
        before: the row before masking.
        change: the row as a listing would write it.
        title: the displayed title.
    """

    before: Document
    change: DocumentChange
    title: str | None
