"""Former versions: entries in a new build for documents whose present content cannot be indexed.

If the new content of a document fails, its former version keeps answering in the serving build. A
new build takes over that version, made again from the text in the lake. Otherwise a change of model
would remove from the answers a document whose replacement had failed.
"""

from __future__ import annotations

from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import ParsedDocument, Work, parsed_documents


def documents_of(ctx: TenantContext, work: Work) -> list[ParsedDocument]:
    """Return the slice's documents that could be parsed, then former versions of the others."""
    return parsed_documents(ctx, work.documents) + _former_documents(ctx, work)


def give_up(ctx: TenantContext, work: Work, document_id: str, document_key: str) -> None:
    """Record that the slice's build cannot hold a former version."""
    ctx.guard()
    ctx.catalog.former_versions.give_up(ctx.ref, work.generation.number, document_id, document_key)


def _former_documents(ctx: TenantContext, work: Work) -> list[ParsedDocument]:
    if work.generation.state == "SERVING" or not work.documents:
        return []
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    if serving is None:
        return []
    by_id = {document.document_id: document for document in work.documents}
    number = work.generation.number
    former = ctx.catalog.former_versions.find(ctx.ref.id, serving.number, number, list(by_id))
    heads = ctx.lake.parsed_heads({version.parse_key for version in former})
    found = []
    for version in former:
        head = heads.get(version.parse_key)
        if head is None:
            give_up(ctx, work, version.document_id, version.document_key)
            continue
        document = by_id[version.document_id]
        key = ctx.chunk_set_key(document, head.digest, head.media_type)
        found.append(
            ParsedDocument(document, head.title, head.media_type, version.parse_key, key, version)
        )
    return found
