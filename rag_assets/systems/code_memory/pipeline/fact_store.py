"""The fact store of code memory: records labels, relations, and derived routes and tables.

Symbols and edges come from single texts, derived documents from all files of a repository.
Documents are derived at the end of a sync, from the texts that answer searches. The derivation
waits until no document is pending, because a part of a repository would yield other tables than the
whole. Changed documents become records, which the next listing finds. Labels are compared at the
same time with the same facts, so that they are right even after an interrupted run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, Table

from rag_assets.common.batches import batched
from rag_assets.common.formatting import format_count
from rag_assets.common.hashing import compute_key
from rag_assets.ingest.chunking.model import Definition
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.sources.model import SourceMetadata, parse_path
from rag_assets.pipeline.context import DailyShare, TenantContext
from rag_assets.pipeline.fact_stores import DerivedWork, Kinds, StoreRepair
from rag_assets.pipeline.mark_keeper import may_delete
from rag_assets.pipeline.slices import count_pending
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.documents.versions import RowRecorder
from rag_assets.storage.catalog.records.model import PushedRecord
from rag_assets.systems.code_memory.catalog.code_catalog import get_code_catalog
from rag_assets.systems.code_memory.catalog.derivations import (
    CodeDocument,
    DerivedRecords,
    Fingerprint,
)
from rag_assets.systems.code_memory.catalog.relation_rows import build_rows, record_relations
from rag_assets.systems.code_memory.catalog.tables import document_kinds, edges, name_uses, symbols
from rag_assets.systems.code_memory.chunker import reads_code
from rag_assets.systems.code_memory.derived.documents import (
    derive_documents,
    list_languages_to_read,
)
from rag_assets.systems.code_memory.derived.model import (
    INDEXES,
    MEDIA_TYPE,
    Derivation,
    DerivedDocument,
    UnresolvedStatement,
    limit_unresolved,
    render_document,
)
from rag_assets.systems.code_memory.derived.scip import (
    ScipIndex,
    ScipReferences,
    SourceFile,
    find_exact_references,
)
from rag_assets.systems.code_memory.pipeline.labelling import (
    SourceMark,
    build_relations_of_texts,
    find_changed_labels,
    find_due_sources,
    find_settled_sources,
    get_derived_configs,
    get_language,
    is_index,
    is_labelled,
    iter_repositories,
    label_documents,
    load_file_facts,
    read_survey,
)
from rag_assets.systems.code_memory.relations.relations import Relations
from rag_assets.systems.code_memory.sources.records import DerivedConfig
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.source_types import get_source_type
from rag_assets.tenants.model import Tenant

if TYPE_CHECKING:
    from rag_assets.pipeline.slices import SliceWork

_BATCH_TEXTS: Final = 500
"""Number of texts that are compared, or read from the lake, together."""


@dataclass(frozen=True, slots=True)
class RelationDrift:
    """The difference between recorded relations and the indexed texts.

    Attributes:
        compared: number of texts whose rows were compared.
        altered: ids of documents whose text has wrong rows.
        orphans: number of texts that have rows but belong to no build.
        derived: number of recorded derived documents that differ from newly derived ones, by
            source.
    """

    compared: int = 0
    altered: tuple[str, ...] = ()
    orphans: int = 0
    derived: Mapping[str, int] | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether there is no difference."""
        return not (self.altered or self.orphans or self.derived)

    def __str__(self) -> str:
        """Return the differences in words."""
        differences = (
            [f"relations of {format_count(len(self.altered), 'text')}"] if self.altered else []
        )
        if self.orphans:
            differences.append(
                f"relations of {format_count(self.orphans, 'text')} that no build contains"
            )
        for source, number in (self.derived or {}).items():
            differences.append(f"{format_count(number, 'document')} derived from {source}")
        return ", ".join(differences)


