"""Everything that a code tenant stores, keyed by names, so that tenants can be compared.

A tenant that followed any history must store the same as a new tenant of the same files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias

from sqlalchemy import Select, and_, select

from rag_assets.pipeline.context import TenantContext
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.documents.status import is_same_document
from rag_assets.storage.catalog.tables import document_index, documents, source_records
from rag_assets.systems.code_memory.catalog.code_catalog import get_code_catalog
from rag_assets.systems.code_memory.catalog.tables import (
    derivations,
    document_kinds,
    edges,
    symbols,
)
from rag_assets.systems.code_memory.retrieval.nodes import PREFIXES
from rag_assets.systems.code_memory.retrieval.walk import Walker

_OF_A_TENANT = frozenset(
    {"tenant", "incarnation", "generation", "chunk_id", "index_key", "indexed_key", "digest"}
)
"""Fields of entries that differ between tenants."""

_PROJECT = "projectId"
_UNSAID = frozenset({"modified_at"})
"""Fields that say when files were written, which Git does not keep."""

_SHOWN = 300
"""Characters of a difference."""

_ASKED = 40
"""Names whose relations are asked for, beside all that have a prefix."""

Held: TypeAlias = Counter[tuple[Any, ...]]
"""What a tenant holds: the part, then what names it, then all that is said of it."""


def index_of(ctx: TenantContext, *, asked: int = _ASKED) -> Held:
    """Return everything that answers a tenant's searches and walks, without ids of its own.

    Args:
        asked: maximum number of definitions whose relations are compared.
    """
    held: Held = Counter()
    for part in (_documents, _entries, _rows, _records):
        held.update(part(ctx))
    held.update(_answers(ctx, held, asked))
    return held


def differences(one: Held, other: Held) -> list[str]:
    """Return up to 40 differences between two tenants."""
    found = [f"- {item}" for item in one - other] + [f"+ {item}" for item in other - one]
    return sorted((line[:_SHOWN] for line in found), key=lambda line: line[2:])[:40]


def left_over(ctx: TenantContext) -> list[str]:
    """Return the keys of relations whose text belongs to no version."""
    return get_code_catalog(ctx.catalog).relation_rows.list_orphaned_texts(ctx.ref.id)


def _documents(ctx: TenantContext) -> Iterator[tuple[Any, ...]]:
    for one in ctx.catalog.documents.all(ctx.ref.id):
        yield (
            *("document", one.uri, one.status, one.source_type, one.media_type, one.title),
            *(one.access_scope, one.chunk_count, one.dropped_count, one.error_message),
        )


def _entries(ctx: TenantContext) -> Iterator[tuple[Any, ...]]:
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    assert serving is not None
    for hit in ctx.store.entries.stored(serving.index_name, ctx.owner(serving)):
        assert hit.intact
        place = hit.fields["uri"], hit.fields["ordinal"]
        told = {k: v for k, v in hit.fields["metadata"].items() if k != _PROJECT}
        for name, value in {**hit.fields, "metadata": sorted(told.items())}.items():
            if name not in _OF_A_TENANT | _UNSAID:
                yield "entry", *place, name, repr(value)


def _rows(ctx: TenantContext) -> Iterator[tuple[Any, ...]]:
    """Yield the symbols, edges and kinds of each document."""
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    assert serving is not None
    with ctx.catalog.database.begin() as connection:
        for table in (symbols, edges):
            told = [c for c in table.columns if c.name not in {"tenant", "chunk_set_key"}]
            same_text = and_(
                table.c.tenant == document_index.c.tenant,
                table.c.chunk_set_key == document_index.c.chunk_set_key,
            )
            query: Select[Any] = (
                select(documents.c.uri, *told)
                .select_from(document_index)
                .join(documents, is_same_document())
                .join(table, same_text)
                .where(
                    document_index.c.tenant == ctx.ref.id,
                    document_index.c.generation == serving.number,
                )
            )
            for row in connection.execute(query):
                yield table.name, *row
        of_document = and_(
            document_kinds.c.tenant == documents.c.tenant,
            document_kinds.c.document_id == documents.c.document_id,
        )
        known = (
            select(documents.c.uri, document_kinds.c.kinds)
            .join(document_kinds, of_document)
            .where(documents.c.tenant == ctx.ref.id, documents.c.status != "DELETED")
        )
        for uri, kinds in connection.execute(known):
            yield "kinds", uri, repr(sorted(kinds.items()))


def _records(ctx: TenantContext) -> Iterator[tuple[Any, ...]]:
    """Yield derived documents, and the gaps that derivation reported."""
    kept = source_records.c
    with ctx.catalog.database.begin() as connection:
        query = select(kept.source, kept.source_type, kept.source_id, kept.record_key, kept.text)
        for row in connection.execute(query.where(kept.tenant == ctx.ref.id)):
            yield "record", *row
        unknown = select(derivations.c.source, derivations.c.unresolved)
        for source, unresolved in connection.execute(
            unknown.where(derivations.c.tenant == ctx.ref.id)
        ):
            yield "unresolved", source, *map(tuple, unresolved)


def _answers(ctx: TenantContext, held: Held, asked: int) -> Iterator[tuple[Any, ...]]:
    """Yield the relations of a sample of names, which do not depend on the history."""
    walker = Walker(ctx.catalog)
    defined = sorted({row[3] for row in held if row[0] == "symbols"})
    named = sorted({row[5] for row in held if row[0] == "edges"})
    prefixed = [name for name in named if name.startswith(tuple(PREFIXES))]
    step = max(1, len(defined) // asked)
    for name in [*defined[::step], *prefixed[: 2 * asked]]:
        walk = walker.walk_from_name(ctx.ref.id, Caller(), name)
        for node in walk.nodes:
            place = node.uri, node.line_start, node.line_end, node.content_hash
            yield "node", name, node.name, node.source_type, *place
        for relation in walk.relations:
            what = (
                relation.kind,
                relation.source,
                relation.target,
                relation.how,
                relation.confidence,
            )
            yield (
                "relation",
                name,
                *what,
                relation.uri,
                relation.line_start,
                relation.line_end,
                relation.evidence,
            )
