"""Compare the relations of routes of real applications with relations judged by reading them.

    python -m benchmarks.code_routes CHECKOUT... [--name NAME]

A CHECKOUT has a name of code_routes.yaml: snipe-it, invoiceninja. Each becomes a tenant on real
servers. From each judged route, the walk follows the relations that describe its behaviour: to its
action, to methods of the action's own class, parents and traits, from these to models, requests,
events, jobs and policies, and on to tables. No code of a checkout is run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from benchmarks.measure import CLI, PROJECT, create_parser, save_result
from benchmarks.servers import benchmark_servers, make_home
from rag_assets.cli.session import Session
from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.retrieval.nodes import Relation
from rag_assets.systems.code_memory.retrieval.walk import Walker
from rag_assets.systems.code_memory.symbols.names import ABILITY, TABLE

WORK = PROJECT / ".local" / "benchmark-code-routes"
KINDS: Final = ("models", "tables", "requests", "events", "jobs", "policies")
INCLUDED: Final = (
    *("app/**/*.php", "routes/**/*.php", "config/*.php", "bootstrap/**/*.php"),
    *("database/migrations/*.php", "composer.json"),
)
"""Files that define routes and tables; translations and documents would only be embedded."""

_KINDS_OF_RELATIONS: Final = {
    "uses_model": "models",
    "relates_to": "models",
    "validates_with": "requests",
    "fires": "events",
    "dispatches": "jobs",
    "queries_table": "tables",
}
"""Kinds of names that an action's relations lead to."""

NamesByKind = dict[str, set[str]]


def main() -> None:
    """Walk from the judged routes and save the result."""
    options = _parse_options()
    judged = YAML(typ="safe").load(Path(__file__).with_name("code_routes.yaml"))
    roots = {root.resolve().name: root.resolve() for root in options.checkouts}
    with benchmark_servers(WORK) as servers:
        os.environ["RAG_ASSETS_DATABASE_URL"] = servers.create_database("code_routes")
        os.environ["RAG_ASSETS_ELASTICSEARCH_URL"] = servers.elasticsearch_url
        make_installation(WORK / "home", roots)
        with Session() as session:
            applications = {
                name: measure_application(Walker(session.catalog), name, judged[name]["routes"])
                for name in roots
            }
    result = {
        "benchmark": options.name,
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commits": {name: judged[name]["commit"] for name in roots},
        "applications": applications,
        "all": sum_applications(applications.values()),
    }
    print(json.dumps(result, indent=1))
    print(save_result(options.name, result))


