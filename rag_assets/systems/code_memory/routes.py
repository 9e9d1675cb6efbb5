"""The endpoints of code memory, below /api/projects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial
from typing import Annotated, Self, TypeVar

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, model_validator

from rag_assets.api.guard import Guarded
from rag_assets.api.problems import document_problems
from rag_assets.systems.code_memory.access import ProjectDependency, ProjectRequest
from rag_assets.systems.code_memory.answers import CodeAnswers
from rag_assets.systems.code_memory.catalog.found_relations import Direction
from rag_assets.systems.code_memory.retrieval.nodes import Node, Relation
from rag_assets.systems.code_memory.retrieval.walk import MAX_STEPS, Walker, WalkResult
from rag_assets.tenants.model import Tenant

_REFUSED = document_problems(401, 403, 404, 408, 409, 422, 429, 500, 503)
_T = TypeVar("_T")

_Text = Annotated[str, Field(min_length=1, max_length=1_000, pattern=r"^[^\x00]+$")]

router = APIRouter(
    prefix="/api/projects", tags=["code memory"], responses=_REFUSED, route_class=Guarded
)


@dataclass(frozen=True, slots=True)
class CodeNode:
    """A definition, or another node that relations name.

    Attributes:
        name: qualified name; with a prefix if it is not a definition: `table:invoices`.
        source_type: type of the node; "code" if the type is unknown.
        repository: source of the node.
        path: path of the defining document, as hits name it; None if the node is not a definition.
        line_start, line_end: lines of the definition in that document.
        content_hash: hash of the embedded text; None if the node has no separate chunk.
    """

    name: str
    source_type: str
    repository: str
    path: str | None
    line_start: int | None
    line_end: int | None
    content_hash: str | None


@dataclass(frozen=True, slots=True)
class CodeEdge:
    """A relation between two nodes of the same repository, with its evidence.

    Attributes:
        kind: kind of the relation.
        source, target: names of the nodes.
        how: "stated", "convention", "inferred", or "scip" if a SCIP index resolves it.
        confidence: 0 to 1.
        path, line_start, line_end: location of the evidence.
        evidence: text of the evidence, at most 200 characters.
    """

    kind: str
    source: str
    target: str
    how: str
    confidence: float
    path: str
    line_start: int
    line_end: int
    evidence: str


@dataclass(frozen=True, slots=True)
class CodeRelations:
    """The relations of a name.

    Attributes:
        complete: whether the result is complete.
        why: why the result is incomplete; None if it is complete.
        uses: uses of the name found by a search for it: first certain uses, whose `how` is "name"
            or "scip", then possible uses, whose `how` is "possible" and whose `confidence` is one
            candidate's share.
    """

    nodes: tuple[CodeNode, ...]
    edges: tuple[CodeEdge, ...]
    complete: bool
    why: str | None
    uses: tuple[CodeEdge, ...] = ()


@dataclass(frozen=True, slots=True)
class CodeSymbols:
    """Definitions of a name, or of a document."""

    symbols: tuple[CodeNode, ...]


@dataclass(frozen=True, slots=True)
class CodeAnswer:
    """An answer about a repository, in the text that agents get.

    Attributes:
        answer: lines of text, with each place as `path:line`; the last lines name what may be
            missing.
    """

    answer: str


class _NonEmptyQuery(BaseModel):
    """A question with at least one parameter."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="after")
    def _require_parameter(self) -> Self:
        if not any(dict(self).values()):
            raise ValueError(f"set at least one of: {', '.join(type(self).model_fields)}")
        return self


class RelationsQuery(_NonEmptyQuery):
    """A question for the relations of a name.

    Attributes:
        name: a class, `Class@method`, a function; or `table:NAME`, `config:KEY`, `package:NAME`.
        kind: kinds of relations to follow; empty: all.
        direction: relations from the name (out), to the name (in), or both.
    """

    name: _Text
    kind: Annotated[tuple[_Text, ...], Field(max_length=50)] = ()
    direction: Direction = "both"
    depth: Annotated[int, Field(ge=1, le=MAX_STEPS)] = 1


class DefinitionsQuery(_NonEmptyQuery):
    """A question about classes, `Class@method`s, functions and files; see FileQuery."""

    symbol: Annotated[tuple[_Text, ...], Field(max_length=20)] = ()
    path: Annotated[tuple[_Text, ...], Field(max_length=20)] = ()


class TestsQuery(DefinitionsQuery):
    """A question for tests of definitions, files or a route; see RouteQuery."""

    route: _Text | None = None


class HistoryQuery(_NonEmptyQuery):
    """A question for the changes of a definition or a file; see DefinitionsQuery."""

    symbol: _Text | None = None
    path: _Text | None = None


class UsersQuery(HistoryQuery):
    """A question for the users of a definition, of a file, or of a table or its model."""

    table: _Text | None = None


class RouteQuery(_NonEmptyQuery):
    """A question about a route: by name, by path, or as METHOD /path."""

    route: _Text


