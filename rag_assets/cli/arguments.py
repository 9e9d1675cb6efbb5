"""Arguments and options that several commands share, such as the options of every search."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

if TYPE_CHECKING:
    from rag_assets.search.model import Caller, Role

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ProviderArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="PROVIDER", help="openai, gemini or openai-compatible.")
]
TenantArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="TENANT", help="Id of the tenant.")
]
ScopeArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="SCOPE", help="Access scope, as documents carry it.")
]
AsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="PRINCIPAL",
        help="Act as this user or group; repeat for groups. By default only public documents.",
    ),
]
RoleOption: TypeAlias = Annotated[
    Literal["admin", "member", "guest", "orchestrator", "writer"] | None,
    typer.Option("--role", help="Role of the token that --as stands for: by default member."),
]
PrincipalsArgument: TypeAlias = Annotated[
    list[str],
    typer.Argument(metavar="PRINCIPAL...", help="A user or a group, as requests name them."),
]

OrganizationArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="ORGANIZATION", help="Id of the organization.")
]

ProjectArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="PROJECT", help="Id of the project, the application's.")
]


def build_caller(principals: list[str] | None, role: Role | None) -> Caller:
    """Return the caller that `--as` and `--role` name."""
    from rag_assets.search.model import Caller

    return Caller.acting(principals or (), role)


def _question(
    question: Annotated[str, typer.Argument(help="The question.")],
    top_k: Annotated[int | None, typer.Option(help="Maximum number of hits.")] = None,
    min_score: Annotated[float | None, typer.Option(help="Minimum cosine of a hit.")] = None,
    mode: Annotated[
        Literal["knn", "text", "hybrid"] | None, typer.Option(help="Vectors, words, or both.")
    ] = None,
    principal: AsOption = None,
    role: RoleOption = None,
    rerank: Annotated[
        bool | None, typer.Option(help="Rerank the top hits with a cross-encoder.")
    ] = None,
    document: Annotated[
        list[str] | None, typer.Option(help="Only the document of this id.")
    ] = None,
    path: Annotated[
        list[str] | None, typer.Option(help="Only documents below this path, as in source/folder.")
    ] = None,
    prefer: Annotated[
        list[str] | None, typer.Option(help="Rank documents below this path higher.")
    ] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(metavar="PAGE", help="Workspaces: only this page and all below it."),
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only documents with this tag.")] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Only documents with this metadata."),
    ] = None,
    source_type: Annotated[
        list[str] | None, typer.Option(help="Only documents of this source type.")
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option(help="Only chunks in this language, as in de or python.")
    ] = None,
    after: Annotated[
        str | None, typer.Option(help="Only content modified on or after this date or time.")
    ] = None,
    before: Annotated[
        str | None, typer.Option(help="Only content modified before this date or time.")
    ] = None,
    token_budget: Annotated[
        int | None, typer.Option(help="Maximum number of tokens of all hits together.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Code memory: chat model that the hits are for.")
    ] = None,
    route: Annotated[
        str | None, typer.Option(help="Code memory: name or path of a route to start at.")
    ] = None,
    controller: Annotated[
        str | None, typer.Option(help="Code memory: a controller to start at.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Code memory: a table to start at.")] = None,
    runs: Annotated[
        bool, typer.Option(help="Code memory: changes and summaries of runs may be hits.")
    ] = True,
) -> dict[str, Any]:
    """Collect the fields of a request; None for an option that is left out."""
    return {
        "query": question,
        "top_k": top_k,
        "min_score": min_score,
        "mode": mode,
        "rerank": rerank,
        "token_budget": token_budget,
        "model": model,
        "route_name": route,
        "controller_class": controller,
        "table_name": table,
        "include_run_summaries": runs,
        "source_types": source_type,
        "must_include_paths": prefer,
        "filters": {
            "documents": document,
            "paths": path,
            "languages": language,
            "modified_after": after,
            "modified_before": before,
            "tags": tag,
            "metadata": _parse_metadata(metadata or ()),
            "within": within,
        },
        "caller": build_caller(principal, role),
    }


def _parse_metadata(given: Iterable[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    if not all(between for _, between, _ in pairs):
        raise typer.BadParameter("it must be KEY=VALUE", param_hint="'--metadata'")
    return {name: value for name, _, value in pairs}


def search_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace a command's parameter `fields` with the question and the options of a search."""
    declared = inspect.signature(_question, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True)

    @wraps(command)
    def run(**given: Any) -> None:
        fields = _question(**{name: given.pop(name) for name in declared})
        command(fields=fields, **given)

    taken = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, one in own.parameters.items()
        for parameter in (declared.values() if name == "fields" else (one,))
    ]
    # Typer reads the signature and the annotations.
    run.__signature__ = own.replace(parameters=taken)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in taken}
    return run
