"""Implementation of the commands of `rag-assets code`."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.cli.commands.output import print_json, print_table, say, warn
from rag_assets.cli.commands.session import Session, with_reading_session
from rag_assets.retrieval.model import Caller
from rag_assets.systems.code_memory.catalog.found_relations import Direction
from rag_assets.systems.code_memory.retrieval.nodes import EVIDENCE_NAMES, Node, Relation
from rag_assets.systems.code_memory.retrieval.walk import Walker


@with_reading_session
def show_relations(
    session: Session,
    tenant: str,
    name: str,
    *,
    kinds: Sequence[str],
    direction: Direction,
    depth: int,
    caller: Caller,
    as_json: bool,
) -> None:
    """Print the relations of a name."""
    session.require_trusted_grants(caller.principals)
    walk = Walker(session.catalog).relations(
        tenant,
        caller,
        name,
        kinds=kinds,
        direction=direction,
        depth=depth,
    )
    if as_json:
        print_json(walk)
        return
    if not walk.nodes:
        say(f"Nothing that you may read is called {name!r}.")
        return
    print_table(["from", "relation", "to", "evidence"], [_row(one) for one in walk.relations])
    if walk.uses:
        say(
            f"Uses of the name ({sum(one.how != 'possible' for one in walk.uses)} of them certain):"
        )
        print_table(["from", "relation", "to", "evidence"], [_row(one) for one in walk.uses])
    if not walk.complete:
        warn(f"not everything is shown: {walk.why}")


@with_reading_session
def show_symbols(
    session: Session,
    tenant: str,
    *,
    name: str | None = None,
    path: str | None = None,
    caller: Caller,
    as_json: bool,
) -> None:
    """Print the definitions of a name, or of a document."""
    session.require_trusted_grants(caller.principals)
    found = Walker(session.catalog).symbols(tenant, caller, name=name, path=path)
    if as_json:
        print_json({"symbols": found})
        return
    if not found:
        say("Nothing that you may read is defined there." if path else "Nothing is called so.")
        return
    print_table(["symbol", "type", "place"], [(n.name, n.source_type, _place(n)) for n in found])


def _row(one: Relation) -> tuple[str, str, str, str]:
    lines = f"{one.uri}:{one.line_start}"
    shown = f"{lines}  {one.evidence}" if one.evidence else lines
    by = EVIDENCE_NAMES.get(one.how) or ("possible" if one.how == "possible" else "")
    kind = f"{one.kind} ({by})" if by else one.kind
    return one.source, kind, one.target, shown


def _place(node: Node) -> str:
    return f"{node.uri}:{node.line_start}" if node.uri else ""