def make_installation(home: Path, roots: Mapping[str, Path]) -> None:
    """Make an installation with a tenant for each checkout, and sync them."""
    tenants = [
        {
            "id": name,
            "profile": "code-memory",
            "organization": "benchmark",
            "project": name,
            "embedder": {"provider": "deterministic", "dimensions": 64},
            "sources": [
                {"name": "repo", "type": "git", "root": str(root), "include": list(INCLUDED)}
            ],
        }
        for name, root in roots.items()
    ]
    make_home(home, tenants)
    os.environ["RAG_ASSETS_HOME"] = str(home)
    for name in roots:
        command = [*CLI, "sync", name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def measure_application(
    walker: Walker, tenant: str, judged_routes: Mapping[str, Mapping[str, Sequence[str]]]
) -> dict[str, Any]:
    """Return counts, recall and precision of an application's judged routes, and each difference.

    Args:
        judged_routes: names by kind, by route.
    """
    counts = {kind: {"judged": 0, "found": 0, "right": 0} for kind in KINDS}
    missed: list[str] = []
    wrong: list[str] = []
    for route, judged_names in judged_routes.items():
        names = walk_route(walker, tenant, route)
        for kind in KINDS:
            true = set(judged_names.get(kind, ()))
            counts[kind]["judged"] += len(true)
            counts[kind]["found"] += len(names[kind])
            counts[kind]["right"] += len(true & names[kind])
            missed += [f"{route}: {kind} {name}" for name in sorted(true - names[kind])]
            wrong += [f"{route}: {kind} {name}" for name in sorted(names[kind] - true)]
    return {"kinds": counts, **_compute_shares(counts.values()), "missed": missed, "wrong": wrong}


def walk_route(walker: Walker, tenant: str, route: str) -> NamesByKind:
    """Return the models, tables, requests, events, jobs and policies that the walk leads to.

    Args:
        route: method and path.
    """
    names: NamesByKind = {kind: set() for kind in KINDS}
    models: set[str] = set()
    for action in _list_targets(_list_relations(walker, tenant, f"route:{route}"), "routes_to"):
        for method in (action, *_list_own_methods(walker, tenant, action)):
            for relation in _list_method_relations(walker, tenant, method):
                kind = _KINDS_OF_RELATIONS.get(relation.kind)
                target = relation.target
                if relation.kind == "authorizes":
                    names["policies"] |= _find_policies(walker, tenant, target)
                elif target.startswith(TABLE):
                    names["tables"].add(target.removeprefix(TABLE))
                elif kind is not None:
                    names[kind].add(_shorten(target))
                    models |= {target} if kind == "models" else set()
    for model in models:
        for table in _list_targets(_list_relations(walker, tenant, model), "maps_to"):
            names["tables"].add(table.removeprefix(TABLE))
    return names


def _find_policies(walker: Walker, tenant: str, target: str) -> set[str]:
    """Return the policy that an action asks, directly or by a gate; or its model's policies."""
    if target.startswith(ABILITY):
        answers = _list_targets(_list_relations(walker, tenant, target), "authorizes")
        return {_shorten(answer.partition("::")[0]) for answer in answers}
    walk = walker.walk_from_name(tenant, Caller(), target, kinds=["authorizes"], direction="in")
    types = {node.name: node.source_type for node in walk.nodes}
    if types.get(target) == "policy":
        return {_shorten(target.partition("::")[0])}
    asking = [relation.source for relation in walk.relations if types[relation.source] == "policy"]
    return {_shorten(name.partition("::")[0]) for name in asking}


def _list_method_relations(walker: Walker, tenant: str, method: str) -> Iterator[Relation]:
    """Yield the relations of a method, and the model relations of the methods it calls."""
    for relation in _list_relations(walker, tenant, method):
        yield relation
        if relation.kind == "calls":
            called = _list_relations(walker, tenant, relation.target)
            yield from (one for one in called if one.kind == "relates_to")


def _list_own_methods(walker: Walker, tenant: str, action: str) -> list[str]:
    """Return the methods of its own class, parents and traits that an action calls."""
    owner = action.rpartition("::")[0]
    own_classes, todo = {owner}, [owner]
    while todo:
        relations = _list_relations(walker, tenant, todo.pop())
        new = {
            *_list_targets(relations, "extends"),
            *_list_targets(relations, "uses_trait"),
        } - own_classes
        own_classes |= new
        todo += new
    called = _list_targets(_list_relations(walker, tenant, action), "calls")
    return [one for one in called if one.rpartition("::")[0] in own_classes]


def _shorten(name: str) -> str:
    return name.rpartition("\\")[2]


def _list_relations(walker: Walker, tenant: str, name: str) -> tuple[Relation, ...]:
    walk = walker.walk_from_name(tenant, Caller(), name, direction="out", depth=1)
    return tuple(relation for relation in walk.relations if relation.source in walk.start_names)


def _list_targets(relations: Sequence[Relation], kind: str) -> list[str]:
    return [relation.target for relation in relations if relation.kind == kind]


def sum_applications(applications: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return precision and recall over all applications together.

    Args:
        applications: results of `measure_application`.
    """
    return _compute_shares(
        one for application in applications for one in application["kinds"].values()
    )


def _compute_shares(counts: Iterable[Mapping[str, int]]) -> dict[str, float]:
    all_counts = list(counts)
    right_count, found_count, judged_count = (
        sum(count[key] for count in all_counts) for key in ("right", "found", "judged")
    )
    return {
        "precision": round(right_count / found_count, 3) if found_count else 1.0,
        "recall": round(right_count / judged_count, 3) if judged_count else 1.0,
    }


def _parse_options() -> argparse.Namespace:
    parser = create_parser(__doc__)
    parser.add_argument("checkouts", nargs="+", type=Path, metavar="CHECKOUT")
    parser.add_argument("--name", default="code-routes")
    return parser.parse_args()


if __name__ == "__main__":
    main()
