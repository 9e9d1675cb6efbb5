"""Measure walks over a million relations of one tenant: by SQL statements, and in memory.

    python -m benchmarks.code_scale [--edges N]

The example application is indexed, and its rows are copied under new names, each copy as another
module of the application, until there are N edges. Middleware, packages and framework names are
shared by all copies, as hubs of the graph. Each walk begins at another name.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import psutil
from sqlalchemy import text

from benchmarks.code_memory import TENANT, compute_percentiles, make_installation, run_sync
from benchmarks.measure import PROJECT, create_parser, describe_machine, report_result
from benchmarks.servers import benchmark_servers
from rag_assets.cli.session import Session
from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.catalog.code_catalog import get_code_catalog
from rag_assets.systems.code_memory.catalog.graph import Graph, GraphKey
from rag_assets.systems.code_memory.catalog.graph_memory import RelationGraphs
from rag_assets.systems.code_memory.catalog.relations import GraphRelations
from rag_assets.systems.code_memory.retrieval.question_subject import find_question_names
from rag_assets.systems.code_memory.retrieval.relevance import Neighbourhoods
from rag_assets.systems.code_memory.retrieval.steps.walk import find_related_nodes as walk_of
from rag_assets.systems.code_memory.retrieval.walk import USUAL_STEPS, Walker
from rag_assets.tenants.model import Tenant

WORK = PROJECT / ".local" / "benchmark-code-scale"
WALKS = 100
_LOAD_SECONDS = 600
_COPIED_AT_ONCE = 20
_QUESTIONS = (
    "What controller serves route {}.invoices.store and which model and table does it touch?",
    "Which migrations created or altered table invoices_{}?",
    "What does App{}\\Http\\Controllers\\PaymentController@store dispatch?",
)

_RENAMED = r"""
    regexp_replace(
        regexp_replace(
            regexp_replace({0}, '\m(App|Tests|Database)(?=\\)', '\1' || :copy, 'g'),
            '^(table:[a-z_]+|called:table [a-z_]+)', '\1_' || :copy
        ),
        '^((?:called:)?route:? ?)', '\1' || :copy || '.'
    )
"""
_SHORT = r"""
    regexp_replace(
        regexp_replace(short, '^(table [a-z_]+)$', '\1_' || :copy),
        '^route (?!/|get|post|put|patch|delete|head)', 'route ' || :copy || '.'
    )