def compare_relations(
    ctx: TenantContext, share: DailyShare, *, repairs: bool = False
) -> RelationDrift:
    """Compare rows of a share of the texts, and all derived documents, with facts in the lake.

    Args:
        repairs: whether to repair the differences. The rows of a text are replaced in one
            transaction; repaired derived documents are listed by the next sync.
    """
    if not reads_code(ctx.tenant):
        return RelationDrift()
    code = get_code_catalog(ctx.catalog)
    compared = 0
    altered: list[str] = []
    for batch in batched(code.relation_rows.list_texts(ctx.ref.id, share.hash_range), _BATCH_TEXTS):
        compared += len(batch)
        wrong = _find_differing_relations(
            ctx, {text.chunk_set_key: text.media_type for text in batch}
        )
        altered += (text.document_id for text in batch if text.chunk_set_key in wrong)
        if repairs and wrong:
            ctx.guard()
            code.relation_rows.replace_rows(ctx.ref, wrong)
    orphans = code.relation_rows.list_orphaned_texts(ctx.ref.id)
    derived = _derive_recorded_documents(ctx)
    changes = {
        records.file_source: code.derivations.count_changes(ctx.ref, records) for records in derived
    }
    # If the catalog was reset to an earlier state, these rows may be the only copy.
    if repairs and may_delete(ctx):
        if orphans:
            ctx.guard()
            code.relation_rows.replace_rows(ctx.ref, dict.fromkeys(orphans, Relations((), ())))
        for records in derived:
            if changes[records.file_source]:
                ctx.guard()
                code.derivations.record(ctx.ref, records)
    differing = {source: number for source, number in changes.items() if number}
    return RelationDrift(compared, tuple(sorted(altered)), len(orphans), differing)


def _find_differing_relations(
    ctx: TenantContext, media_types: Mapping[str, str | None]
) -> dict[str, Relations]:
    """Return the correct relations of texts whose recorded rows differ, by chunk_set_key."""
    lost = ctx.lake.find_missing_chunk_sets(media_types)
    readable = {key: media_type for key, media_type in media_types.items() if key not in lost}
    expected_relations = build_relations_of_texts(ctx, readable)
    expected_rows = build_rows(ctx.ref, expected_relations)
    recorded = get_code_catalog(ctx.catalog).relation_rows.read_rows(ctx.ref.id, readable)
    return {
        key: expected_relations.get(key, Relations((), ()))
        for key in readable
        if expected_rows.get(key) != recorded.get(key)
    }


