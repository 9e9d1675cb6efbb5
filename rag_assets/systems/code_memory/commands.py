"""The commands `rag-assets code …` and `rag-assets hook …`; command_line.py does their work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from rag_assets.cli.arguments import (
    AsOption,
    Json,
    RoleOption,
    TenantArgument,
    build_caller,
    expand_parameter,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_assets.search.model import Caller
    from rag_assets.systems.code_memory.answers import CodeAnswers

app = typer.Typer(help="Relations and symbols in a repository's code.", no_args_is_help=True)


class Output(NamedTuple):
    """The caller of a command, and how to print the result."""

    caller: Caller
    as_json: bool

    def print_answer(self, tenant: str, ask: Callable[[CodeAnswers], str]) -> None:
        """Print an answer about a tenant's repositories."""
        from rag_assets.systems.code_memory import command_line

        command_line.print_answer(tenant, ask, self)


def _build_output(
    principal: AsOption = None, role: RoleOption = None, json: Json = False
) -> Output:
    return Output(build_caller(principal, role), json)


def _register_command(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for a command of `app`, with options for the parameter `output`."""
    expand = expand_parameter(_build_output, "output")
    return lambda command: app.command(name)(expand(command))


_SymbolOption = Annotated[str | None, typer.Option("--symbol", help="A definition.")]
_PathOption = Annotated[str | None, typer.Option("--path", help="A file.")]
_SymbolsOption = Annotated[
    list[str] | None, typer.Option("--symbol", help="A definition; repeat for several.")
]
_PathsOption = Annotated[
    list[str] | None, typer.Option("--path", help="A file; repeat for several.")
]
_UsedName = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="A definition or a file; like --symbol.")
]
_UsedNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Definitions or files; like --symbol."),
]


@_register_command("relations")
def relations(
    tenant: TenantArgument,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A class, Class@method, function; or table:NAME, config:KEY, package:NAME.",
        ),
    ],
    kind: Annotated[
        list[str] | None, typer.Option("--kind", help="Follow these relations only.")
    ] = None,
    direction: Annotated[
        Literal["out", "in", "both"],
        typer.Option("--direction", help="From what it states, from what names it, or both."),
    ] = "both",
    depth: Annotated[int, typer.Option("--depth", min=1, max=8, help="Steps to go.")] = 1,
    *,
    output: Output,
) -> None:
    """Show the relations of a name, with their evidence."""
    from rag_assets.systems.code_memory import command_line

    command_line.show_relations(
        tenant, name, output, kinds=kind or (), direction=direction, depth=depth
    )


@_register_command("symbols")
def symbols(
    tenant: TenantArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A class, Class@method, function.")],
    *,
    output: Output,
) -> None:
    """Show where a name is defined."""
    from rag_assets.systems.code_memory import command_line

    command_line.show_symbols(tenant, name, output)


@_register_command("search")
def search(
    tenant: TenantArgument,
    question: Annotated[str, typer.Argument(metavar="QUESTION")],
    source_type: Annotated[
        list[str] | None, typer.Option("--source-type", help="Only chunks of this type.")
    ] = None,
    path: Annotated[str | None, typer.Option("--path", help="Only below this path.")] = None,
    *,
    output: Output,
) -> None:
    """Search a repository, as agents do."""
    from rag_assets.systems.code_memory import command_line

    command_line.print_hits(tenant, question, output, source_types=source_type, path=path)


@_register_command("outline")
def outline(
    tenant: TenantArgument,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file or a folder.")],
    *,
    output: Output,
) -> None:
    """Show the definitions of a file with their lines, or the files of a folder."""
    output.print_answer(tenant, lambda about: about.outline(path))


@_register_command("serves")
def serves(
    tenant: TenantArgument,
    route: Annotated[
        str, typer.Argument(metavar="ROUTE", help="A route's name, path, or METHOD /path.")
    ],
    *,
    output: Output,
) -> None:
    """Show what serves a route, and what it touches."""
    output.print_answer(tenant, lambda about: about.who_serves(route))


@_register_command("touches")
def touches(
    tenant: TenantArgument,
    name: _UsedName = None,
    table: Annotated[str | None, typer.Option("--table", help="A table.")] = None,
    symbol: _SymbolOption = None,
    path: _PathOption = None,
    *,
    output: Output,
) -> None:
    """Show who uses a table, a definition, or the definitions of a file."""
    symbol = name or symbol
    if not (table or symbol or path):
        raise typer.BadParameter("give the name of a definition or file, or set --table or --path")
    output.print_answer(
        tenant, lambda about: about.what_touches(table=table, symbol=symbol, path=path)
    )


@_register_command("impact")
def impact(
    tenant: TenantArgument,
    names: _UsedNames = None,
    symbol: _SymbolsOption = None,
    path: _PathsOption = None,
    *,
    output: Output,
) -> None:
    """Show everything that depends on definitions or files, step by step."""
    symbols = [*(names or ()), *(symbol or ())]
    if not (symbols or path):
        raise typer.BadParameter("give names of definitions or files, or set --path")
    output.print_answer(tenant, lambda about: about.impact_of(symbols=symbols, paths=path or ()))


@_register_command("tests")
def show_tests(
    tenant: TenantArgument,
    names: _UsedNames = None,
    symbol: _SymbolsOption = None,
    path: _PathsOption = None,
    route: Annotated[
        str | None, typer.Option("--route", help="A route's name, path, or METHOD /path.")
    ] = None,
    *,
    output: Output,
) -> None:
    """Show the tests of definitions, files or a route, and how each reaches it."""
    symbols = [*(names or ()), *(symbol or ())]
    if not (symbols or path or route):
        raise typer.BadParameter("give names of definitions or files, or set --route or --path")
    output.print_answer(
        tenant, lambda about: about.tests_of(symbols=symbols, paths=path or (), route=route)
    )


@_register_command("history")
def history(
    tenant: TenantArgument,
    name: _UsedName = None,
    symbol: _SymbolOption = None,
    path: _PathOption = None,
    *,
    output: Output,
) -> None:
    """Show the commits, and agents' runs, that changed a definition or a file."""
    symbol = name or symbol
    if not (symbol or path):
        raise typer.BadParameter("give the name of a definition or file, or set --path")
    output.print_answer(tenant, lambda about: about.history_of(symbol=symbol, path=path))


@_register_command("rules")
def rules(
    tenant: TenantArgument,
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files of a repository.")],
    *,
    output: Output,
) -> None:
    """Show the rules, decisions and known bugs that are about files."""
    output.print_answer(tenant, lambda about: about.rules_for(paths))


hook_app = typer.Typer(help="Git hooks that start a sync after each commit.", no_args_is_help=True)

_Repository = Annotated[
    Path, typer.Argument(metavar="REPO", help="Top folder of a worktree, or a bare repository.")
]


@hook_app.command("install")
def install_hook(tenant: TenantArgument, repository: _Repository, json: Json = False) -> None:
    """Install hooks that report a repository's commits, merges, checkouts and rewrites at once."""
    from rag_assets.systems.code_memory import command_line

    command_line.install_hook(tenant, repository, as_json=json)


@hook_app.command("remove")
def remove_hook(tenant: TenantArgument, repository: _Repository, json: Json = False) -> None:
    """Remove a tenant's part from a repository's hooks."""
    from rag_assets.systems.code_memory import command_line

    command_line.remove_hook(tenant, repository, as_json=json)
