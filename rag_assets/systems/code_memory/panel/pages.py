"""The panel's pages: a search with its chunks, a name with its relations, a file's definitions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from starlette.responses import Response

from rag_assets.common.errors import InvalidRequest
from rag_assets.panel.frame import PanelPage, SystemPanel, Visit
from rag_assets.retrieval.model import MAX_QUERY, Caller, SearchAnswer, SearchRequest
from rag_assets.systems.code_memory.catalog.found_relations import Direction
from rag_assets.systems.code_memory.outlines import shown_name
from rag_assets.systems.code_memory.panel.graph import picture_of
from rag_assets.systems.code_memory.retrieval.walk import Walk, Walker

_LONGEST: Final = 1_000
_MOST_STEPS: Final = 3
_DIRECTIONS: Final[dict[str, Direction]] = {"both": "both", "in": "in", "out": "out"}
_FILE: Final = "file:"
_T = TypeVar("_T")


async def search(visit: Visit) -> Response:
    """Show the chunks that answer a question, with links, and how they were found."""
    query = _given(visit, "q", MAX_QUERY + 1)
    found: SearchAnswer | None = None
    problem = ""
    if query.strip():
        try:
            request = SearchRequest.of(query=query, caller=_caller(visit))
            found = await visit.backend.retriever.search(visit.tenant_id, request)
        except InvalidRequest as error:
            problem = str(error)
    return visit.html(
        "search.html", query=query, found=found, problem=problem, shown_name=shown_name
    )


async def name(visit: Visit) -> Response:
    """Show a name, the graph around it, and the evidence of each relation."""
    wanted = _given(visit, "name")
    direction = _DIRECTIONS.get(_given(visit, "direction"), "both")
    depth = min(_MOST_STEPS, max(1, _number(_given(visit, "depth"))))
    walk = Walk()
    if wanted:
        walk = await _walk(visit, wanted, direction=direction, depth=depth)
    roots = walk.begun
    return visit.html(
        "name.html",
        name=wanted,
        direction=direction,
        depth=depth,
        steps=range(1, _MOST_STEPS + 1),
        walk=walk,
        roots=[one for one in walk.nodes if one.name in roots],
        picture=picture_of(walk, roots),
        shown_name=shown_name,
    )


async def file(visit: Visit) -> Response:
    """Show the definitions of a file, in the order of its lines, and their relations."""
    path = _given(visit, "path")
    definitions = await _read(
        visit, lambda walker, caller: walker.symbols(visit.tenant_id, caller, path=path)
    )
    walk = await _walk(visit, _FILE + path, direction="both", depth=1)
    definitions.sort(key=lambda one: (one.line_start or 0, one.name))
    return visit.html(
        "file.html", path=path, definitions=definitions, walk=walk, shown_name=shown_name
    )


async def _walk(visit: Visit, name: str, *, direction: Direction, depth: int) -> Walk:
    def walked(walker: Walker, caller: Caller) -> Walk:
        return walker.relations(visit.tenant_id, caller, name, direction=direction, depth=depth)

    return await _read(visit, walked)


async def _read(visit: Visit, work: Callable[[Walker, Caller], _T]) -> _T:
    """Run blocking work on the relations that the user may read."""
    backend = visit.backend
    walker = Walker(backend.catalog, backend.reader.policy)
    return await backend.run(
        visit.tenant_id, visit.session.name, partial(work, walker, _caller(visit))
    )


def _caller(visit: Visit) -> Caller:
    return Caller(principals=visit.session.principals, name=visit.session.name)


def _given(visit: Visit, name: str, most: int = _LONGEST) -> str:
    """Return a query parameter, cut to a reasonable length and without NUL characters."""
    return visit.request.query_params.get(name, "").replace("\x00", "")[:most]


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 2 else 1  # noqa: PLR2004


PANEL = SystemPanel(
    name="code-memory",
    path="code",
    package="rag_assets.systems.code_memory.panel",
    tabs={"": "Search", "/names": "Names"},
    pages=(
        PanelPage("", search),
        PanelPage("/names", name),
        PanelPage("/files", file),
    ),
)
