"""Derived documents: the routes and tables that follow from the indexed files of a repository.

They are worked out at the end of a sync, of the texts that answer searches, once nothing waits:
half of a repository has other tables than the whole. What differs from before becomes records,
which the next listing finds. Labels are compared on the way, by the same facts: whatever ended a
run before, they are right once this is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from rag_assets.code.derived.documents import derived_documents
from rag_assets.code.derived.model import MEDIA_TYPE, Derivation, DerivedDocument
from rag_assets.code.derived.text import rendered
from rag_assets.code.derived.unresolved import Unresolved, first_of
from rag_assets.common.formatting import counted
from rag_assets.common.hashing import key_of
from rag_assets.ingest.sources.derived import DerivedConfig
from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.derived_marks import derived_configs, due_sources
from rag_assets.pipeline.labelling import changed_labels, files_of, is_labelled
from rag_assets.pipeline.slices import pending_count
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.derivations import DerivedRecords
from rag_assets.storage.catalog.document_kinds import CodeDocument
from rag_assets.storage.catalog.pushed_records import PushedRecord
from rag_assets.tenants.model import Tenant

_MOST_UNRESOLVED: Final = 300
"""Statements about routes, and about tables, that are kept of files with the same readers."""
_SCOPE_CHARACTERS: Final = 12


@dataclass(frozen=True, slots=True)
class Derived:
    """What became of derived documents.

    Attributes:
        changed: documents that are new, differ, or are gone; the next listing finds them.
        documents: all there are, of the sources that were worked out.
    """

    changed: int = 0
    documents: int = 0

    @property
    def lines(self) -> Mapping[str, str]:
        """For the run's page."""
        if not self.documents and not self.changed:
            return {}
        shown = f"{counted(self.documents, 'document')}, {self.changed:,} of them to be listed"
        return {"derived of files": shown}


@dataclass(frozen=True, slots=True)
class _WorkedOut:
    """What follows from sources.

    Attributes:
        records: the derived documents of each source.
        labels: of documents whose recorded ones are others.
    """

    records: tuple[DerivedRecords, ...] = ()
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def derive_documents(ctx: TenantContext) -> Derived:
    """Work out the derived documents of sources whose files have changed."""
    configs = derived_configs(ctx.tenant)
    serving = ctx.catalog.generations.serving(ctx.ref.id) if configs else None
    if serving is None or pending_count(ctx):
        return Derived()
    due = due_sources(ctx.catalog, ctx.tenant, serving.number)
    changed = documents = 0
    found = _worked_out(ctx, serving.number, due)
    if found.labels:
        ctx.guard()
        ctx.catalog.kinds.record(ctx.ref, found.labels)
    for one in found.records:
        ctx.guard()
        changed += ctx.catalog.derivations.record(ctx.ref, one)
        documents += len(one.records)
    return Derived(changed, documents)


def derivations_as_recorded(ctx: TenantContext) -> list[DerivedRecords]:
    """What follows from the sources of which the records are up to date, worked out again.

    A source of which the lake has lost a text is left out: less would seem to follow from it.
    """
    configs = derived_configs(ctx.tenant)
    serving = ctx.catalog.generations.serving(ctx.ref.id) if configs else None
    if serving is None:
        return []
    due = due_sources(ctx.catalog, ctx.tenant, serving.number)
    recorded = ctx.catalog.derivations.recorded(ctx.ref.id)
    done = {of: key for of, key in recorded.items() if of in configs and of not in due}
    texts = [
        (one.source, one.chunk_set_key)
        for one in ctx.catalog.kinds.indexed(ctx.ref.id, serving.number)
        if one.source in done
    ]
    lost = ctx.lake.missing_chunk_sets({key for _, key in texts})
    damaged = {source for source, key in texts if key in lost}
    intact = {of: key for of, key in done.items() if of not in damaged}
    return list(_worked_out(ctx, serving.number, intact).records)


def _worked_out(ctx: TenantContext, generation: int, fingerprints: Mapping[str, str]) -> _WorkedOut:
    """All that follows from some sources.

    Args:
        ctx: of the tenant.
        generation: whose files are read.
        fingerprints: of the files, by source.
    """
    if not fingerprints:
        return _WorkedOut()
    configs = derived_configs(ctx.tenant)
    indexed = sorted(
        (d for d in ctx.catalog.kinds.indexed(ctx.ref.id, generation) if d.source in fingerprints),
        key=_repository,
    )
    records: dict[str, list[PushedRecord]] = {source: [] for source in fingerprints}
    unresolved: dict[str, list[Unresolved]] = {source: [] for source in fingerprints}
    labels: dict[str, Mapping[str, str]] = {}
    own = ctx.tenant.own_frameworks
    for (source, scope), group in groupby(indexed, key=_repository):
        documents = list(group)
        # Without a file of a language that has frameworks nothing follows, whatever the others say.
        files = files_of(ctx, documents) if any(map(is_labelled, documents)) else {}
        labels |= changed_labels(documents, files)
        found = derived_documents([*files.values()], own) if files else Derivation((), ())
        records[source] += _records(ctx, configs[source], scope, found.documents)
        unresolved[source] += first_of(found.unresolved, _MOST_UNRESOLVED)
    derived = [
        DerivedRecords(
            source,
            configs[source].name,
            fingerprint,
            tuple(records[source]),
            tuple(unresolved[source]),
        )
        for source, fingerprint in fingerprints.items()
    ]
    return _WorkedOut(tuple(derived), labels)


def underived(catalog: Catalog, tenant: Tenant, generation: int) -> str | None:
    """Why a tenant needs a run although nothing waits; None if it needs none.

    Args:
        catalog: has what is recorded.
        tenant: of the documents.
        generation: that answers.
    """
    if due_sources(catalog, tenant, generation):
        return "routes and tables are derived of files that have changed"
    return None


def _repository(document: CodeDocument) -> tuple[str, str]:
    return document.source, document.access_scope


def _records(
    ctx: TenantContext, config: DerivedConfig, scope: str, documents: tuple[DerivedDocument, ...]
) -> Iterator[PushedRecord]:
    own = scope != ctx.tenant.access.scope
    # Files of several scopes may each have a route of one name.
    before = f"{key_of('scope', scope)[:_SCOPE_CHARACTERS]}/" if own else ""
    for document in documents:
        yield PushedRecord(
            source=config.name,
            source_type=document.source_type,
            source_id=before + document.lines[0].partition(" ")[2],
            text=rendered(document),
            media_type=MEDIA_TYPE,
            source_metadata=SourceMetadata(
                title=document.lines[0], access_scope=scope if own else None
            ),
        )
