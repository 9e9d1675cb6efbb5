"""The versions of documents that a slice can publish, and the entries they consist of.

If the new content of a document fails, its former version keeps answering in the serving build. A
new build takes over that version, made again from the text in the lake. Otherwise a change of the
model would remove such a document from the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_assets.common.batches import batched
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.ingest.sources.model import parse_path
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.fact_stores import (
    FactStore,
    find_kinds,
    list_fact_stores,
    list_follow_up_texts,
)
from rag_assets.pipeline.generations import find_active_builds
from rag_assets.pipeline.slices import ParsedDocument, SliceWork, find_parsed_documents
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.builds.lake_keys import RecordedKeys
from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.catalog.documents.versions import IndexedVersion
from rag_assets.storage.index.model import Entry, EntryDocument, indexed_key
from rag_assets.storage.lake.model import ChunkSetHead, LiveKeys
from rag_assets.tenants.model import Tenant

BLOCK = "block"
"""The source type of an entry that is one block of a long page."""

_BATCH_DOCUMENTS = 2_000


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a document with a vector for every chunk; it contains no text.

    Attributes:
        document_key, content_sha256: key and hash of the content that it was read from: the
            document's present content, or a former version's content.
        title: the title found in its content, otherwise its file's name.
        language: the language of its content; None if uncertain.
        key: hash of all data in its entries.
        kinds: the kinds of its definitions; see FactStore.
        passage_source: prefix of the ids of its chunks; None: tenant and path are the prefix.
        dropped_count: number of chunks dropped because of a credential.
    """

    document: Document
    document_key: str
    content_sha256: str | None
    parse_key: str
    chunk_set_key: str
    media_type: str
    title: str
    language: str | None
    key: str
    chunk_count: int
    dropped_count: int
    kinds: Mapping[str, str]
    passage_source: str | None = None

    def to_indexed_version(self, config_key: str) -> IndexedVersion:
        """Return the version as the catalog records it."""
        return IndexedVersion(
            document_id=self.document.document_id,
            indexed_key=self.key,
            document_key=self.document_key,
            content_sha256=self.content_sha256,
            config_key=config_key,
            parse_key=self.parse_key,
            chunk_set_key=self.chunk_set_key,
            chunk_count=self.chunk_count,
            dropped_count=self.dropped_count,
            title=self.title,
        )


def list_complete_versions(ctx: TenantContext, work: SliceWork) -> list[Version]:
    """Return a version of each slice document whose chunks all have a vector in the lake.

    If the current text of a document is incomplete, its former version is returned.
    """
    parsed = list_slice_documents(ctx, work)
    ids = [item.document.document_id for item in parsed]
    kinds = find_kinds(ctx, ids)
    heads = ctx.lake.chunk_set_heads({item.chunk_set_key for item in parsed})
    texts = {text for head in heads.values() for text in head.hashes}
    without = ctx.lake.find_missing_vectors(ctx.embedder.embedder_id, texts)
    complete = {
        # Former versions come last, so that the current version of a document has priority.
        item.document.document_id: _build_version(
            ctx, item, head, kinds.get(item.document.document_id, {})
        )
        for item in reversed(parsed)
        if (head := heads.get(item.chunk_set_key)) is not None and without.isdisjoint(head.hashes)
    }
    return [*reversed(complete.values())]


def build_entries(
    ctx: TenantContext, generation: Generation, versions: Sequence[Version]
) -> list[Entry]:
    """Return all entries of these versions, read from the lake."""
    sets = ctx.lake.chunk_sets({version.chunk_set_key for version in versions})
    texts = {chunk.text_sha256 for chunk_set in sets.values() for chunk in chunk_set.chunks}
    vectors = ctx.lake.vectors(ctx.embedder.embedder_id, texts).by_hash()
    owner, stores = ctx.owner(generation), list_fact_stores(ctx.tenant)
    entries = []
    for version in versions:
        document = _build_entry_document(version)
        chunks = sets[version.chunk_set_key].chunks
        entries += [
            Entry(
                owner,
                document,
                chunk,
                vectors[chunk.text_sha256],
                _find_chunk_type(version, chunk, stores),
                _list_enclosing_ordinals(chunk, chunks),
            )
            for chunk in chunks
        ]
    return entries


