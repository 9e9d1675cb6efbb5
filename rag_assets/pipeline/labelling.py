"""Labels documents of source code: what their definitions are, as the files around them decide.

That is worked out over all files of a repository before a slice's versions are made. A document
whose labels have changed is written again, by this run or by the next; no vector is made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from rag_assets.code.frameworks.labels import kinds_of
from rag_assets.code.model import FileFacts
from rag_assets.code.naming import NameStyle
from rag_assets.code.relations import Relations, relations_of
from rag_assets.common.batches import batched
from rag_assets.ingest.sources.model import path_of
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import Work, parsed_documents
from rag_assets.pipeline.versions import Version
from rag_assets.storage.catalog.document_kinds import CodeDocument

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
"""How names are made in languages; those of others are known in their own files alone."""


def label_documents(ctx: TenantContext, work: Work) -> int:
    """Record what the definitions of documents are; returns of how many that has changed.

    Args:
        ctx: of the build that the slice is for.
        work: the slice.
    """
    if not ctx.tenant.reads_code or not work.documents:
        return 0
    changed: dict[str, Mapping[str, str]] = {}
    for files in _repositories(_documents(ctx, work)):
        changed |= _changed(ctx, files)
    if changed:
        ctx.guard()
        ctx.catalog.kinds.record(ctx.ref, changed)
    return len(changed)


def relations_of_versions(ctx: TenantContext, versions: Iterable[Version]) -> dict[str, Relations]:
    """What the texts of versions define and state, by chunk_set_key, read from the lake."""
    if not ctx.tenant.reads_code:
        return {}
    return relations_of_texts(ctx, {one.chunk_set_key: one.media_type for one in versions})


def relations_of_texts(
    ctx: TenantContext, media_types: Mapping[str, str | None]
) -> dict[str, Relations]:
    """What texts define and state, by chunk_set_key; those without facts are left out.

    Args:
        ctx: of the tenant.
        media_types: of documents that have the texts, by chunk_set_key.
    """
    languages = {key: _language(media_type) for key, media_type in media_types.items()}
    hashes = ctx.lake.definition_hashes(languages)
    return {
        key: relations_of(facts, hashes.get(key, {}), names=_STYLES.get(languages[key], "none"))
        for key, facts in ctx.lake.facts(languages).items()
    }


def _documents(ctx: TenantContext, work: Work) -> list[CodeDocument]:
    """The documents that the build has after this slice, each with its newest facts."""
    found = {
        one.document_id: one
        for one in ctx.catalog.kinds.indexed(ctx.ref.id, work.generation.number)
    }
    parsed = parsed_documents(ctx, work.documents)
    known = ctx.catalog.kinds.of(ctx.ref.id, [item.document.document_id for item in parsed])
    for item in parsed:
        document = item.document
        found[document.document_id] = CodeDocument(
            document.document_id,
            document.source,
            document.uri,
            document.media_type,
            document.access_scope,
            item.chunk_set_key,
            known.get(document.document_id, {}),
        )
    return list(found.values())


def _repositories(documents: Iterable[CodeDocument]) -> Iterator[list[CodeDocument]]:
    """Documents of one source and one scope: what nobody may read decides nothing elsewhere."""

    def repository(document: CodeDocument) -> tuple[str, str]:
        return document.source, document.access_scope

    for _, group in groupby(sorted(documents, key=repository), key=repository):
        yield list(group)


def _language(media_type: str | None) -> str:
    return (media_type or "").rpartition("/")[2].removeprefix("x-")


def files_of(ctx: TenantContext, documents: Sequence[CodeDocument]) -> dict[str, FileFacts]:
    """The facts of documents with their places, by document."""
    facts = {
        key: found
        for batch in batched({one.chunk_set_key for one in documents}, _BATCH)
        for key, found in ctx.lake.facts(batch).items()
    }
    return {
        one.document_id: FileFacts(
            path_of(one.uri), _language(one.media_type), facts.get(one.chunk_set_key, ())
        )
        for one in documents
    }


def _changed(ctx: TenantContext, documents: list[CodeDocument]) -> dict[str, Mapping[str, str]]:
    files = files_of(ctx, documents)
    labels = kinds_of(list(files.values()))
    wanted: dict[str, dict[str, str]] = {one.path: {} for one in files.values()}
    for (path, symbol), kind in labels.items():
        wanted[path][symbol] = kind
    return {
        one.document_id: wanted[files[one.document_id].path]
        for one in documents
        if wanted[files[one.document_id].path] != one.kinds
    }
