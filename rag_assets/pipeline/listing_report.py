"""Report of a listing of a tenant's sources, with credentials masked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from types import MappingProxyType
from typing import Any

from rag_assets.ingest.sources.diff import Change
from rag_assets.ingest.sources.model import (
    NO_METADATA,
    ListedDocument,
    SourceMetadata,
    path_of,
    uri_of,
)
from rag_assets.pipeline.quarantine import DocumentNote
from rag_assets.privacy.masker import Masker
from rag_assets.storage.catalog.documents.model import CatalogDocument

_SAMPLE = 20


@dataclass(frozen=True, slots=True)
class ListedChange:
    """One document that was added, changed, removed or moved.

    Attributes:
        former: the document's former uri; "" unless it was moved.
    """

    kind: str
    uri: str
    bytes: int
    former: str = ""


@dataclass(frozen=True, slots=True)
class ListingReport:
    """Report on a listing of all sources.

    Attributes:
        moved: removed documents whose content was found in another location; each of them is also
            counted as added.
        held: documents that vanished in suspicious numbers and were not deleted.
        failed: documents that cannot be read, temporarily or permanently.
        bytes: size of added and changed documents.
        sample: the first changes.
        rejected: the first documents that cannot be read, with reasons.
        unlisted: why sources could not be listed; the other sources were listed.
        left_out: how many files each source excludes, by the rule that excludes them.
    """

    added: int = 0
    changed: int = 0
    touched: int = 0
    unchanged: int = 0
    removed: int = 0
    held: int = 0
    failed: int = 0
    bytes: int = 0
    sample: tuple[ListedChange, ...] = ()
    rejected: tuple[DocumentNote, ...] = ()
    unlisted: tuple[str, ...] = ()
    seconds: float = 0.0
    moved: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def documents(self) -> int:
        """Return the number of documents in the sources."""
        return self.added + self.changed + self.touched + self.unchanged + self.failed

    def plus(self, other: ListingReport) -> ListingReport:
        """Return the sum of both reports."""
        names = [each.name for each in fields(self)]
        return ListingReport(*(getattr(self, name) + getattr(other, name) for name in names))


class MaskedNames:
    """Masks credentials in names and metadata of documents; a file's name can be a credential, too.

    Names in the catalog were masked when they were added. The scanner takes a quarter of a second
    to load, so it is not used again if only contents changed.
    """

    def __init__(self, known: Iterable[CatalogDocument], masker: Masker) -> None:
        self._uris = {row.document_id: row.uri for row in known if row.status != "DELETED"}
        self._masker = masker

    def prepare(self, documents: Iterable[ListedDocument]) -> None:
        """Scan the metadata of many documents together."""
        self._masker.prime(text for document in documents for text in self._texts(document))

    def uri(self, document: ListedDocument) -> str:
        """Return a document's uri with credentials masked; the uri stays unique."""
        if document.source_metadata.uri is not None:
            return self.masked(document.source_metadata.uri)
        # The former uri of a pushed record may not derive from its path.
        uri = None if document.revision is not None else self._uris.get(document.document_id)
        if uri is None:
            uri = uri_of(document.source, self._distinct_path(document))
            self._uris[document.document_id] = uri
        return uri

    def path(self, document: ListedDocument) -> str:
        """Return a document's path with credentials masked; ListedPaths resolves it for reading."""
        if document.document_id in self._uris and document.revision is None:
            known = path_of(self._uris[document.document_id])
            if known == document.path:
                return known
        return self.masked(document.path)

    def source_metadata(self, source: SourceMetadata) -> SourceMetadata:
        """Return a document's metadata from its source with credentials masked."""
        if source is NO_METADATA:
            return source
        metadata: dict[str, Any] = {}
        for name, value in source.metadata.items():
            shown = self.masked(name)
            while shown in metadata:
                shown += "*"
            metadata[shown] = self._value(name, value)
        return replace(
            source,
            title=None if source.title is None else self.masked(source.title),
            access_scope=None if source.access_scope is None else self.masked(source.access_scope),
            tags=tuple(map(self.masked, source.tags)),
            metadata=metadata,
        )

    def masked(self, text: str) -> str:
        """Return the text with credentials masked."""
        return self._masker.text(text)

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self._value(name, item) for item in value]
        if isinstance(value, bool) or value is None:
            return value
        text = str(value)
        shown = self._masker.named_value(name, text)
        return value if shown == text else shown

    def _texts(self, document: ListedDocument) -> Iterator[str]:
        if document.revision is not None or document.document_id not in self._uris:
            yield document.path
        if document.source_metadata is NO_METADATA:
            return
        source = document.source_metadata
        yield from filter(None, (source.title, source.uri, source.access_scope, *source.tags))
        for name, value in source.metadata.items():
            yield name
            for one in value if isinstance(value, list) else [value]:
                yield str(one)
                yield f"{name}: {one}"

    def _distinct_path(self, document: ListedDocument) -> str:
        """Return the path with credentials masked.

        A masked path ends with a part of the document's id, so that it is unique.
        """
        path = self.masked(document.path)
        if path == document.path:
            return path
        folder, slash, name = path.rpartition("/")
        stem, dot, suffix = name.rpartition(".")
        mark = f"~{document.document_id[:8]}"
        return folder + slash + (f"{stem}{mark}{dot}{suffix}" if stem else f"{name}{mark}")


def sample_of(
    changes: Sequence[Change],
    known: Collection[CatalogDocument],
    removed: Iterable[str],
    names: MaskedNames,
    moved: Mapping[str, str] = MappingProxyType({}),
) -> tuple[ListedChange, ...]:
    """Return the first documents that were added, changed, moved or removed.

    Args:
        changes: documents that were added or changed.
        known: the documents of the source that the catalog had before.
        removed: ids of removed documents, in order.
        names: masks the documents' names.
        moved: maps the ids of removed documents to their new ids; each move is reported once.
    """
    uris = {row.document_id: row.uri for row in known} if moved else {}
    former = {new: uris[old] for old, new in moved.items()}
    shown = [
        ListedChange(
            "moved" if change.document.document_id in former else change.kind,
            names.uri(change.document),
            change.document.size,
            former.get(change.document.document_id, ""),
        )
        for change in changes[:_SAMPLE]
    ]
    gone = set(islice((id_ for id_ in removed if id_ not in moved), _SAMPLE - len(shown)))
    shown += [
        ListedChange("removed", row.uri, row.facts.size) for row in known if row.document_id in gone
    ]
    return tuple(shown)


def rejected_of(changes: Iterable[Change], names: MaskedNames) -> tuple[DocumentNote, ...]:
    """Return the first documents that could not be read, with reasons."""
    refused = [change for change in changes if change.error is not None]
    return tuple(
        DocumentNote(
            change.document.document_id,
            names.uri(change.document),
            names.masked(change.error.message),
        )
        for change in refused[:_SAMPLE]
        if change.error is not None
    )