def _list_enclosing_ordinals(chunk: Chunk, chunks: Sequence[Chunk]) -> tuple[int, ...]:
    """Return the ordinals of the page's chunks that overlap a chunk made from one of its blocks."""
    if not chunk.of_block:
        return ()
    return tuple(
        other.ordinal
        for other in chunks
        if not other.of_block and other.start < chunk.end and chunk.start < other.end
    )


def _find_chunk_type(version: Version, chunk: Chunk, stores: Sequence[FactStore]) -> str | None:
    if chunk.of_block:
        return BLOCK
    if chunk.definition is None or not stores:
        return None
    return stores[0].chunk_type(chunk.definition, version.kinds, version.document.source_type)


def _build_version(
    ctx: TenantContext, item: ParsedDocument, head: ChunkSetHead, kinds: Mapping[str, str]
) -> Version:
    document = item.document
    title = document.said_title or item.title or _get_file_name(document)
    passage_source = _find_passage_source(ctx.tenant, document)
    read = document if item.former is None else item.former
    key = indexed_key(
        head.digest,
        ctx.embedder.embedder_id,
        title=title,
        uri=document.uri,
        media_type=item.media_type,
        language=head.language,
        modified_at=document.modified_at,
        access_scope=document.access_scope,
        tags=document.tags,
        metadata=document.metadata,
        reindex_requests=document.reindex_requests,
        kinds=kinds,
        source_id=document.source_id,
        page_uuid=document.page_uuid,
        passage_source=passage_source,
    )
    return Version(
        document=document,
        document_key=read.document_key,
        content_sha256=read.content_sha256,
        parse_key=item.parse_key,
        chunk_set_key=item.chunk_set_key,
        media_type=item.media_type,
        title=title,
        language=head.language,
        key=key,
        chunk_count=len(head.hashes),
        dropped_count=head.dropped,
        kinds=kinds,
        passage_source=passage_source,
    )


def _find_passage_source(tenant: Tenant, document: Document) -> str | None:
    source = next((config for config in tenant.sources if config.name == document.source), None)
    passage_source = None if source is None else tenant.source_kind(source).passage_source
    return None if passage_source is None else passage_source(source, parse_path(document.uri))


def _build_entry_document(version: Version) -> EntryDocument:
    document = version.document
    return EntryDocument(
        document_id=document.document_id,
        indexed_key=version.key,
        source=document.source,
        source_type=document.source_type,
        path=_get_printable_path(document),
        uri=document.uri,
        media_type=version.media_type,
        title=version.title,
        language=version.language,
        modified_at=document.modified_at,
        access_scope=document.access_scope,
        tags=document.tags,
        metadata=document.metadata,
        source_id=document.source_id,
        page_uuid=document.page_uuid,
        passage_source=version.passage_source,
    )


def _get_printable_path(document: Document) -> str:
    # A uri from a source may belong to another document as well.
    source, _, path = document.uri.partition("/")
    return path if source == document.source else document.document_id


def _get_file_name(document: Document) -> str:
    name = parse_path(document.uri).rpartition("/")[2]
    return name if name.isprintable() else document.uri.rpartition("/")[2]


def list_slice_documents(ctx: TenantContext, work: SliceWork) -> list[ParsedDocument]:
    """Return the slice's documents that could be parsed, then former versions of the others."""
    return find_parsed_documents(ctx, work.documents) + _list_former_documents(ctx, work)


