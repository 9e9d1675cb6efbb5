"""The application: all groups of commands, and the handling of their errors."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from click import ClickException
from click.exceptions import NoArgsIsHelpError

from rag_assets.cli import (
    access,
    audit,
    chain,
    elasticsearch,
    generations,
    holds,
    installation,
    judgements,
    keys,
    organizations,
    panel,
    projects,
    retention,
    search,
    servers,
    tenants,
    thresholds,
    tokens,
    uploads,
)
from rag_assets.cli.system_commands import SystemCommands
from rag_assets.common.errors import ConfigurationError, RagAssetsError

_GC_THRESHOLDS = (50_000, 20, 50)
"""Thresholds of Python's garbage collector; see gc.set_threshold."""

app = typer.Typer(
    name="rag-assets",
    cls=SystemCommands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for group in (servers, chain, search, retention, panel):
    app.add_typer(group.app)
app.add_typer(tenants.app, name="tenants")
app.add_typer(projects.app, name="projects")
app.add_typer(organizations.app, name="organizations")
app.add_typer(generations.app, name="generations")
app.add_typer(keys.app, name="keys")
app.add_typer(access.app, name="access")
app.add_typer(tokens.app, name="tokens")
app.add_typer(judgements.app, name="judgements")
app.add_typer(thresholds.app, name="thresholds")
app.add_typer(uploads.app, name="uploads")
app.add_typer(holds.app, name="hold")
app.add_typer(audit.app, name="audit")
app.add_typer(installation.app, name="installation")
app.add_typer(elasticsearch.app, name="elasticsearch")


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"rag-assets {version('rag-assets')}")
        raise typer.Exit


@app.callback()
def options(
    is_version_asked: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Index documents into tenant-isolated Elasticsearch kNN indexes."""


def run(arguments: Sequence[str]) -> int:
    """Run a command in this process, and return its exit code."""
    # The imports create half a million objects. With Python's default thresholds, the garbage
    # collector took a third of a command's time.
    gc.set_threshold(*_GC_THRESHOLDS)
    from rag_assets.cli.commands.output import print_error

    as_json = "--json" in arguments
    try:
        code = app(args=list(arguments), prog_name="rag-assets", standalone_mode=False)
    except RagAssetsError as error:
        print_error(error, as_json=as_json)
        return error.exit_status
    except NoArgsIsHelpError as error:
        sys.stdout.write(f"{error.message}\n")
        return 2
    except ClickException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "rag-assets"
        usage = ConfigurationError(_message(error), hint=f"see `{path} --help`")
        print_error(usage, as_json=as_json)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        stopped = RagAssetsError(
            "stopped", hint="run the command again; it continues where it stopped"
        )
        print_error(stopped, as_json=as_json)
        return 130
    except Exception as error:
        if os.environ.get("RAG_ASSETS_DEBUG"):
            raise
        # The error's message may quote a document or a key, so only its type and its location in
        # the code are shown.
        place = traceback.extract_tb(error.__traceback__)[-1]
        unexpected = RagAssetsError(
            f"unexpected {type(error).__name__} in {Path(place.filename).name}:{place.lineno}",
            hint="set RAG_ASSETS_DEBUG=1 to see the traceback, and please report the error",
        )
        print_error(unexpected, as_json=as_json)
        return 1
    return code if isinstance(code, int) else 0


def _message(error: ClickException) -> str:
    formatted = getattr(error, "format_message", None)
    return str(formatted() if callable(formatted) else error)
