"""Derived documents: the routes and tables that are derived from a repository's indexed files.

They are derived at the end of a sync, from the texts that answer searches, and only if no document
is pending: a part of a repository would yield other tables than the whole. Differences become
records, which the next listing finds. Labels are compared at the same time with the same facts, so
even after an interrupted run they are right once this is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from rag_assets.common.batches import batched
from rag_assets.common.formatting import format_count
from rag_assets.common.hashing import compute_key
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.sources.model import SourceMetadata, path_from_uri
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.fact_stores import DerivedWork
from rag_assets.pipeline.slices import pending_count
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.records.model import PushedRecord
from rag_assets.systems.code_memory.catalog.code_catalog import code_catalog
from rag_assets.systems.code_memory.catalog.derivations import (
    CodeDocument,
    DerivedRecords,
    Fingerprint,
)
from rag_assets.systems.code_memory.derived.documents import derived_documents, languages_read
from rag_assets.systems.code_memory.derived.model import (
    INDEXES,
    MEDIA_TYPE,
    Derivation,
    DerivedDocument,
    Unresolved,
    limit_unresolved,
)
from rag_assets.systems.code_memory.derived.scip import (
    ScipIndex,
    ScipReferences,
    SourceFile,
    find_exact_references,
)
from rag_assets.systems.code_memory.derived.text import render_document
from rag_assets.systems.code_memory.pipeline.labelling import (
    SourceMark,
    changed_labels,
    derived_configs,
    due_sources,
    get_language,
    is_index,
    is_labelled,
    load_file_facts,
    settled_sources,
    survey,
)
from rag_assets.systems.code_memory.sources.records import DerivedConfig
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.tenants.model import Tenant

_MOST_UNRESOLVED: Final = 300
"""Maximum number of unresolved statements about routes, and about tables, that are kept for each
group of files with the same readers."""
_SCOPE_CHARACTERS: Final = 12
_TEXTS_AT_ONCE: Final = 500
"""Number of texts that are read from the lake together."""


def derive_documents(ctx: TenantContext) -> DerivedWork:
    """Derive documents again for sources with changed files."""
    configs = derived_configs(ctx.tenant)
    serving = ctx.catalog.generations.serving(ctx.ref.id) if configs else None
    if serving is None or pending_count(ctx):
        return DerivedWork()
    due = due_sources(ctx.catalog, ctx.tenant, serving.number)
    changed = documents = 0
    indexes: list[str] = []
    records, labels = _derive_from_sources(ctx, serving.number, due)
    code = code_catalog(ctx.catalog)
    if labels:
        ctx.guard()
        code.kinds.record(ctx.ref, labels)
    for one in records:
        ctx.guard()
        changed += code.derivations.record(ctx.ref, one)
        documents += len(one.records)
        indexes += [
            statement.description for statement in one.unresolved if statement.about == INDEXES
        ]
    if not documents and not changed:
        return DerivedWork()
    lines = {
        "derived of files": f"{format_count(documents, 'document')}, {changed:,} of them to"
        " be listed"
    }
    return DerivedWork(changed, lines | ({"SCIP indexes": "; ".join(indexes)} if indexes else {}))


def derivations_as_recorded(ctx: TenantContext) -> list[DerivedRecords]:
    """Derive documents of sources with up-to-date records again, to compare them.

    A source is left out if the lake has lost one of its texts, because fewer documents would be
    derived.
    """
    configs = derived_configs(ctx.tenant)
    serving = ctx.catalog.generations.serving(ctx.ref.id) if configs else None
    if serving is None:
        return []
    code = code_catalog(ctx.catalog)
    settled = settled_sources(ctx.catalog, ctx.tenant, serving.number)
    done = {source: mark.fingerprint for source, mark in settled.items()}
    texts = [
        (one.source, one.chunk_set_key)
        for one in code.kinds.indexed(ctx.ref.id, serving.number)
        if one.source in done
    ]
    lost = ctx.lake.missing_chunk_sets({key for _, key in texts})
    damaged = {source for source, key in texts if key in lost}
    intact = {source: found for source, found in done.items() if source not in damaged}
    return _derive_from_sources(ctx, serving.number, intact)[0]


def _derive_from_sources(
    ctx: TenantContext, generation: int, fingerprints: Mapping[str, Fingerprint]
) -> tuple[list[DerivedRecords], dict[str, Mapping[str, str]]]:
    """Derive documents from the files of a build, and the labels that differ from the record.

    Args:
        fingerprints: the fingerprints of the files, by source.
    """
    if not fingerprints:
        return [], {}
    configs = derived_configs(ctx.tenant)
    every = code_catalog(ctx.catalog).kinds.indexed(ctx.ref.id, generation)
    indexed = sorted((one for one in every if one.source in fingerprints), key=_repository)
    records: dict[str, list[PushedRecord]] = {source: [] for source in fingerprints}
    unresolved: dict[str, list[Unresolved]] = {source: [] for source in fingerprints}
    marks = {source: SourceMark(found, frozenset()) for source, found in fingerprints.items()}
    labels: dict[str, Mapping[str, str]] = {}
    own = ctx.tenant.own_frameworks
    for (source, scope), group in groupby(indexed, key=_repository):
        documents = list(group)
        surveyed = survey(ctx, documents)
        # An index may refer to files in every language.
        has_index = any(map(is_index, documents))
        languages = None if has_index else languages_read(surveyed.signs, own)
        read = [one for one in documents if languages is None or get_language(one) in languages]
        # No document can be derived without an index or a file in a language that has frameworks.
        files = load_file_facts(ctx, read) if has_index or any(map(is_labelled, read)) else {}
        labels |= changed_labels(documents, {**surveyed.files, **files})
        found = derived_documents([*files.values()], own) if files else Derivation((), ())
        references = _read_references(ctx, documents, files)
        derived = (*found.documents, *references.documents)
        records[source] += _records(ctx, configs[source], scope, derived)
        unresolved[source] += limit_unresolved(found.unresolved, _MOST_UNRESOLVED)
        marks[source] = marks[source].also_read(languages)
        if has_index:
            marks[source] = replace(marks[source], reads_texts=True)
        unresolved[source] += (
            Unresolved(path, 0, figures, INDEXES) for path, figures in references.reports
        )
    of_sources = [
        DerivedRecords(
            *(source, configs[source].name, mark.stored(ctx.tenant)),
            records=tuple(records[source]),
            unresolved=tuple(unresolved[source]),
        )
        for source, mark in marks.items()
    ]
    return of_sources, labels


def _read_references(
    ctx: TenantContext, documents: Sequence[CodeDocument], files: Mapping[str, FileFacts]
) -> ScipReferences:
    """Return the references that the SCIP indexes among the documents of a repository resolve."""
    indexes = [one for one in documents if is_index(one)]
    texts = _read_parsed_texts(ctx, indexes)
    read = [
        ScipIndex.read(texts[one.document_id].text) for one in indexes if one.document_id in texts
    ]
    by_path = {path_from_uri(one.uri): one for one in documents}
    wanted = {path for index in read for path in index.locate_files(by_path)}
    texts = _read_parsed_texts(ctx, [by_path[path] for path in wanted])
    sources = {
        path: SourceFile(one.uri, files[one.document_id].facts, parsed.text, bool(parsed.masked))
        for path in sorted(wanted)
        if (parsed := texts.get((one := by_path[path]).document_id)) is not None
    }
    return find_exact_references(read, sources)


def _read_parsed_texts(
    ctx: TenantContext, documents: Sequence[CodeDocument]
) -> dict[str, ParsedText]:
    """Return the parsed texts of documents, by document."""
    ids = [one.document_id for one in documents]
    found = ctx.catalog.documents.find(ctx.ref.id, ids) if ids else []
    keys = {one.document_id: ctx.parse_key(one) for one in found}
    return {
        id_: rows[keys[id_]].parsed
        for batch in batched(keys, _TEXTS_AT_ONCE)
        if (rows := ctx.lake.parsed({keys[id_] for id_ in batch}))
        for id_ in batch
        if keys[id_] in rows
    }


def explain_outdated_derivations(catalog: Catalog, tenant: Tenant, generation: int) -> str | None:
    """Return why a tenant needs a run although no document is pending; None if it needs none."""
    if due_sources(catalog, tenant, generation):
        return "routes and tables were derived from files that have changed since"
    return None


def _repository(document: CodeDocument) -> tuple[str, str]:
    return document.source, document.access_scope


def _records(
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
