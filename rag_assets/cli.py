"""The command line: a stable contract.

Every command takes --json, exits non-zero on failure, and answers bad input with one clear line
and a hint, never with a traceback. This module only declares arguments; commands/ does the work.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer
from click import ClickException
from click.exceptions import NoArgsIsHelpError

from rag_assets.errors import ConfigurationError, RagAssetsError

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ProviderArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="PROVIDER", help="openai, gemini or openai-compatible.")
]
TenantArgument: TypeAlias = Annotated[str, typer.Argument(metavar="TENANT", help="Its id.")]
ScopeArgument: TypeAlias = Annotated[str, typer.Argument(metavar="SCOPE", help="As documents say.")]
PrincipalsArgument: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="PRINCIPAL...", help="A user, a group, as they will ask.")
]

app = typer.Typer(
    name="rag-assets",
    help="Folders of documents into tenant-isolated Elasticsearch kNN indexes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
tenants_app = typer.Typer(help="Who is indexed, from where.", no_args_is_help=True)
app.add_typer(tenants_app, name="tenants")
keys_app = typer.Typer(help="Tenants' keys at their embedding providers.", no_args_is_help=True)
app.add_typer(keys_app, name="keys")
access_app = typer.Typer(help="Who may read which scope of a tenant.", no_args_is_help=True)
app.add_typer(access_app, name="access")


@app.command()
def up(
    json: Json = False,
    dagster: Annotated[
        bool, typer.Option(help="Also start Dagster's webserver and daemon.")
    ] = True,
) -> None:
    """Start the servers, and Dagster's UI and daemon."""
    from rag_assets.commands import stack

    stack.up(dagster=dagster, as_json=json)


@app.command()
def down(json: Json = False) -> None:
    """Stop everything that `up` started."""
    from rag_assets.commands import stack

    stack.down(as_json=json)


@app.command()
def status(json: Json = False) -> None:
    """Show what runs, and where."""
    from rag_assets.commands import stack

    stack.status(as_json=json)


@tenants_app.command("list")
def tenants_list(json: Json = False) -> None:
    """List the tenants."""
    from rag_assets.commands import tenants

    tenants.list_tenants(as_json=json)


@tenants_app.command("add")
def tenants_add(
    tenant: Annotated[str, typer.Argument(metavar="ID", help="Lower-case letters, digits, . _ -")],
    source: Annotated[list[Path], typer.Option(help="A folder to index; repeat for several.")],
    profile: Annotated[str, typer.Option(help="A named set of defaults.")] = "documents",
    organization: Annotated[str | None, typer.Option(help="Whose it is.")] = None,
    project: Annotated[str | None, typer.Option(help="Which project of theirs.")] = None,
    json: Json = False,
) -> None:
    """Add a tenant to tenants.yaml."""
    from rag_assets.commands import tenants

    given = {"organization": organization, "project": project}
    settings = {name: value for name, value in given.items() if value is not None}
    tenants.add(tenant, profile=profile, sources=source, settings=settings, as_json=json)


@tenants_app.command("disable")
def tenants_disable(tenant: TenantArgument, json: Json = False) -> None:
    """Stop indexing and answering for a tenant; keep its data."""
    from rag_assets.commands import tenants

    tenants.set_enabled(tenant, enabled=False, as_json=json)


@tenants_app.command("enable")
def tenants_enable(tenant: TenantArgument, json: Json = False) -> None:
    """Index and answer for a tenant again."""
    from rag_assets.commands import tenants

    tenants.set_enabled(tenant, enabled=True, as_json=json)


@tenants_app.command("remove")
def tenants_remove(
    tenant: TenantArgument,
    yes: Annotated[bool, typer.Option("--yes", help="It is meant.")] = False,
    json: Json = False,
) -> None:
    """Delete a tenant and everything that was indexed for it."""
    from rag_assets.commands import tenants

    tenants.remove(tenant, confirmed=yes, as_json=json)


@keys_app.command("set", context_settings={"allow_extra_args": True})
def keys_set(
    context: typer.Context, tenant: TenantArgument, provider: ProviderArgument, json: Json = False
) -> None:
    """Keep a tenant's key, encrypted; it is asked for, or read from standard input."""
    from rag_assets.commands import keys

    keys.require_no_argument(context.args)
    keys.set_key(tenant, provider, as_json=json)


@keys_app.command("list")
def keys_list(
    tenant: Annotated[str | None, typer.Argument(metavar="[TENANT]", help="Its id.")] = None,
    json: Json = False,
) -> None:
    """List the keys there are: their last four characters, when they were used, with what end."""
    from rag_assets.commands import keys

    keys.list_keys(tenant, as_json=json)


@keys_app.command("remove")
def keys_remove(tenant: TenantArgument, provider: ProviderArgument, json: Json = False) -> None:
    """Forget a tenant's key."""
    from rag_assets.commands import keys

    keys.remove_key(tenant, provider, as_json=json)


@keys_app.command("rotate")
def keys_rotate(json: Json = False) -> None:
    """Encrypt all stored keys with a new master key."""
    from rag_assets.commands import keys

    keys.rotate(as_json=json)


