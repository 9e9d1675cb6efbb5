"""Re-scan: apply new credential rules to all stored data of a tenant.

Texts in the lake, names of documents, and texts in Postgres are scanned in this order. Each batch
is one transaction: it hides the batch's findings from searches, and records the position of the
scan. An ordinary erasure then removes the findings from the stores; see pipeline/erasure.py.

A text with credentials is masked, and stored under the key that its documents have from then on. So
no document has to be parsed again, and documents keep answering even if their source is gone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from rag_assets.common.batches import batched
from rag_assets.common.hashing import compute_key
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.ingest.parsing import masking
from rag_assets.ingest.parsing.masking import mask_new_credentials
from rag_assets.ingest.parsing.model import ParsedText, compute_parsed_digest
from rag_assets.ingest.sources.model import (
    NO_METADATA,
    ListedDocument,
    SourceMetadata,
    build_uri,
    parse_path,
)
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.generations import find_active_builds
from rag_assets.pipeline.slices import StageProgress, find_parsed_documents
from rag_assets.pipeline.versions import record_missing_keys
from rag_assets.privacy.masker import MASKING_VERSION, Masker
from rag_assets.privacy.secrets.scanner import SecretScanner, rules_version
from rag_assets.storage.catalog.builds.syncs import Sync
from rag_assets.storage.catalog.documents.model import CatalogDocument, Document, DocumentChange
from rag_assets.storage.catalog.erasure.erasures import Erasure
from rag_assets.storage.catalog.erasure.rescans import FoundTexts, MaskedDocument, ScanPosition
from rag_assets.storage.catalog.erasure.traces import list_scanned_columns
from rag_assets.storage.lake.model import ParsedRow

_ENCODED = "in another encoding"
"""Replaces the rule's name if a credential is found only in the decoded form of a name."""

_BATCH_DOCUMENTS = 2_000
_BATCH_CHUNK_SETS = 200
NOT_SCANNED = "not scanned in time"
"""Replaces the rule's name if a text takes too long to scan; such a text is removed."""
_BATCH_TEXTS = 100
_BATCH_ROWS = 500


class MaskedNames:
    """Masks credentials in names and metadata of documents; a file's name can be a credential, too.

    Names in the catalog were masked when they were added. The scanner takes a quarter of a second
    to load, so it is not used again if only contents changed.

    Args:
        declared_types: source types that programs declare, and so need no masking.
    """

    def __init__(
        self,
        known: Iterable[CatalogDocument],
        masker: Masker,
        declared_types: Collection[str] = (),
    ) -> None:
        self._uris = {row.document_id: row.uri for row in known if row.status != "DELETED"}
        self._masker = masker
        self._declared_types = declared_types

    def mask_source_type(self, document: ListedDocument) -> str:
        """Return a document's source type; with credentials masked if its source chose it."""
        is_declared = document.source_type in self._declared_types
        return document.source_type if is_declared else self.mask(document.source_type)

    def prepare(self, documents: Iterable[ListedDocument]) -> None:
        """Scan the metadata of many documents together."""
        self._masker.prime(text for document in documents for text in self._iter_texts(document))

    def mask_uri(self, document: ListedDocument) -> str:
        """Return a document's uri with credentials masked; the uri stays unique."""
        if document.source_metadata.uri is not None:
            return self.mask(document.source_metadata.uri)
        # The former uri of a pushed record may not derive from its path.
        uri = None if document.revision is not None else self._uris.get(document.document_id)
        if uri is None:
            uri = build_uri(document.source, self._mask_path_distinctly(document))
            self._uris[document.document_id] = uri
        return uri

    def mask_path(self, document: ListedDocument) -> str:
        """Return a document's path with credentials masked; ListedPaths resolves it for reading."""
        if document.document_id in self._uris and document.revision is None:
            known = parse_path(self._uris[document.document_id])
            if known == document.path:
                return known
        return self.mask(document.path)

    def mask_metadata(self, source: SourceMetadata) -> SourceMetadata:
        """Return a document's metadata from its source with credentials masked."""
        if source is NO_METADATA:
            return source
        metadata: dict[str, Any] = {}
        for name, value in source.metadata.items():
            shown = self.mask(name)
            while shown in metadata:
                shown += "*"
            metadata[shown] = self._mask_value(name, value)
        return replace(
            source,
            title=None if source.title is None else self.mask(source.title),
            access_scope=None if source.access_scope is None else self.mask(source.access_scope),
            tags=tuple(map(self.mask, source.tags)),
            metadata=metadata,
        )

    def mask(self, text: str) -> str:
        """Return the text with credentials masked."""
        return self._masker.text(text)

    def _mask_value(self, name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self._mask_value(name, item) for item in value]
        if isinstance(value, bool) or value is None:
            return value
        text = str(value)
        shown = self._masker.mask_named_value(name, text)
        return value if shown == text else shown

    def _iter_texts(self, document: ListedDocument) -> Iterator[str]:
        if document.revision is not None or document.document_id not in self._uris:
            yield document.path
        if document.source_metadata is NO_METADATA:
            return
        source = document.source_metadata
        yield from filter(None, (source.title, source.uri, source.access_scope, *source.tags))
        for name, value in source.metadata.items():
            yield name
            for item in value if isinstance(value, list) else [value]:
                yield str(item)
                yield f"{name}: {item}"

    def _mask_path_distinctly(self, document: ListedDocument) -> str:
        """Return the path with credentials masked, made unique by the document's id."""
        path = self.mask(document.path)
        if path == document.path:
            return path
        folder, slash, name = path.rpartition("/")
        stem, dot, suffix = name.rpartition(".")
        mark = f"~{document.document_id[:8]}"
        return folder + slash + (f"{stem}{mark}{dot}{suffix}" if stem else f"{name}{mark}")


