"""The reference of endpoints, events, metrics, metadata of assets and tables, from the code."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, cast, get_args

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.middleware import RequestMetrics
from rag_assets.assets.descriptions import RUN_NOTE
from rag_assets.definitions import build_defs
from rag_assets.plugins.registry import installed_systems
from rag_assets.storage.catalog.journal.events import EventKind
from rag_assets.storage.catalog.tables import SCHEMA, list_all_tables

_PACKAGE = Path(__file__).resolve().parents[2] / "rag_assets"
_HEAD = """# Endpoints, events, metrics, metadata and tables

This page is for developers and operators who look up a name that the service, Dagster or Postgres
shows. It is written from the code.

## Endpoints

`GET /openapi.json` has the parameters, bodies and answers of each endpoint.
[The service](service.md) explains tokens, limits and problems.
"""
_EVENTS = """
## Events

`GET /rag/events` and the table `{schema}.events` have these kinds of events. A payload contains no
credential and no text of a document.

| kind | when |
|---|---|"""
_METRICS = """
## Metrics

`GET /metrics` returns them for Prometheus.

| metric | kind | labels | meaning |
|---|---|---|---|"""
_METADATA = f"""
## Metadata of assets

Dagster shows this text on the page of each asset, and the metadata with each materialization.
{RUN_NOTE}"""
_TABLES = f"""
## Tables

The schema `{SCHEMA}` of the catalog. Read it, but change it only through commands and endpoints:
triggers and stores depend on what they write.

| table | content | columns |
|---|---|---|"""
_EVENT_MEANINGS: Mapping[EventKind, str] = {
    "document_indexed": "a new version of a document became searchable",
    "document_removed": "a deleted document left the index",
    "document_failed": "a document cannot be processed; its last version stays searchable",
    "cap_reached": "a spending cap stopped embedding",
    "rag_chunk_indexed": "code memory: one event for each passage that was indexed",
    "secret_dropped": "a passage was dropped because of a credential",
    "secret_masked": "a credential in a document was masked before it was indexed",
    "secrets_masked": "a later scan with newer rules masked credentials in stored texts",
    "deletions_held": "suspiciously many documents disappeared; a person must decide",
    "documents_left": "documents disappeared from a source; counted for mass deletions",
    "reindex_requested": "an application or operator requested that documents are indexed again",
    "generation_published": "a build became the one that answers searches",
    "generation_held": "a complete build failed a check and was not published",
    "generation_pinned": "an operator fixed the build that answers",
    "generation_unpinned": "an operator ended that",
    "generation_discarded": "a build that does not answer was deleted",
    "drift_found": "the index differs from the catalog",
    "index_repaired": "entries were written or deleted until the index equalled the catalog",
    "lake_healed": "damaged or lost files of the lake were repaired",
    "catalog_accepted": "an operator accepted a restored catalog",
    "compacted": "weekly: unused rows and files of the lake were deleted",
    "pruned": "documents older than the retention were deleted",
    "pruned_expunged": "the entries of pruned documents were removed from the index's files",
    "prunes_held": "so many documents are due for pruning that a person must confirm it",
    "times_corrected": "times in the future, written while a clock was fast, were corrected",
    "clock_accepted": "an operator accepted the present time after a jump of the clock",
    "hold_set": "a legal hold was set",
    "hold_lifted": "a legal hold was lifted",
    "model_changed": "a provider's model gives other vectors than before under the same name",
    "settings_changed": "a member, an application or a measurement changed a setting",
    "rows_set_aside": "rows of a database that a workspace pulls could not become records",
    "rag_search_started": "a search started, with its question",
    "rag_search_completed": "a search ended, with its hits, latencies and degradations",
    "ai_context_loaded": "an agent's run received passages",
    "paused_for_input": "an agent's run must ask its user before it can continue",
}


def build_reference_page() -> str:
    """Return the page's text; raises KeyError or ValueError if a name has no description."""
    parts = [_HEAD, *_write_endpoints(), _EVENTS.format(schema=SCHEMA)]
    parts += [f"| `{kind}` | {_EVENT_MEANINGS[kind]} |" for kind in get_args(EventKind)]
    parts += [_METRICS, *_write_metrics(), _METADATA, *_write_assets(), _TABLES, *_write_tables()]
    return "\n".join(parts).rstrip() + "\n"


def _write_endpoints() -> Iterator[str]:
    routers = [*installed_systems().load("routers").values()]
    paths = build_app(cast("Backend", None), routers=routers).openapi()["paths"]
    rows: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for path, operations in paths.items():
        for method, operation in operations.items():
            rows[operation["tags"][0]].append((path, method.upper(), _summarize(path, operation)))
    for tag in sorted(rows):
        yield f"### {tag}\n\n| method | path | meaning |\n|---|---|---|"
        yield from (
            f"| {method} | `{path}` | {meaning} |" for path, method, meaning in sorted(rows[tag])
        )
        yield ""


def _summarize(path: str, operation: Mapping[str, Any]) -> str:
    description = operation.get("description")
    if not description:
        raise ValueError(f"endpoint {path} has no docstring: describe it in one sentence")
    return _escape(description.partition("\n\n")[0])


def _write_metrics() -> Iterator[str]:
    metrics = RequestMetrics()
    for metric in (metrics.requests, metrics.seconds):
        (family,) = metric.describe()
        labels = ", ".join(f"`{label}`" for label in metric._labelnames)  # noqa: SLF001 - no other way
        yield f"| `{family.name}` | {family.type} | {labels} | {family.documentation} |"


def _write_assets() -> Iterator[str]:
    assets = build_defs().resolve_asset_graph().asset_nodes
    for node in sorted(assets, key=lambda node: node.key.to_user_string()):
        if node.description:
            description = node.description.replace(RUN_NOTE, "").replace("\n\n\n", "\n")
            yield f"\n### {node.key.to_user_string()}\n\n{description.strip()}"


def _write_tables() -> Iterator[str]:
    meanings = _find_table_meanings()
    for table in sorted(list_all_tables(), key=lambda table: table.name):
        columns = ", ".join(f"`{column.name}`" for column in table.columns)
        yield f"| `{table.name}` | {_escape(meanings[table.name])} | {columns} |"


def _find_table_meanings() -> dict[str, str]:
    """Return the first sentence of the docstring after each table's definition, by its name."""
    meanings = {}
    for path in _PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "Table(" not in text:
            continue
        body = ast.parse(text).body
        for statement, following in pairwise(body):
            match statement, following:
                case (
                    ast.Assign(
                        value=ast.Call(
                            func=ast.Name("Table") | ast.Attribute(attr="Table"),
                            args=[ast.Constant(str(name)), *_],
                        )
                    ),
                    ast.Expr(value=ast.Constant(str(docstring))),
                ):
                    meanings[name] = docstring.strip().partition("\n\n")[0]
    return meanings


def _escape(text: str) -> str:
    """Return a text on one line of a Markdown table."""
    return " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;")