class FileQuery(_NonEmptyQuery):
    """A question about a file or a folder, by a path as hits show it, or within its repository."""

    path: _Text


class FilesQuery(_NonEmptyQuery):
    """A question about files, each with a path as in FileQuery."""

    path: Annotated[tuple[_Text, ...], Field(min_length=1, max_length=20)]


class SymbolsQuery(_NonEmptyQuery):
    """A question for definitions: by a name as in RelationsQuery, of a document, or both."""

    name: _Text | None = None
    path: _Text | None = None


async def _walk(project: ProjectRequest, work: Callable[[Walker], _T]) -> _T:
    """Return the result of blocking work on the relations that the caller may read."""
    walker = Walker(project.backend.catalog, project.backend.reader.policy)
    return await project.read(partial(work, walker))


async def _answer(project: ProjectRequest, ask: Callable[[CodeAnswers], str]) -> CodeAnswer:
    """Return an answer of CodeAnswers, with the same text that agents get from the tools."""
    reader, settings = project.backend.reader, project.backend.embedders.settings

    def work() -> str:
        tenant = Tenant.from_config(project.record().config)
        return ask(CodeAnswers(reader, tenant, project.identity.caller, settings))

    return CodeAnswer(await project.read(work))


@router.get("/{project_id}/relations")
async def relations(
    project: ProjectDependency, query: Annotated[RelationsQuery, Query()]
) -> CodeRelations:
    """Return the relations of a name in the repositories of a project, with their evidence."""

    def walk(walker: Walker) -> WalkResult:
        return walker.walk_from_name(
            *(project.tenant_id, project.identity.caller, query.name),
            kinds=query.kind,
            direction=query.direction,
            depth=query.depth,
        )

    result = await _walk(project, walk)
    return CodeRelations(
        tuple(map(_build_node, result.nodes)),
        tuple(map(_build_edge, result.relations)),
        result.complete,
        result.why,
        tuple(map(_build_edge, result.uses)),
    )


@router.get("/{project_id}/symbols")
async def symbols(
    project: ProjectDependency, query: Annotated[SymbolsQuery, Query()]
) -> CodeSymbols:
    """Return the definitions of a name, or of a document, in the repositories of a project."""

    def find(walker: Walker) -> list[Node]:
        caller = project.identity.caller
        return walker.find_definitions(project.tenant_id, caller, name=query.name, path=query.path)

    return CodeSymbols(tuple(map(_build_node, await _walk(project, find))))


@router.get("/{project_id}/who-serves")
async def who_serves(
    project: ProjectDependency, query: Annotated[RouteQuery, Query()]
) -> CodeAnswer:
    """Show what serves a route, and what that touches."""
    return await _answer(project, lambda about: about.who_serves(query.route))


@router.get("/{project_id}/what-touches")
async def what_touches(
    project: ProjectDependency, query: Annotated[UsersQuery, Query()]
) -> CodeAnswer:
    """List who uses, reads, writes or migrates a table, a definition, or a file's definitions."""
    return await _answer(project, lambda about: about.what_touches(**dict(query)))


@router.get("/{project_id}/impact-of")
async def impact_of(
    project: ProjectDependency, query: Annotated[DefinitionsQuery, Query()]
) -> CodeAnswer:
    """List everything that depends on definitions or files, step by step."""
    return await _answer(
        project, lambda about: about.impact_of(symbols=query.symbol, paths=query.path)
    )


@router.get("/{project_id}/tests-of")
async def tests_of(project: ProjectDependency, query: Annotated[TestsQuery, Query()]) -> CodeAnswer:
    """List the tests of definitions, files or a route, and how each reaches it."""
    return await _answer(
        project,
        lambda about: about.tests_of(symbols=query.symbol, paths=query.path, route=query.route),
    )


@router.get("/{project_id}/outline")
async def outline(project: ProjectDependency, query: Annotated[FileQuery, Query()]) -> CodeAnswer:
    """List the definitions of a file with their lines, or the files of a folder."""
    return await _answer(project, lambda about: about.outline(query.path))


@router.get("/{project_id}/history-of")
async def history_of(
    project: ProjectDependency, query: Annotated[HistoryQuery, Query()]
) -> CodeAnswer:
    """List the commits and agents' runs that changed a definition or a file, newest first."""
    return await _answer(project, lambda about: about.history_of(**dict(query)))


@router.get("/{project_id}/rules-for")
async def rules_for(
    project: ProjectDependency, query: Annotated[FilesQuery, Query()]
) -> CodeAnswer:
    """List the rules, decisions and known bugs that are about files."""
    return await _answer(project, lambda about: about.rules_for(query.path))


def _build_node(node: Node) -> CodeNode:
    lines = node.line_start, node.line_end
    return CodeNode(
        node.name, node.source_type, node.repository, node.uri, *lines, node.content_hash
    )


def _build_edge(relation: Relation) -> CodeEdge:
    return CodeEdge(*astuple(relation))