def have_settings_changed(last: Sync | None, settings: str) -> bool:
    """Return whether a source was last listed with different settings or credential rules."""
    digest = None if last is None else last.listing_digest
    return bool(digest) and not str(digest).endswith(settings[:8])


def mask_rows(
    rows: Sequence[Document], masker: Masker, scanner: SecretScanner
) -> tuple[list[MaskedDocument], Mapping[str, int]]:
    """Mask credentials in documents' rows; return changed rows, and the number of finds by rule."""
    masker.prime(text for row in rows for text in _iter_texts(row))
    masked_rows, rules = [], Counter[str]()
    for row in rows:
        change = _build_masked_change(row, masker)
        title = masker.text(row.title) if row.title else row.title
        if change == build_change_from_row(row) and title == row.title:
            continue
        masked_rows.append(MaskedDocument(row, change, title))
        texts = dict.fromkeys(text for text in _iter_texts(row) if masker.holds_credential(text))
        spans = [span.rule for text in texts for span in scanner.scan(text)]
        rules.update(spans or [_ENCODED])
    return masked_rows, rules


def build_change_from_row(row: Document) -> DocumentChange:
    """Return the change with which a listing would write this row."""
    values = {f.name: getattr(row, f.name) for f in fields(DocumentChange) if f.name != "error"}
    if row.content_sha256 is None:
        return DocumentChange(**values, error=row.error_message)
    return DocumentChange(**{**values, "error_kind": None})


def _iter_texts(row: Document) -> Iterator[str]:
    yield _decode_path(row)
    yield row.uri
    yield from filter(None, (row.title, row.said_title, *row.tags))
    for name, value in row.metadata.items():
        yield name
        for item in value if isinstance(value, list) else [value]:
            yield f"{name}: {item}"


def _decode_path(row: Document) -> str:
    return row.path.decode("utf-8", "surrogateescape")


def _build_masked_change(row: Document, masker: Masker) -> DocumentChange:
    """Return the change with which a listing would write this row after masking its credentials."""
    metadata = SourceMetadata(title=row.said_title, tags=row.tags, metadata=row.metadata)
    shown = MaskedNames((), masker).mask_metadata(metadata)
    return replace(
        build_change_from_row(row),
        path=masker.text(_decode_path(row)).encode("utf-8", "surrogateescape"),
        uri=masker.text(row.uri),
        source_type=masker.text(row.source_type),
        said_title=shown.title,
        tags=shown.tags,
        metadata=shown.metadata,
    )


@dataclass(frozen=True, slots=True)
class _CredentialText:
    """A text in which credentials were found.

    Attributes:
        masked: the text with credentials masked; None if it could not be scanned.
        rules: the rule that found each credential.
    """

    text: ParsedText
    masked: ParsedText | None
    rules: Sequence[str]

    def changes(self, chunk: Chunk) -> bool:
        """Return whether masking changes a chunk, its context or its headings.

        The position of context lines in the text is not stored, so any change above the chunk
        counts.
        """
        if self.masked is None or self.masked.blocks != self.text.blocks:
            return True
        start = 0 if chunk.context else chunk.start
        return self.masked.text[start : chunk.end] != self.text.text[start : chunk.end]