def record_given_up(
    ctx: TenantContext, work: SliceWork, document_id: str, document_key: str
) -> None:
    """Record that a former version of a document cannot be taken over into the slice's build."""
    ctx.guard()
    ctx.catalog.former_versions.give_up(ctx.ref, work.generation.number, document_id, document_key)


def _list_former_documents(ctx: TenantContext, work: SliceWork) -> list[ParsedDocument]:
    if work.generation.state == "SERVING" or not work.documents:
        return []
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    if serving is None:
        return []
    by_id = {document.document_id: document for document in work.documents}
    number = work.generation.number
    former = ctx.catalog.former_versions.find(ctx.ref.id, serving.number, number, list(by_id))
    heads = ctx.lake.read_parsed_heads({version.parse_key for version in former})
    former_documents = []
    for version in former:
        head = heads.get(version.parse_key)
        if head is None:
            record_given_up(ctx, work, version.document_id, version.document_key)
            continue
        document = by_id[version.document_id]
        key = ctx.chunk_set_key(document, head.digest, head.media_type)
        former_documents.append(
            ParsedDocument(document, head.title, head.media_type, version.parse_key, key, version)
        )
    return former_documents


@dataclass(frozen=True, slots=True)
class NeededKeys:
    """The keys that the lake must keep.

    Attributes:
        known: keys of every version in a live build, as `document_index` records them. Also keys of
            documents whose present content is missing from a build that syncs bring up to date:
            their rows are used when the documents are retried.
        complete: whether `known` contains all needed keys. If a version was indexed before keys
            were recorded, its keys are unknown once its document has changed.
    """

    known: LiveKeys
    complete: bool

    @property
    def keys_to_keep(self) -> LiveKeys:
        """Return the known keys if complete; else keep all except unused embedders' vectors."""
        return self.known if self.complete else LiveKeys(embedders=self.known.embedders)


def find_needed_keys(ctx: TenantContext) -> NeededKeys:
    """Return the keys that the lake must keep; all other rows may be deleted."""
    generations = ctx.catalog.generations.live(ctx.ref.id)
    embedders = {ctx.embedder.embedder_id, *(generation.embedder_id for generation in generations)}
    contexts = {
        number: build.context for number, build in find_active_builds(ctx, generations).items()
    } or {0: ctx}
    for number, build in contexts.items():
        record_missing_keys(build, number, build.config_key)
    parsed, chunk_sets, unknown = ctx.catalog.lake_keys.read_all(ctx.ref.id)
    for number, build in contexts.items():
        behind = ctx.catalog.lake_keys.list_outdated(ctx.ref.id, number, build.config_key)
        for batch in batched(behind, _BATCH_DOCUMENTS):
            documents = ctx.catalog.documents.find(ctx.ref.id, batch)
            parsed.update(build.parse_key(document) for document in documents)
            chunk_sets.update(
                item.chunk_set_key for item in find_parsed_documents(build, documents)
            )
    hashes = ctx.lake.read_chunk_hashes(chunk_sets)
    live_keys = LiveKeys(
        parsed=parsed,
        chunk_sets=chunk_sets,
        texts={text for of_document in hashes.values() for text in of_document}
        | list_follow_up_texts(ctx),
        embedders=embedders,
    )
    return NeededKeys(live_keys, complete=not unknown)


def record_missing_keys(ctx: TenantContext, generation: int, key: str) -> None:
    """Record the keys of versions that were indexed by earlier releases, which recorded no keys."""
    for batch in batched(
        ctx.catalog.lake_keys.list_unrecorded(ctx.ref.id, generation, key), _BATCH_DOCUMENTS
    ):
        parsed = find_parsed_documents(ctx, ctx.catalog.documents.find(ctx.ref.id, batch))
        ctx.guard()
        keys = [
            RecordedKeys(i.document.document_id, ctx.parse_key(i.document), i.chunk_set_key)
            for i in parsed
        ]
        ctx.catalog.lake_keys.record(ctx.ref, generation, keys)
