"""search and documents: search a tenant, and list its documents."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from rag_assets.cli.commands.hits import print_hit
from rag_assets.cli.commands.output import print_json, print_table, say, warn
from rag_assets.cli.commands.session import Session, with_reading_session
from rag_assets.common.formatting import counted
from rag_assets.models.embedding.coverage import MULTILINGUAL_EMBEDDER
from rag_assets.search import Retriever
from rag_assets.search.model import SearchAnswer, SearchRequest


@with_reading_session
def search(session: Session, tenant_id: str, request: SearchRequest, *, as_json: bool) -> None:
    """Search a tenant and print the hits."""
    session.require_trusted_grants(request.caller.principals)
    with closing(Retriever(session.catalog, session.store, session.embedders)) as retriever:
        _print_answer(tenant_id, retriever.search(tenant_id, request), as_json=as_json)


def _print_answer(tenant_id: str, answer: SearchAnswer, *, as_json: bool) -> None:
    if answer.disabled:
        warn(
            f"tenant {tenant_id} is disabled: run `rag-assets tenants enable {tenant_id}` to "
            "enable it"
        )
    for step, fault in (answer.debug.degraded if answer.debug else {}).items():
        if step == "index-incomplete":
            repair = f"rag-assets sync {tenant_id} --repair"
            warn(f"hits may be missing: the index is incomplete ({fault}); {repair} restores it")
        elif step == "vectors":
            warn(
                "hits were ranked by words alone, because the embedder does not support "
                f"the script of this question; {MULTILINGUAL_EMBEDDER} supports most "
                "scripts"
            )
        else:
            warn(f"the search continued without {step}: {fault}")
    for unmatched in answer.warnings:
        warn(f"{unmatched.field}: {unmatched.problem}")
    if as_json:
        print_json(answer)
        return
    if not answer.hits:
        say("Nothing found.")
    for hit in answer.hits:
        print_hit(hit)


@with_reading_session
def documents(session: Session, tenant_id: str, *, as_json: bool) -> None:
    """List a tenant's documents."""
    session.catalog.tenants.get(tenant_id)
    rows = [
        {
            "document_id": document.document_id,
            "uri": document.uri,
            "title": document.title,
            "status": document.status,
            "chunks": document.chunk_count,
            "dropped_secrets": document.dropped_count,
            "error": document.error_message,
            "updated_at": document.updated_at,
        }
        for document in session.catalog.documents.all(tenant_id)
    ]
    held: list[dict[str, Any]] = [
        {"source": sync.source, "documents": sync.held_deletions, "reason": sync.held_reason}
        for sync in session.catalog.syncs.list_held(tenant_id)
    ]
    if as_json:
        print_json({"documents": rows, "held": held})
        return
    print_table(
        ["document", "status", "chunks", "dropped", "error"],
        [(r["uri"], r["status"], r["chunks"], r["dropped_secrets"], r["error"]) for r in rows],
    )
    for of in held:
        warn(
            f"{counted(of['documents'], 'document')} of source {of['source']} disappeared, and the"
            f" deletion is held back: {of['reason']}. To delete:"
            f" rag-assets sync {tenant_id} --allow-deletes"
        )