class MaskedTexts:
    """Masks the texts of a tenant in which the current rules find credentials."""

    def __init__(self, ctx: TenantContext, scanner: SecretScanner) -> None:
        self._ctx = ctx
        self._scanner = scanner

    def mask_texts(self, keys: Collection[str]) -> FoundTexts | None:
        """Scan the texts with these keys, and store masked copies of those with credentials.

        Return the texts with credentials and the texts that could not be scanned; None if there are
        no such texts.
        """
        credential_texts: dict[str, _CredentialText] = {}
        for key, row in sorted(self._ctx.lake.parsed(keys).items()):
            try:
                masked = mask_new_credentials(row.parsed, self._scanner)
            except TimeoutError:
                credential_texts[key] = _CredentialText(row.parsed, None, [NOT_SCANNED])
                continue
            if masked is not None:
                credential_texts[key] = _CredentialText(row.parsed, *masked)
        return self._store_masked_texts(credential_texts) if credential_texts else None

    def _store_masked_texts(self, credential_texts: Mapping[str, _CredentialText]) -> FoundTexts:
        """Write masked texts to the lake before the catalog refers to them; return the findings."""
        ctx = self._ctx
        behind = [id_ for key in credential_texts for id_ in self._unindexed_documents.get(key, ())]
        versions = ctx.catalog.rescans.versions(ctx.ref.id, credential_texts.keys())
        holders = self._list_documents_with_texts(
            {*behind, *(version.document_id for version in versions)}, credential_texts
        )
        chunk_sets = {
            version.chunk_set_key: version.parse_key
            for version in versions
            if version.chunk_set_key
        }
        for item in find_parsed_documents(ctx, holders):
            chunk_sets[item.chunk_set_key] = ctx.parse_key(item.document)
        # None: the text could not be scanned, so no masked copy is kept for holds.
        kept = {
            key: None
            if text.masked is None
            else compute_key("masked", key, compute_parsed_digest(text.masked))
            for key, text in credential_texts.items()
        }
        rows = {}
        for holder in holders:
            # One more request to reindex the document changes its parse_key.
            reindexed = replace(holder, reindex_requests=holder.reindex_requests + 1)
            rows[ctx.parse_key(reindexed)] = credential_texts[ctx.parse_key(holder)]
        if self._has_holds:
            rows |= {new: credential_texts[key] for key, new in kept.items() if new is not None}
        masked = [
            ParsedRow(key, compute_parsed_digest(text), text)
            for key in sorted(ctx.lake.find_missing_parsed(rows))
            if (text := rows[key].masked) is not None
        ]
        ctx.lake.append_parsed(masked)
        return FoundTexts(
            masked=kept,
            chunk_sets=chunk_sets.keys(),
            hashes=self._list_hashes(chunk_sets, credential_texts),
            present={holder.document_id: holder.reindex_requests for holder in holders},
            rules=Counter(rule for text in credential_texts.values() for rule in text.rules),
        )

    def _list_hashes(
        self, chunk_sets: Mapping[str, str], credential_texts: Mapping[str, _CredentialText]
    ) -> set[str]:
        """Return the text_sha256 of the chunks that masking changes."""
        return {
            chunk.text_sha256
            for keys in batched(chunk_sets, _BATCH_CHUNK_SETS)
            for key, row in self._ctx.lake.chunk_sets(keys).items()
            for chunk in row.chunks
            if credential_texts[chunk_sets[key]].changes(chunk)
        }

    def _list_documents_with_texts(
        self, ids: Collection[str], parse_keys: Collection[str]
    ) -> list[Document]:
        """Return the documents with these ids whose current text is one of the found texts."""
        ctx = self._ctx
        return [
            document
            for batch in batched(sorted(ids), _BATCH_DOCUMENTS)
            for document in ctx.catalog.documents.find(ctx.ref.id, batch)
            if document.content_sha256 is not None and ctx.parse_key(document) in parse_keys
        ]

    @cached_property
    def _has_holds(self) -> bool:
        return bool(self._ctx.catalog.holds.all(self._ctx.ref.id))

    @cached_property
    def _unindexed_documents(self) -> dict[str, list[str]]:
        """Return the ids of documents whose current content a build lacks, grouped by parse_key."""
        ctx = self._ctx
        builds = find_active_builds(ctx, ctx.catalog.generations.live(ctx.ref.id)).values()
        keys = {build.generation.number: build.context.config_key for build in builds} or {
            0: ctx.config_key
        }
        documents: dict[str, list[str]] = {}
        for build in builds:
            record_missing_keys(build.context, build.generation.number, build.context.config_key)
        for number, config_key in keys.items():
            ids = ctx.catalog.lake_keys.list_outdated(ctx.ref.id, number, config_key)
            for batch in batched(ids, _BATCH_DOCUMENTS):
                for document in ctx.catalog.documents.find(ctx.ref.id, batch):
                    documents.setdefault(ctx.parse_key(document), []).append(document.document_id)
        return documents


