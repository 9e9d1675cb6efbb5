"""Mask credentials that new rules find in the texts stored in the lake.

A text with credentials is masked, and stored under the key that its documents have from then on. So
no document has to be parsed again, and documents keep answering even if their source is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rag_assets.common.batches import batched
from rag_assets.common.hashing import key_of
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.ingest.parsing.masking import mask_again
from rag_assets.ingest.parsing.model import ParsedText, parsed_digest
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.generations import found_builds
from rag_assets.pipeline.live_keys import record_missing
from rag_assets.pipeline.slices import parsed_documents
from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.catalog.erasure.rescans import FoundTexts
from rag_assets.storage.lake.model import ParsedRow

_BATCH = 2_000
_CHUNK_SETS = 200
NOT_SCANNED = "not scanned in time"
"""Replaces the rule's name if a text takes too long to scan; such a text is removed."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A text with credentials.

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
    """Masks the texts of one tenant.

    Args:
        ctx: the tenant's context; the caller holds the tenant's lock.
        scanner: uses the new rules.
    """

    def __init__(self, ctx: TenantContext, scanner: SecretScanner) -> None:
        self._ctx = ctx
        self._scanner = scanner

    def masked(self, keys: Collection[str]) -> FoundTexts | None:
        """Mask the texts with these keys; None if they contain no credential."""
        found: dict[str, _Found] = {}
        for key, row in sorted(self._ctx.lake.parsed(keys).items()):
            try:
                again = mask_again(row.parsed, self._scanner)
            except TimeoutError:
                found[key] = _Found(row.parsed, None, [NOT_SCANNED])
                continue
            if again is not None:
                found[key] = _Found(row.parsed, *again)
        return self._store_masked_texts(found) if found else None

    def _store_masked_texts(self, found: Mapping[str, _Found]) -> FoundTexts:
        """Write the masked texts to the lake, before the catalog refers to them."""
        ctx = self._ctx
        behind = [id_ for key in found for id_ in self._unindexed_documents.get(key, ())]
        versions = ctx.catalog.rescans.versions(ctx.ref.id, found.keys())
        holders = self._documents_with_texts(
            {*behind, *(one.document_id for one in versions)}, found
        )
        chunk_sets = {one.chunk_set_key: one.parse_key for one in versions if one.chunk_set_key}
        for item in parsed_documents(ctx, holders):
            chunk_sets[item.chunk_set_key] = ctx.parse_key(item.document)
        kept = {key: _key_for_holds(key, one.masked) for key, one in found.items()}
        rows = {
            ctx.parse_key(_with_reindex_request(one)): found[ctx.parse_key(one)] for one in holders
        }
        if self._has_holds:
            rows |= {new: found[key] for key, new in kept.items() if new is not None}
        masked = [
            ParsedRow(key, parsed_digest(text), text)
            for key in sorted(ctx.lake.missing_parsed(rows))
            if (text := rows[key].masked) is not None
        ]
        ctx.lake.append_parsed(masked)
        return FoundTexts(
            masked=kept,
            chunk_sets=chunk_sets.keys(),
            hashes=self._hashes(chunk_sets, found),
            present={one.document_id: one.reindex_requests for one in holders},
            rules=Counter(rule for one in found.values() for rule in one.rules),
        )

    def _hashes(self, chunk_sets: Mapping[str, str], found: Mapping[str, _Found]) -> set[str]:
        """Return the hashes of the chunks that masking changes."""
        return {
            chunk.text_sha256
            for keys in batched(chunk_sets, _CHUNK_SETS)
            for key, row in self._ctx.lake.chunk_sets(keys).items()
            for chunk in row.chunks
            if found[chunk_sets[key]].changes(chunk)
        }

    def _documents_with_texts(self, ids: Collection[str], found: Collection[str]) -> list[Document]:
        """Return the documents whose present text is one of these texts."""
        ctx = self._ctx
        return [
            document
            for batch in batched(sorted(ids), _BATCH)
            for document in ctx.catalog.documents.find(ctx.ref.id, batch)
            if document.content_sha256 is not None and ctx.parse_key(document) in found
        ]

    @cached_property
    def _has_holds(self) -> bool:
        return bool(self._ctx.catalog.holds.all(self._ctx.ref.id))

    @cached_property
    def _unindexed_documents(self) -> dict[str, list[str]]:
        """Return documents whose present text is in no build yet, by parse_key."""
        ctx = self._ctx
        builds = found_builds(ctx, ctx.catalog.generations.live(ctx.ref.id)).values()
        keys = {build.generation.number: build.context.config_key for build in builds} or {
            0: ctx.config_key
        }
        found: dict[str, list[str]] = {}
        for build in builds:
            record_missing(build.context, build.generation.number, build.context.config_key)
        for number, config_key in keys.items():
            ids = ctx.catalog.lake_keys.list_outdated(ctx.ref.id, number, config_key)
            for batch in batched(ids, _BATCH):
                for document in ctx.catalog.documents.find(ctx.ref.id, batch):
                    found.setdefault(ctx.parse_key(document), []).append(document.document_id)
        return found


def _key_for_holds(key: str, text: ParsedText | None) -> str | None:
    return None if text is None else key_of("masked", key, parsed_digest(text))


def _with_reindex_request(document: Document) -> Document:
    """Return the document as it is after one more request to reindex it."""
    return replace(document, reindex_requests=document.reindex_requests + 1)