class CodeFacts:
    """Records labels, relations and derived documents of source code; see FactStore."""

    tables: Sequence[Table] = (document_kinds, symbols, edges, name_uses)

    def prepare(self, ctx: TenantContext, work: SliceWork) -> None:
        """Label the documents of a slice with the kinds of their definitions."""
        label_documents(ctx, work)

    def kinds(self, ctx: TenantContext, document_ids: Sequence[str]) -> Mapping[str, Kinds]:
        """Return the kinds of definitions in each document, by document."""
        return get_code_catalog(ctx.catalog).kinds.get(ctx.ref.id, document_ids)

    def chunk_type(self, definition: Definition, kinds: Kinds, source_type: str) -> str:
        """Return the source type of a chunk, such as controller or migration."""
        return get_source_type(definition.role, definition.symbol, kinds, source_type)

    def recorder(self, ctx: TenantContext, media_types: Mapping[str, str]) -> RowRecorder:
        """Return a function that records the definitions and relations of texts."""
        relations = build_relations_of_texts(ctx, media_types)

        def record(connection: Connection, ref: TenantRef, texts: Collection[str]) -> None:
            kept_relations = {key: relation for key, relation in relations.items() if key in texts}
            record_relations(connection, ref, kept_relations)

        return record

    def finish(self, ctx: TenantContext) -> DerivedWork:
        """Derive documents again for sources whose files have changed, and record them.

        Nothing is done while documents are pending.
        """
        configs = get_derived_configs(ctx.tenant)
        serving = ctx.catalog.generations.serving(ctx.ref.id) if configs else None
        if serving is None or count_pending(ctx):
            return DerivedWork()
        due = find_due_sources(ctx.catalog, ctx.tenant, serving.number)
        records, labels = _derive_from_sources(ctx, serving.number, due)
        code = get_code_catalog(ctx.catalog)
        if labels:
            ctx.guard()
            code.kinds.record(ctx.ref, labels)
        changed = 0
        for record in records:
            ctx.guard()
            changed += code.derivations.record(ctx.ref, record)
        documents = sum(len(record.records) for record in records)
        if not documents and not changed:
            return DerivedWork()
        counted = f"{format_count(documents, 'document')}, {changed:,} of them to be listed"
        lines = {"derived of files": counted}
        statements = [statement for record in records for statement in record.unresolved]
        indexes = [statement.description for statement in statements if statement.about == INDEXES]
        return DerivedWork(
            changed, lines | ({"SCIP indexes": "; ".join(indexes)} if indexes else {})
        )

    def unfinished(self, catalog: Catalog, tenant: Tenant, generation: int) -> str | None:
        """Return why routes and tables must be derived again; None if they are current."""
        if find_due_sources(catalog, tenant, generation):
            return "routes and tables were derived from files that have changed since"
        return None

    def uses_source(self, tenant: Tenant, source: str) -> bool:
        """Return whether routes and tables are derived from a source."""
        return source in get_derived_configs(tenant)

    def withdraw(self, ctx: TenantContext, source: str) -> None:
        """Withdraw the routes and tables of a source: former readers could still see them."""
        derived = get_derived_configs(ctx.tenant)[source].name
        get_code_catalog(ctx.catalog).derivations.withdraw(ctx.ref, source, derived)

    def repair(self, ctx: TenantContext, share: DailyShare) -> StoreRepair:
        """Repair relations and derived documents that differ from the facts in the lake."""
        drift = compare_relations(ctx, share, repairs=True)
        wrong = len(drift.altered) + drift.orphans
        return StoreRepair(
            "" if drift.is_empty else str(drift), {"texts_with_other_relations": wrong}
        )


FACTS = CodeFacts()


_MAX_UNRESOLVED: Final = 300
"""Maximum unresolved statements about routes, and about tables, kept for each access scope."""
_SCOPE_CHARACTERS: Final = 12


def _derive_recorded_documents(ctx: TenantContext) -> list[DerivedRecords]:
    """Derive documents again for sources with up-to-date records, for comparison.

    Sources with texts that the lake has lost are omitted, because some documents would be missing.
    """
    configs = get_derived_configs(ctx.tenant)
    serving = ctx.catalog.generations.serving(ctx.ref.id) if configs else None
    if serving is None:
        return []
    settled = find_settled_sources(ctx.catalog, ctx.tenant, serving.number)
    indexed = get_code_catalog(ctx.catalog).kinds.iter_indexed(ctx.ref.id, serving.number)
    texts = [
        (document.source, document.chunk_set_key)
        for document in indexed
        if document.source in settled
    ]
    lost = ctx.lake.find_missing_chunk_sets({key for _, key in texts})
    damaged = {source for source, key in texts if key in lost}
    intact = {source: mark.fingerprint for source, mark in settled.items() if source not in damaged}
    return _derive_from_sources(ctx, serving.number, intact)[0]


