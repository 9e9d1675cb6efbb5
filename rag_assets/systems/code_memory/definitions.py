"""Dagster definitions of code memory: the report and the check of relations."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from rag_assets.assets.descriptions import describe_asset
from rag_assets.assets.metadata_values import build_table
from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Severity, Verdict
from rag_assets.common.formatting import format_count
from rag_assets.declarations import Naming, Report
from rag_assets.pipeline.context import TenantContext
from rag_assets.systems.code_memory.catalog.code_catalog import get_code_catalog
from rag_assets.systems.code_memory.chunker import reads_code
from rag_assets.systems.code_memory.derived.model import INDEXES
from rag_assets.systems.code_memory.pipeline.fact_store import RelationDrift, compare_relations
from rag_assets.systems.code_memory.symbols.names import ELSEWHERE

_MAX_LINES = 50
_COLUMNS = {"relation": "string", "edges": "int", "resolved": "float"}

_RELATIONS = describe_asset(
    """What relates to what in a tenant's repositories, counted by kind.

Reported for tenants that read source code, by a sync that changes a hundredth of the entries, and
otherwise at most once an hour.
`rag-assets code relations` and the panel show the relations themselves.""",
    {
        "symbols": "definitions in the build that answers, each text once",
        "edges": "relations of all kinds",
        "resolved share": "of them that lead to something the repositories define, or to a table,"
        " a setting, a file or a package; the others name what lies elsewhere",
        "by kind": "relations of each kind, and the share of them that is resolved",
        "unresolved routes and tables": "statements that may add or change some and are computed",
        "not known": "where these are, and why",
        "SCIP indexes": "documents of each that were read, and those that are stale",
    },
)

relations = Report(
    "relations", dep="search_index", group="code", kind="postgres", description=_RELATIONS
)


def relations_report(names: Naming, ctx: TenantContext) -> dg.AssetMaterialization | None:
    """Return the counts of relations; None if no build is serving or no source code is read."""
    serving = ctx.catalog.generations.serving(ctx.ref.id) if reads_code(ctx.tenant) else None
    if serving is None:
        return None
    code = get_code_catalog(ctx.catalog)
    every = code.relation_rows.count_relations(ctx.ref.id, serving.number)
    # Edges to other packages lead to no definition, and are never shown.
    counts = [row for row in every if row[0] != ELSEWHERE]
    total = sum(edges for _, edges, _ in counts)
    resolved = sum(resolved_edges for *_, resolved_edges in counts)
    rows = [
        (kind, edges, round(resolved_edges / edges, 4)) for kind, edges, resolved_edges in counts
    ]
    unresolved = code.derivations.list_unresolved(ctx.ref.id)
    statements = [statement for of_source in unresolved.values() for statement in of_source]
    lines = [statement.description for statement in statements if statement.about != INDEXES]
    indexes = [statement.description for statement in statements if statement.about == INDEXES]
    return relations.materialization(
        names,
        ctx.ref.id,
        metadata={
            "symbols": code.relation_rows.count_symbols(ctx.ref.id, serving.number),
            "edges": total,
            "resolved share": round(resolved / total, 4) if total else 1.0,
            "by kind": build_table(_COLUMNS, rows),
            "unresolved routes and tables": len(lines),
            **({"not known": dg.MetadataValue.md(_format_list(lines))} if lines else {}),
            **({"SCIP indexes": dg.MetadataValue.md(_format_list(indexes))} if indexes else {}),
        },
    )


def _format_list(lines: list[str]) -> str:
    items = [f"- `{line.replace('`', '')}`" for line in lines[:_MAX_LINES]]
    more = len(lines) - _MAX_LINES
    return "\n".join([*items, *([f"- and {more:,} more"] if more > 0 else [])])


def build_verdict(
    drift: RelationDrift, uris: Mapping[str, str], *, writer_at_work: bool = False
) -> Verdict:
    """Return the verdict on whether the recorded relations match the indexed texts.

    Args:
        uris: names of documents, by id.
        writer_at_work: whether another run may be between two steps of a write.
    """
    derived = drift.derived or {}
    differs = "the recorded relations differ from the text"
    offenders: list[tuple[str, str | int]] = [
        *((differs, uris.get(id_, id_)) for id_ in drift.altered),
        *((f"{number:,} derived documents differ", source) for source, number in derived.items()),
    ]
    if drift.orphans:
        fault = "relations are recorded for texts that no build contains"
        offenders.append((fault, drift.orphans))
    severity: Severity = "WARN" if writer_at_work else "ERROR"
    return Verdict(
        passed=drift.is_empty,
        description=_describe_drift(drift, is_writer_at_work=writer_at_work),
        compared=(
            Compared("texts whose recorded relations differ", 0, len(drift.altered)),
            Compared("texts that no build contains", 0, drift.orphans),
            Compared("derived documents that differ", 0, sum(derived.values())),
        ),
        columns=("fault", "which"),
        offenders=tuple(offenders),
        severity=severity,
        notes={"texts compared": drift.compared},
    )


@tenant_check(
    "search_index",
    "relations",
    (
        "The recorded definitions and relations match the indexed texts, and the derived documents "
        "match the indexed files. Each evaluation compares a share of the texts, so that all texts "
        "are compared within `drift.days`; `rag-assets check --deep` compares all texts."
    ),
    nightly=True,
    repairable=True,
    against_catalog=True,
)
def relations_check(context: CheckContext) -> Verdict:
    """Compare relations with the facts in the lake; check differences again while no run writes."""
    drift, other_writer = compare_relations(context.tenant, context.share), False
    if not drift.is_empty:
        with context.exclude_writers("comparing relations") as tenant:
            if tenant is not None:
                drift = compare_relations(tenant, context.share)
        other_writer = tenant is None and context.has_other_writer()
    documents, ref = context.tenant.catalog.documents, context.tenant.ref
    documents_by_id = documents.find(ref.id, [*drift.altered]) if drift.altered else []
    uris = {document.document_id: document.uri for document in documents_by_id}
    return build_verdict(drift, uris, writer_at_work=other_writer)


def _describe_drift(drift: RelationDrift, *, is_writer_at_work: bool) -> str:
    if drift.is_empty and not drift.compared:
        return "no source code is indexed"
    if drift.is_empty:
        return (
            f"the relations of {format_count(drift.compared, 'text')} match the facts in the lake"
        )
    if is_writer_at_work:
        advice = "a run is writing for this tenant: run the check again after that run has ended"
    else:
        advice = "run `rag-assets sync TENANT --repair` to record them again; it embeds nothing"
    return f"{drift} differ from the facts in the lake; {advice}"
