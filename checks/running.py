"""What the checks have in common: the tenant they look at, its documents, and the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import dagster as dg

from checks.verdict import Verdict, batches
from rag_assets.assets.showing import table
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import ParsedDocument, parsed_documents
from rag_assets.storage.catalog.document_rows import Document
from resources.workbench import Workbench, clear_failures

_BATCH_DOCUMENTS = 500
_BATCH_BYTES = 32 * 1024 * 1024
_MOST_OFFENDERS = 50
_OWN_PAGES = ("/documents/", "/data-docs/")


@contextmanager
def checked_tenant(
    context: dg.AssetCheckExecutionContext, workbench: Workbench
) -> Iterator[TenantContext]:
    """The context of the run's tenant, for reading; errors become step failures with a hint."""
    with clear_failures():
        yield workbench.context(context.partition_key, guard=_no_lock, log=context.log.info)


def documents_to_check(ctx: TenantContext, run_id: str) -> list[Document]:
    """The slice of a run that carried documents through the chain, else every living document."""
    worked_on = ctx.catalog.syncs.slice_of(ctx.ref.id, run_id)
    if worked_on is None:
        return ctx.catalog.documents.all(ctx.ref.id)
    found = ctx.catalog.documents.find(ctx.ref.id, worked_on.document_ids)
    return [document for document in found if document.status != "DELETED"]


def parsed_batches(ctx: TenantContext, run_id: str) -> Iterator[list[ParsedDocument]]:
    """The documents to check that have been parsed, few enough at a time to hold their chunks."""
    documents = documents_to_check(ctx, run_id)
    sizes = [document.facts.size for document in documents]
    for batch in batches(documents, _BATCH_DOCUMENTS, sizes, _BATCH_BYTES):
        parsed = parsed_documents(ctx, batch)
        if parsed:
            yield parsed


def written_by_another(ctx: TenantContext, run_id: str) -> bool:
    """Whether somebody else writes for the tenant just now, so that what is seen may pass."""
    holder = ctx.catalog.lock.holder(ctx.ref.id)
    if holder is None or holder.run_id == run_id:
        return False
    return ctx.catalog.lock.is_held(ctx.ref.id)


def result_of(verdict: Verdict) -> dg.AssetCheckResult:
    """The verdict as Dagster shows it."""
    metadata: dict[str, dg.MetadataValue] = {
        "expected and actual": table(
            {"what": "string", "expected": "string", "actual": "string"},
            [(row.what, _shown(row.expected), _shown(row.actual)) for row in verdict.compared],
        ),
        "offenders": dg.MetadataValue.int(len(verdict.offenders)),
    }
    if verdict.offenders:
        metadata["first offenders"] = _offenders(verdict.columns, verdict.offenders)
    for title, value in verdict.notes.items():
        metadata[title] = _note(value)
    return dg.AssetCheckResult(
        passed=verdict.passed,
        severity=dg.AssetCheckSeverity[verdict.severity],
        description=verdict.description,
        metadata=metadata,
    )


def _offenders(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> dg.TableMetadataValue:
    shown = [[_shown(cell) for cell in row] for row in rows[:_MOST_OFFENDERS]]
    return table(dict.fromkeys(columns, "string"), shown)


def _note(value: object) -> dg.MetadataValue:
    if isinstance(value, str) and value.startswith(_OWN_PAGES):
        return dg.MetadataValue.url(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return dg.MetadataValue.int(value)
    return dg.MetadataValue.text(_shown(value))


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _no_lock() -> None:
    """A check writes no data of the tenant, so it needs no lock."""
