"""Commands for the installation's Elasticsearch: check the account, print roles, seal secrets."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated, Literal, TypeAlias

import typer

from rag_assets.cli.arguments import Json
from rag_assets.cli.output import print_json, print_table, say
from rag_assets.cli.session import Session, with_reading_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.runtime.elasticsearch_access import seal_secret

Purpose: TypeAlias = Literal["indexing", "searching"]

app = typer.Typer()


@app.command("check")
@with_reading_session
def check(
    session: Session,
    purpose: Annotated[
        Purpose, typer.Option("--for", help="Purpose of the account; indexing includes searching.")
    ] = "indexing",
    *,
    as_json: Json = False,
) -> bool:
    """Check version, licence, health, disks and privileges; exit code 1 if one prevents its use."""
    from rag_assets.storage.index.elasticsearch.server import check_elasticsearch

    connection = session.stack.elasticsearch_connection()
    purposes: list[Purpose] = ["indexing", "searching"] if purpose == "indexing" else [purpose]
    report = check_elasticsearch(connection, session.settings.index_prefix, purposes)
    if as_json:
        print_json(asdict(report))
        return not report.problems
    lacking = report.missing or {}
    print_table(
        ["", ""],
        [
            ("nodes", report.nodes),
            ("version", report.version or "not stated"),
            ("flavor", report.flavor),
            ("licence", report.licence or "not stated"),
            ("health", report.health or "not visible"),
            *(
                (f"privileges for {name}", "missing" if lacks else "complete")
                for name, lacks in lacking.items()
            ),
        ],
    )
    for line in report.problems:
        say(f"\nProblem: {line}")
    for line in report.warnings:
        say(f"\nWarning: {line}")
    return not report.problems


@app.command("role")
@with_reading_session
def print_role(
    session: Session, purpose: Annotated[Purpose, typer.Argument(help="Purpose of the role.")]
) -> None:
    """Print the smallest role as JSON, for PUT /_security/role/NAME or an API key."""
    from rag_assets.storage.index.elasticsearch.server import build_role

    say(json.dumps(build_role(purpose, session.settings.index_prefix), indent=2))


@app.command("seal")
@with_reading_session
def seal(session: Session) -> None:
    """Read an API key or a password from standard input, and print it sealed.

    Use the result as the value of RAG_ASSETS_ELASTICSEARCH_API_KEY or _PASSWORD, or as the content
    of their files.
    """
    secret = sys.stdin.read()
    if not secret.strip():
        raise ConfigurationError(
            "standard input contains no secret", hint="run `rag-assets elasticsearch seal < FILE`"
        )
    say(seal_secret(session.settings, secret.strip()))
