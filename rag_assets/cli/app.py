"""The command-line application: the registry of all commands, and the handling of errors."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Collection, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final

import click
import typer
from click.exceptions import NoArgsIsHelpError
from typer.core import TyperGroup
from typer.main import get_command

from rag_assets.common.errors import ConfigurationError, RagAssetsError

_GC_THRESHOLDS = (50_000, 20, 50)
"""Thresholds of Python's garbage collector; see gc.set_threshold."""

COMMANDS: Final = {
    "up": ("servers", "Start Postgres, Elasticsearch, and Dagster's webserver and daemon."),
    "down": ("servers", "Stop everything that `up` started."),
    "status": (
        "servers",
        "Show the state and the address of every server, and problems that need attention.",
    ),
    "roles": (
        "servers",
        "Print the SQL that creates Postgres roles with fewer rights, for your own server.",
    ),
    "serve": ("serve", "Serve the HTTP API to callers with a token."),
    "plan": ("plan", "Show what a sync would do and cost; change nothing."),
    "sync": ("sync", "Bring the index in line with the sources."),
    "usage": ("plan", "Show usage and cost of embeddings and answers by day, provider and model."),
    "check": ("quality", "Run the asset checks of a tenant."),
    "eval": ("quality", "Measure how well a build answers a tenant's judged questions."),
    "documents": ("search", "List a tenant's documents with their status, chunks and errors."),
    "demo": ("demo", "Index the example handbook, check it, and search it with three questions."),
    "search": ("search", "Search a tenant's documents."),
    "answer": ("search", "Answer a question with a tenant's chat model, with citations."),
    "mcp": (
        "search",
        "Serve a tenant's documents to an agent over MCP on standard input and output.",
    ),
    "prune": (
        "retention",
        "Delete documents that are past the tenant's retention, from every store.",
    ),
    "purge": ("retention", "Delete documents from every store and every file, and prove it."),
    "compact": (
        "retention",
        "Remove deleted text from the files of lake and index, as the daemon does weekly.",
    ),
    "receipts": ("retention", "List permanent deletions with their time, person and rule."),
    "panel": ("serve", "Print a link that signs in to a tenant's panel once, within a minute."),
}
"""Commands without a group: the module in this package, and the first sentence of the help.

A module is imported only when one of its commands runs.
"""
GROUPS: Final = {
    "tenants": ("tenants", "app", "Tenants and the sources of their documents."),
    "projects": ("projects", "app", "Projects of organizations: tenants that applications create."),
    "organizations": (
        "projects",
        "organizations_app",
        "Organizations and the settings that all their projects share.",
    ),
    "generations": (
        "generations",
        "app",
        "Builds of a tenant's index: their states, and the serving build.",
    ),
    "keys": ("keys", "app", "Keys of tenants and organizations at model providers."),
    "access": ("access", "app", "Principals that may read a tenant's access scopes."),
    "tokens": ("access", "tokens_app", "Tokens with which applications authenticate over HTTP."),
    "judgements": (
        "judgements",
        "app",
        "Judged questions, which measure the quality of a tenant's searches.",
    ),
    "thresholds": ("thresholds", "app", "Cosine thresholds: measure, show and set them."),
    "uploads": ("uploads", "app", "Uploaded files of tenants."),
    "hold": (
        "retention",
        "holds_app",
        "Legal holds: documents that no deletion removes until the hold is lifted.",
    ),
    "audit": ("retention", "audit_app", "Archives for auditors."),
    "installation": (
        "installation",
        "app",
        "Identity of this installation: moves, copies, restores, and its clock.",
    ),
    "elasticsearch": (
        "elasticsearch",
        "app",
        "The installation's Elasticsearch: account, roles and sealed secrets.",
    ),
}
"""Groups of commands: the module, the name of its Typer application, and the help."""


