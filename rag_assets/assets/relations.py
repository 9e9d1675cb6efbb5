"""relations: the relations in a tenant's repositories, counted by kind.

Runs report it if they have published texts of source code.
"""

from __future__ import annotations

import dagster as dg

from rag_assets.assets.descriptions import RELATIONS
from rag_assets.assets.metadata_values import table
from rag_assets.declarations import Naming, Report
from rag_assets.pipeline.context import TenantContext

_MOST_LINES = 50
_COLUMNS = {"relation": "string", "edges": "int", "resolved": "float"}

relations = Report(
    "relations", dep="search_index", group="code", kind="postgres", description=RELATIONS
)


def relations_report(names: Naming, ctx: TenantContext) -> dg.AssetMaterialization | None:
    """Return the counts of the serving build; None for tenants that read no source code."""
    serving = ctx.catalog.generations.serving(ctx.ref.id) if ctx.tenant.reads_code else None
    if serving is None:
        return None
    counts = ctx.catalog.relation_counts.of(ctx.ref.id, serving.number)
    edges = sum(one.edges for one in counts)
    resolved = sum(one.resolved for one in counts)
    unresolved = ctx.catalog.derivations.unresolved(ctx.ref.id)
    lines = [one.told for found in unresolved.values() for one in found]
    return relations.materialization(
        names,
        ctx.ref.id,
        metadata={
            "symbols": ctx.catalog.relation_counts.symbols(ctx.ref.id, serving.number),
            "edges": edges,
            "resolved share": round(resolved / edges, 4) if edges else 1.0,
            "by kind": table(
                _COLUMNS,
                [(one.kind, one.edges, round(one.resolved / one.edges, 4)) for one in counts],
            ),
            "unresolved routes and tables": len(lines),
            **({"not known": dg.MetadataValue.md(_listed(lines))} if lines else {}),
        },
    )


def _listed(lines: list[str]) -> str:
    shown = [f"- `{line.replace('`', '')}`" for line in lines[:_MOST_LINES]]
    more = len(lines) - _MOST_LINES
    return "\n".join([*shown, *([f"- and {more:,} more"] if more > 0 else [])])