def read_rules_version() -> str:
    """Return the version of all rules that decide which text is masked."""
    return f"{rules_version()}, cells {masking.VERSION}, names {MASKING_VERSION}"


def begin_scan(ctx: TenantContext, *, by: str) -> Erasure | None:
    """Start to scan a tenant's stored data; None if the current rules were already applied."""
    version = read_rules_version()
    if ctx.scanned.get("version") == version:
        return None
    ctx.guard()
    at = ctx.clock.now()
    return ctx.catalog.rescans.begin(ctx.ref, version, rule=_format_rule(version), by=by, at=at)


def scan(
    ctx: TenantContext, erasure: Erasure, scanner: SecretScanner, *, seconds: float | None = None
) -> Erasure | None:
    """Continue a scan for up to `seconds`, and hide its findings; return it once it is finished."""
    if erasure.rule != _format_rule(read_rules_version()):
        return erasure  # A scan with newer rules has started; it covers the rest.
    return _Scan(ctx, erasure, scanner).run(seconds)


def _format_rule(version: str) -> str:
    return f"rules {version}"


class _Scan:
    def __init__(self, ctx: TenantContext, erasure: Erasure, scanner: SecretScanner) -> None:
        self._ctx = ctx
        self._erasure = erasure
        self._scanner = scanner

    def run(self, seconds: float | None) -> Erasure | None:
        deadline = None if seconds is None else time.monotonic() + seconds
        place = ScanPosition.from_scan(self._erasure)
        phases = {
            "texts": self._iter_texts,
            "names": self._iter_names,
            "columns": self._iter_columns,
        }
        if place.phase not in phases:
            return self._erasure
        names = [*phases]
        for name in names[names.index(place.phase) :]:
            after = place.after if name == place.phase else ""
            for _ in phases[name](after):
                if deadline is not None and time.monotonic() > deadline:
                    return None
        self._advance(ScanPosition("stores"))
        return self._erasure

    def _advance(self, place: ScanPosition, **counts: Mapping[str, int]) -> None:
        self._ctx.guard()
        self._erasure = self._ctx.catalog.rescans.advance(self._erasure, place, counts)

    def _iter_texts(self, after: str) -> Iterator[None]:
        ctx = self._ctx
        keys = sorted(key for key in ctx.lake.read_parsed_keys() if key > after)
        progress = StageProgress("credentials in texts", len(keys), ctx.log)
        texts = MaskedTexts(ctx, self._scanner)
        for start in range(0, len(keys), _BATCH_TEXTS):
            batch = keys[start : start + _BATCH_TEXTS]
            credential_texts = texts.mask_texts(batch)
            if credential_texts is None:
                self._advance(ScanPosition("texts", batch[-1]))
            else:
                ctx.guard()
                self._erasure = ctx.catalog.rescans.withhold_texts(
                    ctx.ref, self._erasure, credential_texts, after=batch[-1]
                )
            progress.advance(len(batch))
            yield
        progress.finish()

    def _iter_names(self, after: str) -> Iterator[None]:
        ctx, masker = self._ctx, Masker(self._scanner)
        while rows := ctx.catalog.rescans.list_documents_after(ctx.ref.id, after, _BATCH_ROWS):
            after = rows[-1].document_id
            masked, rules = mask_rows(rows, masker, self._scanner)
            ctx.guard()
            self._erasure = ctx.catalog.rescans.mask_documents(
                ctx.ref, self._erasure, masked, rules, after=after
            )
            yield

    def _iter_columns(self, after: str) -> Iterator[None]:
        ctx, masker = self._ctx, Masker(self._scanner)
        columns = list_scanned_columns()
        names = [column.name for column in columns]
        # If the system that owned the last column was uninstalled, all columns are scanned again.
        for column in columns[names.index(after) + 1 if after in names else 0 :]:
            ctx.guard()
            changed = ctx.catalog.text_columns.mask(ctx.ref, column, masker)
            self._advance(ScanPosition("columns", column.name), texts={"texts masked": changed})
            yield
