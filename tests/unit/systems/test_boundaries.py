"""The core does not name a system or its parts, except in the modules listed here with a reason."""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import rag_assets
from rag_assets.plugins.registry import installed_systems
from rag_assets.plugins.system import PART_KINDS

ROOT = Path(rag_assets.__file__).parent
SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|FROM|JOIN|TABLE)\b")
ALLOWED: Mapping[str, set[str]] = {
    "agent[-_ ]docs": set(),
    "code[-_ ]memory": {
        # The client distribution has one class with all operations, and needs no system.
        *("api/run_responses.py", "client/clients.py", "client/code_operations.py"),
        # Help of options of the one search command, which says where they apply.
        "cli/arguments.py",
    },
    "experience": {
        # The client distribution, as above.
        *("api/experience_responses.py", "client/clients.py", "client/experience_operations.py"),
        # Keys of tenants.yaml are fields of one model.
        "tenants/model.py",
        # The help of an option, which names two of its values as examples.
        "cli/thresholds.py",
    },
    "guideline": {
        # The client distribution, as above.
        *("api/guideline_responses.py", "client/clients.py", "client/exchange.py"),
        "client/guideline_operations.py",
        # An option of `organizations put`, a column of its table, and a field of its JSON.
        "cli/projects.py",
        # The column behind the opt-in of organizations, which the first release of its table named.
        "storage/catalog/tables.py",
        # The sentence of one kind of failure, which every interface shows.
        "common/failure_kinds.py",
    },
    "workspace": {
        # The client distribution, as above.
        *("api/workspace_responses.py", "client/clients.py", "client/operations.py"),
        "client/workspace_operations.py",
        # `GET /rag/status` answers some tenants with such a response.
        "api/knowledge_routes.py",
        # Fields, values and descriptions of endpoints, tools and options, which users read.
        *("api/model.py", "api/record_routes.py", "api/record_streams.py", "api/responses.py"),
        *("cli/arguments.py", "ingest/parsing/detection.py", "mcp/tools.py", "search/model.py"),
        # A remedy names the command that allows the deletion.
        "storage/catalog/builds/syncs.py",
        # Keys of tenants.yaml are fields of one model.
        *("tenants/application_settings.py", "tenants/model.py"),
        # Dagster's workspace.yaml.
        *("cli/session.py", "cli/fork_server.py", "common/settings.py", "dagster_compat.py"),
        *("runtime/program_processes.py", "web/__main__.py"),
    },
}


PARTS: Mapping[str, set[str]] = {
    # The client distribution, as above.
    **{
        f"experience_{name}": {"client/clients.py", "client/experience_operations.py"}
        for name in ("context", "feedback", "for_failure", "for_task")
    },
    "/rag/experience": {"client/experience_operations.py"},
    "/rag/settings": {"client/workspace_operations.py"},
    "/rag/tree/reconcile": {"client/workspace_operations.py"},
    "feature-off": {"api/guideline_responses.py"},
    "guidelines": {
        *("client/clients.py", "client/guideline_operations.py"),
        # An option of `organizations put`.
        "cli/projects.py",
    },
    # Keys of tenants.yaml are fields of one model.
    "experience": {"tenants/model.py"},
    "frameworks": {
        "tenants/model.py",
        # They are part of a chunk's key, and are passed to the processes that chunk.
        *("ingest/chunking/kinds.py", "ingest/workers/process.py"),
    },
    "workspace": {
        *("tenants/application_settings.py", "tenants/model.py"),
        # A value of a field of an endpoint.
        "api/model.py",
        # Dagster's workspace.yaml.
        *("dagster_compat.py", "runtime/program_processes.py", "web/__main__.py"),
    },
    # Each index has a field for the symbols of a passage, which any chunker may set.
    "symbols": {
        *("search/read.py", "search/recall.py", "search/services.py"),
        *("storage/index/elasticsearch/queries.py", "storage/index/elasticsearch/store.py"),
        *("storage/index/memory/searcher.py", "storage/index/pgvector/searcher.py"),
        "storage/index/model.py",
    },
    # A system's tool replaces the core's tool of this name for its tenants.
    "rag_search": {"mcp/tools.py"},
}
ORDINARY = {
    *("agents", "code", "derivations", "derived", "edges", "exact", "globs", "outline", "passage"),
    *("projects", "quote", "relations", "runs", "spread", "sql", "walk"),
}
"""Names of parts that are also ordinary words, which the core uses in another sense."""


@pytest.mark.parametrize("name", ALLOWED)
def test_the_core_names_a_system_in_the_listed_modules_only(name: str) -> None:
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in _list_core_modules()
        if re.search(name, path.read_text(encoding="utf-8"), re.IGNORECASE)
    }
    assert naming == ALLOWED[name]


def test_every_system_but_the_default_one_is_searched() -> None:
    names = {system.name for system in installed_systems()} - {"documents"}
    assert {name for name in names if not any(re.search(word, name) for word in ALLOWED)} == set()


def test_the_core_names_parts_of_systems_in_the_listed_modules_only() -> None:
    """Search the names of tables, tools, problems and all other parts in the core's code."""
    naming = _find_parts()
    assert {name: naming[name] for name in naming if name not in ORDINARY} == PARTS
    assert set(naming) >= ORDINARY, "remove the words that are no longer needed"


@pytest.mark.parametrize("folder", ["api", "checks", "resources", "sensors"])
def test_modules_in_linked_folders_belong_to_the_core(folder: str) -> None:
    assert any(path.relative_to(ROOT).parts[0] == folder for path in _list_core_modules())


@pytest.mark.parametrize(
    ("code", "is_named"),
    [
        ("catalog.code_runs.all()", True),
        ("from x import code_runs as y", True),
        ("def f(code_runs): pass", True),
        ("f('code_runs')", True),
        ("f(f'DELETE FROM {schema}.code_runs WHERE x')", True),
        ("def f():\n    'Select the rows of code_runs.'", False),
        ("f('the code_runs of a day')", False),
    ],
)
def test_names_are_found_in_code_and_not_in_sentences(code: str, is_named: bool) -> None:
    assert ("code_runs" in set(_iter_names(ast.parse(code)))) is is_named


def _find_parts() -> Mapping[str, set[str]]:
    parts = {
        name
        for installed in installed_systems()
        for kind in PART_KINDS
        for name in getattr(installed.system, kind)
    }
    naming: dict[str, set[str]] = defaultdict(set)
    for path in _list_core_modules():
        for name in parts & set(_iter_names(ast.parse(path.read_text(encoding="utf-8")))):
            naming[name].add(path.relative_to(ROOT).as_posix())
    return naming


@cache
def _list_core_modules() -> tuple[Path, ...]:
    # Path.rglob would not follow the links to checks, resources and sensors.
    paths = (
        Path(folder, name)
        for folder, _, names in os.walk(ROOT, followlinks=True)
        for name in names
        if name.endswith(".py")
    )
    return tuple(
        path for path in paths if not {"systems", "migrations"} & set(path.relative_to(ROOT).parts)
    )


def _iter_names(tree: ast.Module) -> Iterator[str]:
    """Yield all identifiers, all strings except docstrings, and the words of SQL statements."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.AsyncFunctionDef(name=name):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")
            case ast.Constant(value=str(text)):
                yield text
                yield from _iter_words_of_sql(text)
            case ast.JoinedStr(values=parts):
                texts = [part.value for part in parts if isinstance(part, ast.Constant)]
                yield from _iter_words_of_sql(" ".join(map(str, texts)))


def _iter_words_of_sql(text: str) -> Iterator[str]:
    if SQL.search(text):
        yield from re.findall(r"\w+", text)
