"""The work of the commands `rag-assets code …` and `rag-assets hook …`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from rag_assets.cli.output import print_json, print_table, say, warn
from rag_assets.cli.session import Session, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.settings import Settings
from rag_assets.search import Retriever
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller, SearchRequest
from rag_assets.systems.code_memory.answers import CodeAnswers
from rag_assets.systems.code_memory.catalog.found_relations import Direction
from rag_assets.systems.code_memory.commands import Output
from rag_assets.systems.code_memory.hooks import ChangedHooks, install_hooks, remove_hooks
from rag_assets.systems.code_memory.retrieval.nodes import EVIDENCE_NAMES, Relation
from rag_assets.systems.code_memory.retrieval.walk import Walker
from rag_assets.systems.code_memory.sources.git import GitConfig
from rag_assets.tenants.model import Tenant

_COLUMNS = ("from", "relation", "to", "evidence")


@with_reading_session
def show_relations(
    session: Session,
    tenant: str,
    name: str,
    output: Output,
    *,
    kinds: Sequence[str],
    direction: Direction,
    depth: int,
) -> None:
    """Print the relations of a name."""
    session.require_trusted_grants(output.caller.principals)
    walk = Walker(session.catalog).walk_from_name(
        tenant, output.caller, name, kinds=kinds, direction=direction, depth=depth
    )
    if output.as_json:
        print_json(walk)
        return
    if not walk.nodes:
        say(f"Nothing that you may read is called {name!r}.")
        return
    print_table(_COLUMNS, [*map(_build_row, walk.relations)])
    if walk.uses:
        certain = sum(use.how != "possible" for use in walk.uses)
        say(f"Uses of the name ({certain} of them certain):")
        print_table(_COLUMNS, [*map(_build_row, walk.uses)])
    if not walk.complete:
        warn(f"not everything is shown: {walk.why}")


@with_reading_session
def show_symbols(session: Session, tenant: str, name: str, output: Output) -> None:
    """Print the definitions with a name."""
    session.require_trusted_grants(output.caller.principals)
    definitions = Walker(session.catalog).find_definitions(tenant, output.caller, name=name)
    if output.as_json:
        print_json({"symbols": definitions})
        return
    if not definitions:
        say(f"Nothing that you may read is called {name!r}.")
        return
    rows = [
        (n.name, n.source_type, f"{n.uri}:{n.line_start}" if n.uri else "") for n in definitions
    ]
    print_table(["symbol", "type", "place"], rows)


def _build_row(relation: Relation) -> tuple[str, str, str, str]:
    lines = f"{relation.uri}:{relation.line_start}"
    shown = f"{lines}  {relation.evidence}" if relation.evidence else lines
    by = EVIDENCE_NAMES.get(relation.how) or ("possible" if relation.how == "possible" else "")
    kind = f"{relation.kind} ({by})" if by else relation.kind
    return relation.source, kind, relation.target, shown


@with_reading_session
def print_answer(
    session: Session, tenant: str, ask: Callable[[CodeAnswers], str], output: Output
) -> None:
    """Print an answer about a tenant's repositories."""
    _print_text(ask(_create_answers(session, tenant, output.caller)), output)


@with_reading_session
def print_hits(
    session: Session,
    tenant: str,
    question: str,
    output: Output,
    *,
    source_types: Sequence[str] | None,
    path: str | None,
) -> None:
    """Search a tenant's repositories, and print hits with their locations."""
    about = _create_answers(session, tenant, output.caller)
    filters = {"paths": [path]} if path else None
    request = SearchRequest.of(
        query=question, source_types=source_types, filters=filters, caller=output.caller
    )
    with closing(Retriever(session.catalog, session.store, session.embedders)) as retriever:
        answer = retriever.search(tenant, request)
    _print_text(about.list_hits(answer, question), output)


def _create_answers(session: Session, tenant: str, caller: Caller) -> CodeAnswers:
    session.require_trusted_grants(caller.principals)
    record = session.get_active_tenant(tenant)
    reader = DocumentReader(session.catalog, session.store)
    return CodeAnswers(reader, session.embedders.tenant(record), caller, session.settings)


def _print_text(text: str, output: Output) -> None:
    if output.as_json:
        print_json({"answer": text})
    else:
        say(text)


@with_session
def install_hook(session: Session, tenant: str, repository: Path, *, as_json: bool) -> None:
    """Install a tenant's hooks in a repository that one of its sources reads."""
    record = session.catalog.tenants.get(tenant)
    repository_root = repository.expanduser().resolve()
    sources = Tenant.from_config(record.config).sources
    folders = (source.root for source in sources if isinstance(source, GitConfig))
    roots = {(session.settings.home / folder).resolve() for folder in folders}
    if repository_root not in roots:
        known = ", ".join(sorted(map(str, roots))) or "none"
        raise ConfigurationError(
            f"tenant {tenant!r} has no source of type git with the root {str(repository_root)!r}",
            hint=f"choose one of its repositories ({known}), or add this repository as a source",
        )
    _show_hooks(
        install_hooks(session.settings.local, tenant, repository_root), "installed", as_json=as_json
    )


def remove_hook(tenant: str, repository: Path, *, as_json: bool) -> None:
    """Remove a tenant's hooks from a repository, whether or not the tenant still exists."""
    Settings.from_environment()
    _show_hooks(remove_hooks(tenant, repository), "removed", as_json=as_json)


def _show_hooks(changed: ChangedHooks, action: str, *, as_json: bool) -> None:
    if as_json:
        shown = {"folder": str(changed.folder), "hooks": changed.hooks, "kept": changed.kept}
        print_json(shown)
        return
    if not changed.hooks:
        say(f"No hook in {changed.folder} had to be {action}.")
        return
    say(f"{action.capitalize()} in {changed.folder}: {', '.join(changed.hooks)}.")
    for name in changed.kept:
        say(f"The former {name} was kept next to the new hook, which runs it.")
