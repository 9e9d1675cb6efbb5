"""Commands that print the same answers as the agents' tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from rag_assets.cli.commands.output import print_json, say
from rag_assets.cli.commands.session import Session, with_reading_session
from rag_assets.retrieval import Retriever
from rag_assets.retrieval.documents import DocumentReader
from rag_assets.retrieval.model import Caller, SearchRequest
from rag_assets.systems.code_memory.answers import CodeAnswers


@with_reading_session
def answer(
    session: Session,
    tenant: str,
    ask: Callable[[CodeAnswers], str],
    *,
    caller: Caller,
    as_json: bool,
) -> None:
    """Print an answer about a tenant's repositories."""
    _print(ask(_about(session, tenant, caller)), as_json=as_json)


@with_reading_session
def search(
    session: Session,
    tenant: str,
    question: str,
    *,
    source_types: Sequence[str] | None,
    path: str | None,
    caller: Caller,
    as_json: bool,
) -> None:
    """Print hits with their locations."""
    about = _about(session, tenant, caller)
    request = SearchRequest.of(
        query=question,
        source_types=source_types,
        filters={"paths": [path]} if path else None,
        caller=about.caller,
    )
    with closing(Retriever(session.catalog, session.store, session.embedders)) as retriever:
        found = retriever.search(tenant, request)
    _print(about.searched(found), as_json=as_json)


def _about(session: Session, tenant: str, caller: Caller) -> CodeAnswers:
    session.require_trusted_grants(caller.principals)
    record = session.active(tenant)
    reader = DocumentReader(session.catalog, session.store)
    return CodeAnswers(reader, session.embedders.tenant(record), caller, session.settings)


def _print(text: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"answer": text})
    else:
        say(text)
