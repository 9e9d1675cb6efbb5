"""languages: verifies that the embedder supports the scripts of the tenant's documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.common.hashing import sha256_hex
from rag_assets.ingest.parsing.languages import LANGUAGE_NAMES
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.languages import UnreadDocuments, describe_unread
from rag_assets.pipeline.slices import find_parsed_documents
from rag_assets.storage.lake.model import ChunkSetRow

SAMPLED_DOCUMENTS = 200
"""Number of documents in the sample."""
TOLERATED_SHARE = 0.05
"""Maximum share of unsupported documents with which the check passes."""


def build_verdict(embedder_id: str, by_language: Mapping[str, int], documents: int) -> Verdict:
    """Pass if the embedder supports nearly all documents.

    Args:
        by_language: number of unsupported documents by language.
        documents: number of documents in the sample.
    """
    unread = sum(by_language.values())
    notice = describe_unread(embedder_id, by_language, documents)
    return Verdict(
        passed=unread <= TOLERATED_SHARE * documents,
        description=notice or f"the embedder reads all of {documents:,} documents",
        compared=(Compared("documents that are read", documents, documents - unread),),
        columns=("language", "unread documents"),
        offenders=tuple(
            (LANGUAGE_NAMES.get(code, code) or "uncertain", count)
            for code, count in sorted(by_language.items())
        ),
        severity="WARN",
        mend="configure a different `embedder`; `rag-assets plan TENANT` shows what it costs",
    )


@tenant_check(
    "embeddings",
    "languages",
    (
        "The embedder reads the scripts of the tenant's documents. Texts in other scripts are "
        "split into single letters, so their vectors do not represent their meaning, and the check "
        "warns. If only the provider has the embedder's tokenizer, the check passes."
    ),
)
def languages_check(context: CheckContext) -> Verdict:
    """Count the documents in a sample that the embedder does not support, by language."""
    ctx = context.of_build
    unread = UnreadDocuments(ctx.embedder)
    for row in _sample_chunk_sets(ctx):
        unread.add(row.language, row.chunks)
    return build_verdict(ctx.embedder.embedder_id, unread.by_language, unread.documents)


def _sample_chunk_sets(ctx: TenantContext) -> Iterator[ChunkSetRow]:
    """Yield the chunk sets of a sample of documents, which is always the same."""
    documents = ctx.catalog.documents.all(ctx.ref.id)
    documents.sort(key=lambda document: sha256_hex(document.document_id))
    parsed = find_parsed_documents(ctx, documents[:SAMPLED_DOCUMENTS])
    rows = ctx.lake.chunk_sets({item.chunk_set_key for item in parsed})
    for item in parsed:
        if item.chunk_set_key in rows:
            yield rows[item.chunk_set_key]
