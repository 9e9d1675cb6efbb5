"""Judged questions: the passages that a tenant's searches should find."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer(
    help="Judged questions, which measure the quality of a tenant's searches.", no_args_is_help=True
)


@app.command("import")
def import_(
    tenant: TenantArgument,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="YAML files, folders of them, or BEIR folders (queries.jsonl and qrels).",
        ),
    ],
    split: Annotated[
        str | None, typer.Option(help="Part of a BEIR folder's qrels; by default test.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Remove all other judged questions.")
    ] = False,
    json: Json = False,
) -> None:
    """Add judged questions, or replace those of the same id; all of them or none."""
    from rag_assets.cli.commands import judgements

    judgements.import_files(tenant, paths, split=split, replace=replace, as_json=json)


@app.command("export")
def export(
    tenant: TenantArgument,
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="PATH",
            help="A YAML file, or a BEIR folder to make; by default YAML on standard output.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write a tenant's judged questions as they can be imported."""
    from rag_assets.cli.commands import judgements

    judgements.export(tenant, path, as_json=json)


@app.command("list")
def list_(tenant: TenantArgument, json: Json = False) -> None:
    """List a tenant's judged questions, and documents of theirs that are gone."""
    from rag_assets.cli.commands import judgements

    judgements.list_questions(tenant, as_json=json)


@app.command("propose")
def propose(
    tenant: TenantArgument,
    count: Annotated[
        int, typer.Option(min=0, max=10_000, help="Questions at most; 0 removes them.")
    ] = 50,
    json: Json = False,
) -> None:
    """Make synthetic questions from headings in place of former ones; they decide nothing."""
    from rag_assets.cli.commands import judgements

    judgements.propose(tenant, count, as_json=json)