class Commands(TyperGroup):
    """The commands of this package, followed by the commands of installed systems."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        help_texts = {name: help_text for name, (_, help_text) in COMMANDS.items()}
        help_texts |= {name: help_text for name, (*_, help_text) in GROUPS.items()}
        self.commands = {
            name: click.Command(name, help=help_text) for name, help_text in help_texts.items()
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands; the commands of systems come last."""
        from rag_assets.plugins.registry import installed_systems

        commands = super().list_commands(ctx)
        return [*commands, *installed_systems().parts("commands", reserved=commands)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command by name; None if it does not exist.

        Raises:
            ConfigurationError: the systems, or the command's module, cannot be loaded.
        """
        if cmd_name in COMMANDS:
            module = import_module(f"rag_assets.cli.{COMMANDS[cmd_name][0]}")
            return _build_command(module.app, cmd_name, name=None)
        if cmd_name in GROUPS:
            module_name, group, help_text = GROUPS[cmd_name]
            loaded = getattr(import_module(f"rag_assets.cli.{module_name}"), group)
            return _build_command(loaded, cmd_name, name=cmd_name, help=help_text)
        return _find_command_of_system(cmd_name, reserved=self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands; this imports only commands whose system has no help."""
        from rag_assets.plugins.registry import installed_systems

        names = self.list_commands(ctx)
        listed_commands = dict(self.commands)
        for installed in installed_systems():
            for name, help_text in installed.system.command_help.items():
                listed_commands[name] = click.Command(name, help=help_text)
        commands = [
            (name, listed_commands.get(name) or self.get_command(ctx, name)) for name in names
        ]
        width = formatter.width - 6 - max(map(len, names))
        rows = [
            (name, command.get_short_help_str(width))
            for name, command in commands
            if command is not None
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _find_command_of_system(cmd_name: str, reserved: Collection[str]) -> click.Command | None:
    from rag_assets.plugins.registry import installed_systems

    part = installed_systems().parts("commands", reserved=reserved).get(cmd_name)
    if part is None:
        return None
    loaded = part.load()
    if not isinstance(loaded, typer.Typer):
        raise ConfigurationError(
            f"command {cmd_name!r} of system {part.owner.name!r}: {part.reference} is of type"
            f" {type(loaded).__name__}",
            hint="it must be a typer.Typer",
        )
    return _build_command(loaded, cmd_name, name=cmd_name)


def _build_command(loaded: typer.Typer, cmd_name: str, **options: Any) -> click.Command:
    """Convert a Typer application to a command or group with help in this application's style."""
    if options.get("help"):
        options["no_args_is_help"] = True
    carrier_app = typer.Typer(add_completion=False, rich_markup_mode=None)
    carrier_app.add_typer(loaded, **options)
    carrier = get_command(carrier_app)
    assert isinstance(carrier, TyperGroup)  # noqa: S101 - an application with a group is a group
    return carrier.commands[cmd_name]


app = typer.Typer(
    name="rag-assets",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"rag-assets {version('rag-assets')}")
        raise typer.Exit


@app.callback()
def options(
    is_version_requested: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Index documents into tenant-isolated Elasticsearch kNN indexes."""


def run(arguments: Sequence[str]) -> int:
    """Run a command in this process, and return its exit code.

    A command that returns False has completed and found a problem; its exit code is 1.
    """
    # The imports create half a million objects: with the default thresholds, the garbage collector
    # took a third of a command's time.
    gc.set_threshold(*_GC_THRESHOLDS)
    from rag_assets.cli.output import print_error

    as_json = "--json" in arguments
    try:
        result = app(args=list(arguments), prog_name="rag-assets", standalone_mode=False)
    except RagAssetsError as error:
        print_error(error, as_json=as_json)
        return error.exit_status
    except NoArgsIsHelpError as error:
        sys.stdout.write(f"{error.message}\n")
        return 2
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "rag-assets"
        usage = ConfigurationError(error.format_message(), hint=f"see `{path} --help`")
        print_error(usage, as_json=as_json)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        stopped = RagAssetsError("the command was stopped", hint="run it again to continue")
        print_error(stopped, as_json=as_json)
        return 130
    except Exception as error:
        if isinstance(error, UnicodeEncodeError) and not _is_utf8(arguments):
            shown_error: RagAssetsError = ConfigurationError(
                "an argument of the command is not UTF-8",
                hint="use a terminal whose encoding is UTF-8, or convert the argument",
            )
        elif os.environ.get("RAG_ASSETS_DEBUG"):
            raise
        else:
            shown_error = _build_unexpected(error)
        print_error(shown_error, as_json=as_json)
        return 1
    return int(not result if isinstance(result, bool) else result or 0)


def _build_unexpected(error: Exception) -> RagAssetsError:
    """Return the error to show instead of one that no code has foreseen."""
    # The message may quote a document or a key, so only type and location are shown.
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return RagAssetsError(
        f"unexpected {type(error).__name__} in {Path(frame.filename).name}:{frame.lineno}",
        hint="set RAG_ASSETS_DEBUG=1 to see the traceback, and please report the error",
    )


def _is_utf8(arguments: Sequence[str]) -> bool:
    """Return whether all arguments are UTF-8; Python keeps other bytes as half surrogate pairs."""
    try:
        "".join(arguments).encode()
    except UnicodeEncodeError:
        return False
    return True