"""
_COPIES = (
    """
    INSERT INTO rag_catalog.documents
    SELECT (jsonb_populate_record(d, jsonb_build_object(
        'document_id', md5(d.document_id || :copy),
        'uri', regexp_replace(d.uri, '^([^/]+)/', '\\1/module' || :copy || '/')
    ))).* FROM rag_catalog.documents AS d
    WHERE d.tenant = :tenant AND d.uri NOT LIKE '%/module%'
    """,
    """
    INSERT INTO rag_catalog.document_index
    SELECT (jsonb_populate_record(i, jsonb_build_object(
        'document_id', md5(i.document_id || :copy),
        'chunk_set_key', i.chunk_set_key || '-' || :copy
    ))).* FROM rag_catalog.document_index AS i
    WHERE i.tenant = :tenant AND i.chunk_set_key NOT LIKE '%-%'
    """,
    """
    INSERT INTO rag_catalog.document_kinds
    SELECT tenant, md5(document_id || :copy), kinds FROM rag_catalog.document_kinds
    WHERE tenant = :tenant AND document_id IN (
        SELECT document_id FROM rag_catalog.documents
        WHERE tenant = :tenant AND uri NOT LIKE '%/module%'
    )
    """,
    f"""
    INSERT INTO rag_catalog.symbols
    SELECT (jsonb_populate_record(s, jsonb_build_object(
        'chunk_set_key', s.chunk_set_key || '-' || :copy,
        'symbol', {_RENAMED.format("symbol")},
        'short', {_SHORT}
    ))).* FROM rag_catalog.symbols AS s
    WHERE s.tenant = :tenant AND s.chunk_set_key NOT LIKE '%-%'
    """,  # noqa: S608 - nothing given
    f"""
    INSERT INTO rag_catalog.edges
    SELECT (jsonb_populate_record(e, jsonb_build_object(
        'chunk_set_key', e.chunk_set_key || '-' || :copy,
        'stated_of', {_RENAMED.format("stated_of")},
        'target', {_RENAMED.format("target")}
    ))).* FROM rag_catalog.edges AS e
    WHERE e.tenant = :tenant AND e.chunk_set_key NOT LIKE '%-%'
    """,  # noqa: S608 - nothing given
)


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__)
    parser.add_argument("--edges", type=int, default=1_000_000)
    edges = parser.parse_args().edges
    before = describe_machine()
    with benchmark_servers(WORK) as servers:
        make_installation(servers, WORK / "home", PROJECT / "examples" / "laravel", 1)
        run_sync()
        with Session() as session:
            result = measure_walks(session, edges)
    figures = {**result}
    print(json.dumps(figures, indent=1))
    report_result("code-scale", "code-scale", before, figures)


def measure_walks(session: Session, edges: int) -> dict[str, Any]:
    """Copy the rows, and measure walks, memory and loading."""
    copies = copy_rows(session, edges)
    names = [number % copies + 1 for number in range(WALKS)]
    graphs = get_code_catalog(session.catalog).relations.graphs
    graphs.most_bytes = 0
    walks = {"by statements": time_walks(session, names)}
    process = psutil.Process()
    memory_before = process.memory_info().rss
    graphs.most_bytes = 4 << 30
    started = time.perf_counter()
    graph = wait_for_graph(graphs, session)
    seconds = time.perf_counter() - started
    memory = process.memory_info().rss - memory_before
    walks["in memory"] = time_walks(session, names)
    return {
        "documents": len(graph.by_id),
        "edges": sum(len(segment.edges.text) for segment in graph.segments),
        "walks in ms": walks,
        "memory of the graph in MB": round(graph.bytes / 1e6, 1),
        "memory of the process for it in MB": round(memory / 1e6, 1),
        "seconds to load it": round(seconds, 2),
        "seconds to follow an edit": time_refresh(session, graphs),
        "ms of its state": time_calls(
            lambda: get_code_catalog(session.catalog).relations.read_readable_state(TENANT, ())
        ),
    }


def copy_rows(session: Session, edges: int) -> int:
    """Copy rows until there are that many edges; return the number of copies."""
    database = session.catalog.database
    counting = text("SELECT count(*) FROM rag_catalog.edges WHERE tenant = :tenant")
    with database.begin() as connection:
        own = connection.scalar(counting, {"tenant": TENANT}) or 1
    copies = max(1, round(edges / own) - 1)
    for number in range(1, copies + 1):
        with database.begin() as connection:
            for statement in _COPIES:
                connection.execute(text(statement), {"tenant": TENANT, "copy": str(number)})
        if number % _COPIED_AT_ONCE == 0:
            print(f"{number} of {copies} copies", file=sys.stderr)
    with database.begin() as connection:
        connection.execute(text("ANALYZE"))
    return copies


def wait_for_graph(graphs: RelationGraphs, session: Session) -> Graph:
    """Wait until the graph of the current state is in memory, and return it."""
    until = time.monotonic() + _LOAD_SECONDS
    while time.monotonic() < until:
        serving = session.catalog.generations.serving(TENANT)
        moment = get_code_catalog(session.catalog).relations.read_readable_state(TENANT, ())
        if serving is not None:
            key = GraphKey(session.catalog.tenants.get(TENANT).ref, serving.number)
            graph = graphs.get(key, moment.state)
            if graph is not None:
                return graph
        time.sleep(0.01)
    sys.exit(f"the graph was not loaded within {_LOAD_SECONDS} seconds")


def time_walks(session: Session, copies: Sequence[int]) -> dict[str, Any]:
    """Time walks of questions and of `code relations`, each from another module's names."""
    walker = Walker(session.catalog)
    tenant = Tenant.from_config(session.catalog.tenants.get(TENANT).config)
    spent: dict[str, list[float]] = {"question": [], "relations, 5 steps": []}
    reached, neighbourhoods = [], Neighbourhoods()
    for turn, number in enumerate(copies):
        names = find_question_names(_QUESTIONS[turn % len(_QUESTIONS)].format(number))
        started = time.perf_counter()
        view = walker.get_serving_view(TENANT, Caller())
        if view is None:
            sys.exit("no build is serving")
        view_neighbourhoods = (
            neighbourhoods if isinstance(view.relations, GraphRelations) else Neighbourhoods()
        )
        walk, _ = walk_of(view, view_neighbourhoods, tenant, names)
        reached.append(len(walk.nodes))
        between = time.perf_counter()
        name = f"App{number}\\Http\\Controllers\\InvoiceController::store"
        walker.walk_from_name(TENANT, Caller(), name, direction="out", depth=USUAL_STEPS)
        spent["question"].append(1_000 * (between - started))
        spent["relations, 5 steps"].append(1_000 * (time.perf_counter() - between))
    times = {name: compute_percentiles(values) for name, values in spent.items()}
    return {**times, "reached": round(statistics.median(reached))}


def time_refresh(session: Session, graphs: RelationGraphs) -> float:
    """Return the seconds until a graph follows a change of one document."""
    change = """
        UPDATE rag_catalog.documents SET access_scope = 'closed'
        WHERE tenant = :tenant AND uri LIKE '%/module1/app/Models/Invoice.php'
    """
    with session.catalog.database.begin() as connection:
        connection.execute(text(change), {"tenant": TENANT})
    time.sleep(1)
    started = time.perf_counter()
    wait_for_graph(graphs, session)
    return round(time.perf_counter() - started, 2)


def time_calls(work: Callable[[], object], rounds: int = 50) -> dict[str, float]:
    """Call `work` repeatedly; return percentiles in milliseconds."""
    spent = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        spent.append(1_000 * (time.perf_counter() - started))
    return compute_percentiles(spent)


if __name__ == "__main__":
    main()
