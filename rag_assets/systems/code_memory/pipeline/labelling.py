"""Labels documents of source code with the kinds of their definitions (see changed_labels).

Labels are computed over all files of a repository before a slice's versions are created, unless the
slice cannot change them. A document with changed labels is written again, by this run or the next
one; its vectors are not computed again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby

from rag_assets.common.batches import batched
from rag_assets.ingest.sources.model import path_of
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import Work, parsed_documents
from rag_assets.systems.code_memory.catalog.code_catalog import code_catalog
from rag_assets.systems.code_memory.catalog.document_kinds import CodeDocument
from rag_assets.systems.code_memory.chunker import reads_code
from rag_assets.systems.code_memory.derived.labels import LABELLED, deciding, kinds_of
from rag_assets.systems.code_memory.pipeline.derived_marks import settled_sources
from rag_assets.systems.code_memory.relations.relations import Relations, relations_of
from rag_assets.systems.code_memory.symbols.model import USES, FileFacts
from rag_assets.systems.code_memory.symbols.naming import NameStyle

_BATCH = 2_000
_STYLES: Mapping[str, NameStyle] = {
    "php": "qualified",
    "python": "python",
    "java": "java",
    "swift": "swift",
    "go": "go",
    "rust": "rust",
    "sql": "sql",
    **dict.fromkeys(("javascript", "typescript", "vue", "svelte"), "javascript"),
}
"""How names are qualified, by language; in other languages, names are known only in their own
file."""


def label_documents(ctx: TenantContext, work: Work) -> int:
    """Record the kinds of documents' definitions; return the number of documents that changed.

    Args:
        ctx: the TenantContext of the build that the slice is for.
        work: the slice.
    """
    if not reads_code(ctx.tenant) or not work.documents:
        return 0
    parsed = _parsed(ctx, work)
    if _decides_nothing(ctx, work, parsed):
        return 0
    changed: dict[str, Mapping[str, str]] = {}
    documents = _documents(ctx, work, parsed)
    for files in _repositories(documents):
        changed |= changed_labels(files, files_of(ctx, filter(is_labelled, files)))
    if changed:
        ctx.guard()
        # Labels now match the build's files, unless this run is interrupted.
        code_catalog(ctx.catalog).derivations.forget_fingerprints(
            ctx.ref, {one.source for one in documents}
        )
        code_catalog(ctx.catalog).kinds.record(ctx.ref, changed)
    return len(changed)


def is_labelled(document: CodeDocument) -> bool:
    """Return whether frameworks can determine kinds of definitions in the document's language."""
    return _language(document.media_type) in LABELLED


def changed_labels(
    documents: Iterable[CodeDocument], files: Mapping[str, FileFacts]
) -> dict[str, Mapping[str, str]]:
    """Return the kinds of definitions of those documents for which they differ from the record.

    Args:
        documents: the documents of one repository.
        files: the facts of files, by document; at least of those for which is_labelled holds.
    """
    by_path: dict[str, dict[str, str]] = {}
    for (path, symbol), kind in kinds_of(list(files.values())).items():
        by_path.setdefault(path, {})[symbol] = kind
    wanted = {one.document_id: by_path.get(path_of(one.uri), {}) for one in documents}
    return {
        one.document_id: wanted[one.document_id]
        for one in documents
        if wanted[one.document_id] != one.kinds
    }


def _decides_nothing(ctx: TenantContext, work: Work, parsed: Mapping[str, CodeDocument]) -> bool:
    """Return whether the slice cannot change any label, judging only by its own documents.

    This is the case if the labels are up to date with the build, and if the facts that decide
    labels are the same in the new and in the former texts of these documents.
    """
    number = work.generation.number
    former = {
        d.document_id: d
        for d in code_catalog(ctx.catalog).kinds.indexed(ctx.ref.id, number, [*parsed])
    }
    concerned = [one for one in (*parsed.values(), *former.values()) if is_labelled(one)]
    if not concerned:
        return True
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    if serving is None or serving.number != number or work.beside:
        return False
    if {one.source for one in concerned} - settled_sources(ctx.catalog, ctx.tenant, number).keys():
        return False
    facts = ctx.lake.facts({one.chunk_set_key for one in concerned})

    def decided(document: CodeDocument | None) -> list[object]:
        if document is None:
            return []
        return deciding(facts.get(document.chunk_set_key, ()), _language(document.media_type))

    return all(decided(one) == decided(former.get(id_)) for id_, one in parsed.items())


def relations_of_texts(
    ctx: TenantContext, media_types: Mapping[str, str | None]
) -> dict[str, Relations]:
    """Return the relations of texts, by chunk_set_key; texts without facts are left out.

    Args:
        ctx: the TenantContext of the tenant.
        media_types: the media types of documents that have the texts, by chunk_set_key.
    """
    languages = {key: _language(media_type) for key, media_type in media_types.items()}
    hashes = ctx.lake.definition_hashes(languages)
    return {
        key: relations_of(facts, hashes.get(key, {}), names=_STYLES.get(languages[key], "none"))
        for key, facts in ctx.lake.facts(languages).items()
    }


def _parsed(ctx: TenantContext, work: Work) -> dict[str, CodeDocument]:
    """Return the documents of the slice, each with its newest facts."""
    parsed = parsed_documents(ctx, work.documents)
    known = code_catalog(ctx.catalog).kinds.of(
        ctx.ref.id, [item.document.document_id for item in parsed]
    )
    return {
        (document := item.document).document_id: CodeDocument(
            document.document_id,
            document.source,
            document.uri,
            document.media_type,
            document.access_scope,
            item.chunk_set_key,
            known.get(document.document_id, {}),
        )
        for item in parsed
    }


def _documents(
    ctx: TenantContext, work: Work, parsed: Mapping[str, CodeDocument]
) -> list[CodeDocument]:
    """Return the documents that the build has after this slice, each with its newest facts."""
    indexed = code_catalog(ctx.catalog).kinds.indexed(ctx.ref.id, work.generation.number)
    return [*({one.document_id: one for one in indexed} | dict(parsed)).values()]


def _repositories(documents: Iterable[CodeDocument]) -> Iterator[list[CodeDocument]]:
    """Yield the documents of each source and scope apart: scopes must not affect each other."""

    def repository(document: CodeDocument) -> tuple[str, str]:
        return document.source, document.access_scope

    for _, group in groupby(sorted(documents, key=repository), key=repository):
        yield list(group)


def _language(media_type: str | None) -> str:
    return (media_type or "").rpartition("/")[2].removeprefix("x-")


def files_of(ctx: TenantContext, documents: Iterable[CodeDocument]) -> dict[str, FileFacts]:
    """Return the facts of documents with their paths, by document."""
    documents = list(documents)
    with _collector_paused():
        facts = {
            # The index of a file's names is not needed, and is larger than all its other facts.
            key: tuple(fact for fact in found if fact.kind != USES)
            for batch in batched({one.chunk_set_key for one in documents}, _BATCH)
            for key, found in ctx.lake.facts(batch).items()
        }
    return {
        one.document_id: FileFacts(
            path_of(one.uri), _language(one.media_type), facts.get(one.chunk_set_key, ())
        )
        for one in documents
    }


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause Python's garbage collector, which would scan all facts again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