@app.command()
def plan(tenant: TenantArgument, json: Json = False) -> None:
    """Show what a sync would do and cost; change nothing."""
    from rag_assets.commands.plan import plan as run

    run(tenant, as_json=json)


@app.command()
def sync(
    tenants: Annotated[list[str] | None, typer.Argument(metavar="TENANT...")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every enabled tenant.")] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="First mend the index where it differs.")
    ] = False,
    allow_deletes: Annotated[
        bool, typer.Option("--allow-deletes", help="Delete documents even if many vanished.")
    ] = False,
    json: Json = False,
) -> None:
    """Bring the index in line with the sources."""
    from rag_assets.commands.sync import sync as run

    succeeded = run(
        tenants or [], every=every, repair=repair, allow_deletes=allow_deletes, as_json=json
    )
    raise typer.Exit(0 if succeeded else 1)


@app.command()
def check(tenant: TenantArgument, json: Json = False) -> None:
    """Run the asset checks of a tenant."""
    from rag_assets.commands.check import check as run

    raise typer.Exit(0 if run(tenant, as_json=json) else 1)


@app.command()
def search(
    tenant: TenantArgument,
    question: Annotated[str, typer.Argument(help="What to look for.")],
    top_k: Annotated[int | None, typer.Option(help="How many hits.")] = None,
    min_score: Annotated[float | None, typer.Option(help="Least cosine of a hit.")] = None,
    mode: Annotated[
        Literal["knn", "text", "hybrid"] | None, typer.Option(help="Vectors, words, or both.")
    ] = None,
    principal: Annotated[
        list[str] | None,
        typer.Option("--as", help="Who asks; repeat for groups. By default only public is found."),
    ] = None,
    path: Annotated[
        list[str] | None, typer.Option(help="Only what lies there, as in source/folder/.")
    ] = None,
    prefer: Annotated[list[str] | None, typer.Option(help="What lies there ranks higher.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only with this tag.")] = None,
    source_type: Annotated[list[str] | None, typer.Option(help="Only from such sources.")] = None,
    token_budget: Annotated[int | None, typer.Option(help="Tokens of all hits at most.")] = None,
    json: Json = False,
) -> None:
    """Ask a tenant's knowledge a question."""
    from rag_assets.commands.search import search as run
    from rag_assets.retrieval.model import SearchRequest

    request = SearchRequest.of(
        query=question,
        top_k=top_k,
        min_score=min_score,
        mode=mode,
        token_budget=token_budget,
        source_types=source_type,
        must_include_paths=prefer,
        filters={"paths": path or (), "tags": tag or ()},
        caller={"principals": principal or ()},
    )
    run(tenant, request, as_json=json)


@access_app.command("list")
def access_list(tenant: TenantArgument, json: Json = False) -> None:
    """Show who may read what."""
    from rag_assets.commands import access

    access.list_grants(tenant, as_json=json)


@access_app.command("grant")
def access_grant(
    tenant: TenantArgument,
    scope: ScopeArgument,
    principals: PrincipalsArgument,
    json: Json = False,
) -> None:
    """Let principals read what carries a scope; it holds with the next search."""
    from rag_assets.commands import access

    access.grant(tenant, scope, principals, as_json=json)


@access_app.command("revoke")
def access_revoke(
    tenant: TenantArgument,
    scope: ScopeArgument,
    principals: PrincipalsArgument,
    json: Json = False,
) -> None:
    """Take a scope away from principals; it holds with the next search."""
    from rag_assets.commands import access

    access.revoke(tenant, scope, principals, as_json=json)


@app.command()
def documents(tenant: TenantArgument, json: Json = False) -> None:
    """List a tenant's documents with status, chunks and error."""
    from rag_assets.commands.search import documents as run

    run(tenant, as_json=json)


@app.command()
def demo(json: Json = False) -> None:
    """Index the example handbook, check it, and ask it three questions."""
    from rag_assets.commands.demo import demo as run

    raise typer.Exit(0 if run(as_json=json) else 1)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    sys.exit(_run(given))


def _run(arguments: list[str]) -> int:
    from rag_assets.commands.output import print_error

    as_json = "--json" in arguments
    try:
        code = app(args=arguments, prog_name="rag-assets", standalone_mode=False)
    except RagAssetsError as error:
        print_error(error, as_json=as_json)
        return 1
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
        stopped = RagAssetsError("stopped", hint="run it again: it goes on where it stopped")
        print_error(stopped, as_json=as_json)
        return 130
    except Exception as error:
        if os.environ.get("RAG_ASSETS_DEBUG"):
            raise
        # Its message may quote a document or a key, so only its kind and place are shown.
        place = traceback.extract_tb(error.__traceback__)[-1]
        unexpected = RagAssetsError(
            f"unexpected {type(error).__name__} in {Path(place.filename).name}:{place.lineno}",
            hint="RAG_ASSETS_DEBUG=1 shows where it comes from; please report it",
        )
        print_error(unexpected, as_json=as_json)
        return 1
    return code if isinstance(code, int) else 0


def _message(error: ClickException) -> str:
    formatted = getattr(error, "format_message", None)
    return str(formatted() if callable(formatted) else error)


if __name__ == "__main__":
    main()
