"""The MCP tools of code memory: read-only, for agents that work on a repository."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeVar

from pydantic import Field

from rag_assets.common.errors import InvalidRequest
from rag_assets.mcp.tools import Knowledge, Tool, ToolFunction, current_message
from rag_assets.search.model import SearchRequest
from rag_assets.systems.code_memory.answers import CodeAnswers
from rag_assets.tenants.model import Tenant

_PROFILES = frozenset({"code-memory"})
_MAX_HITS = 12
_Name = Annotated[str, Field(min_length=1, max_length=1_000)]
_Names = Annotated[list[_Name], Field(max_length=20)]
_T = TypeVar("_T")


async def _ask(knowledge: Knowledge, work: Callable[[CodeAnswers], str]) -> str:
    message = current_message()

    def answer() -> str:
        record = knowledge.reader.catalog.tenants.get(message.tenant_id)
        tenant = Tenant.from_config(record.config)
        return work(CodeAnswers(knowledge.reader, tenant, message.caller, knowledge.settings))

    return await knowledge.in_thread(answer)


async def _code_search(
    knowledge: Knowledge,
    query: Annotated[str, Field(min_length=1, max_length=4_000)],
    source_types: _Names | None = None,
    path: _Name | None = None,
    top_k: Annotated[int, Field(ge=1, le=50)] = _MAX_HITS,
    route_name: _Name | None = None,
    controller_class: _Name | None = None,
    table_name: _Name | None = None,
    include_run_summaries: bool = True,
) -> str:
    message = current_message()
    request = SearchRequest.of(
        query=query,
        source_types=source_types,
        filters={"paths": [path]} if path else None,
        top_k=top_k,
        route_name=route_name,
        controller_class=controller_class,
        table_name=table_name,
        include_run_summaries=include_run_summaries,
        caller=message.caller,
    )
    answer = await knowledge.search(message.tenant_id, request)
    return await _ask(knowledge, lambda about: about.list_hits(answer, query))


async def _who_serves(knowledge: Knowledge, route: _Name) -> str:
    return await _ask(knowledge, lambda about: about.who_serves(route))


async def _what_touches(
    knowledge: Knowledge,
    table: _Name | None = None,
    symbol: _Name | None = None,
    path: _Name | None = None,
) -> str:
    names = _require_one(table=table, symbol=symbol, path=path)
    return await _ask(knowledge, lambda about: about.what_touches(**names))


async def _find_impact(
    knowledge: Knowledge, symbols: _Names | None = None, paths: _Names | None = None
) -> str:
    _require_one(symbols=symbols, paths=paths)
    return await _ask(
        knowledge, lambda about: about.impact_of(symbols=symbols or (), paths=paths or ())
    )


async def _find_tests(
    knowledge: Knowledge,
    symbols: _Names | None = None,
    paths: _Names | None = None,
    route: _Name | None = None,
) -> str:
    _require_one(symbols=symbols, paths=paths, route=route)
    return await _ask(
        knowledge,
        lambda about: about.tests_of(symbols=symbols or (), paths=paths or (), route=route),
    )


async def _outline(knowledge: Knowledge, path: _Name) -> str:
    return await _ask(knowledge, lambda about: about.outline(path))


async def _find_history(
    knowledge: Knowledge, symbol: _Name | None = None, path: _Name | None = None
) -> str:
    names = _require_one(symbol=symbol, path=path)
    return await _ask(knowledge, lambda about: about.history_of(**names))


async def _find_rules(knowledge: Knowledge, paths: _Names) -> str:
    return await _ask(knowledge, lambda about: about.rules_for(paths))


def _require_one(**arguments: _T) -> dict[str, _T]:
    """Return the arguments of a question, or raise InvalidRequest if all are missing."""
    if not any(arguments.values()):
        raise InvalidRequest(
            "all arguments are missing", hint=f"set one of: {', '.join(arguments)}"
        )
    return arguments


def _build_tool(name: str, description: str, function: ToolFunction) -> Tool:
    def bind(knowledge: Knowledge) -> ToolFunction:
        bound = partial(function, knowledge)
        bound.__name__ = name  # type: ignore[attr-defined]  # The SDK names the schema after it.
        return bound

    return Tool(name, description, bind, profiles=_PROFILES, read_only=True)


CODE_SEARCH = _build_tool(
    "code_search",
    "Search this repository: code, routes, tables, migrations, docs. Answers path:line. What is"
    " related to route_name, controller_class or table_name comes first.",
    _code_search,
)
WHO_SERVES = _build_tool(
    "who_serves",
    "A route by name (invoices.store), path, or METHOD /path: its controller, requests, models,"
    " tables, events.",
    _who_serves,
)
WHAT_TOUCHES = _build_tool(
    "what_touches",
    "Who uses, reads, writes or migrates a table, a symbol (Class, Class@method), or a file.",
    _what_touches,
)
IMPACT_OF = _build_tool(
    "impact_of",
    "All that depends on symbols or files, transitively: routes and tests first.",
    _find_impact,
)
TESTS_OF = _build_tool(
    "tests_of", "Tests of symbols, files or a route: by HTTP, calls, or name.", _find_tests
)
OUTLINE = _build_tool("outline", "The definitions of a file, with lines.", _outline)
HISTORY_OF = _build_tool(
    "history_of",
    "The commits and agents' runs that changed a symbol (its lines) or a file, newest first.",
    _find_history,
)
RULES_FOR = _build_tool(
    "rules_for",
    "Rules, decisions and known bugs that are about files: before editing.",
    _find_rules,
)