def _derive_from_sources(
    ctx: TenantContext, generation: int, fingerprints: Mapping[str, Fingerprint]
) -> tuple[list[DerivedRecords], dict[str, Mapping[str, str]]]:
    """Return the documents derived from sources, and the labels that have changed."""
    if not fingerprints:
        return [], {}
    configs = get_derived_configs(ctx.tenant)
    indexed = get_code_catalog(ctx.catalog).kinds.iter_indexed(ctx.ref.id, generation)
    records: dict[str, list[PushedRecord]] = {source: [] for source in fingerprints}
    unresolved: dict[str, list[UnresolvedStatement]] = {source: [] for source in fingerprints}
    marks = {
        source: SourceMark(fingerprint, frozenset()) for source, fingerprint in fingerprints.items()
    }
    labels: dict[str, Mapping[str, str]] = {}
    own = ctx.tenant.own_frameworks_json
    for documents in iter_repositories(
        document for document in indexed if document.source in fingerprints
    ):
        source, scope = documents[0].source, documents[0].access_scope
        signs, deciding = read_survey(ctx, documents)
        # An index may refer to files in every language.
        has_index = any(map(is_index, documents))
        languages = None if has_index else list_languages_to_read(signs, own)
        read = [d for d in documents if languages is None or get_language(d) in languages]
        # No document can be derived without an index or a file in a language that has frameworks.
        files = load_file_facts(ctx, read) if has_index or any(map(is_labelled, read)) else {}
        labels |= find_changed_labels(documents, {**deciding, **files})
        derivation = derive_documents([*files.values()], own) if files else Derivation((), ())
        references = _read_references(ctx, documents, files)
        derived = (*derivation.documents, *references.documents)
        records[source] += _iter_records(ctx, configs[source], scope, derived)
        unresolved[source] += limit_unresolved(derivation.unresolved, _MAX_UNRESOLVED)
        marks[source] = marks[source].extend(languages, reads_texts=has_index)
        unresolved[source] += (
            UnresolvedStatement(path, 0, figures, INDEXES) for path, figures in references.reports
        )
    of_sources = []
    for source, mark in marks.items():
        lists = tuple(records[source]), tuple(unresolved[source])
        name, fingerprint = configs[source].name, mark.format(ctx.tenant)
        of_sources.append(DerivedRecords(source, name, fingerprint, *lists))
    return of_sources, labels


def _read_references(
    ctx: TenantContext, documents: Sequence[CodeDocument], files: Mapping[str, FileFacts]
) -> ScipReferences:
    """Return the references in those documents of a repository that are SCIP indexes."""
    indexes = [document for document in documents if is_index(document)]
    texts = _read_parsed_texts(ctx, indexes)
    read = [
        ScipIndex.read(texts[document.document_id].text)
        for document in indexes
        if document.document_id in texts
    ]
    by_path = {parse_path(document.uri): document for document in documents}
    wanted_paths = {path for index in read for path in index.locate_files(by_path)}
    texts = _read_parsed_texts(ctx, [by_path[path] for path in wanted_paths])
    sources = {
        path: SourceFile(
            referring.uri, files[referring.document_id].facts, parsed.text, bool(parsed.masked)
        )
        for path in sorted(wanted_paths)
        if (parsed := texts.get((referring := by_path[path]).document_id)) is not None
    }
    return find_exact_references(read, sources)


def _read_parsed_texts(
    ctx: TenantContext, documents: Sequence[CodeDocument]
) -> dict[str, ParsedText]:
    ids = [document.document_id for document in documents]
    documents_by_id = ctx.catalog.documents.find(ctx.ref.id, ids) if ids else []
    keys = {document.document_id: ctx.parse_key(document) for document in documents_by_id}
    return {
        id_: rows[keys[id_]].parsed
        for batch in batched(keys, _BATCH_TEXTS)
        if (rows := ctx.lake.parsed({keys[id_] for id_ in batch}))
        for id_ in batch
        if keys[id_] in rows
    }


def _iter_records(
    ctx: TenantContext, config: DerivedConfig, scope: str, documents: tuple[DerivedDocument, ...]
) -> Iterator[PushedRecord]:
    own = scope != ctx.tenant.access.scope
    # Files of different scopes may each have a route with the same name.
    before = f"{compute_key('scope', scope)[:_SCOPE_CHARACTERS]}/" if own else ""
    for document in documents:
        yield PushedRecord(
            source=config.name,
            source_type=document.source_type,
            source_id=before + document.lines[0].partition(" ")[2],
            text=render_document(document),
            media_type=MEDIA_TYPE,
            source_metadata=SourceMetadata(
                title=document.lines[0], access_scope=scope if own else None
            ),
        )
