"""What each asset is, and what its metadata mean, as Markdown for its page in the UI."""

from __future__ import annotations

from collections.abc import Mapping

_RUN = "Numbers are of one run, unless they say otherwise; Plots shows them over time."


def _description(what: str, meanings: Mapping[str, str]) -> str:
    rows = "\n".join(f"| {name} | {meaning} |" for name, meaning in meanings.items())
    return f"{what}\n\n{_RUN}\n\n| metadata | meaning |\n| --- | --- |\n{rows}"


RAW_DOCUMENTS = _description(
    """Every document that the tenant's sources hold, as rows of the catalog.

Sources are listed, compared with what was known, and hashed where something may have changed.
Documents that vanished are marked deleted and left out of answers at once; when suspiciously
many vanish, nothing is deleted until a person allows it. The run's slice is chosen here.""",
    {
        "documents, added, changed, removed": "what the sources hold, and what is new of it",
        "touched": "listed otherwise, with the same content: nothing to do",
        "held": "vanished at once in suspicious number and kept: `sync --allow-deletes`",
        "pruned": "older than the tenant's retention",
        "failed": "cannot be read, now or ever; first failures says why",
        "slice": "documents that this run carries on; the rest waits for the next run",
    },
)

PARSED_TEXT = _description(
    """The text of documents, with every credential masked.

Blocks with heading path, place and offsets are kept in the lake under a hash of the content and
the parser. A document that cannot be parsed is quarantined with its reason; the others go on, and
its last good version stays searchable.""",
    {
        "parsed, reused": "contents parsed now; documents whose text was in the lake already",
        "failed": "documents quarantined now; failures says why, and each leads to its row",
        "pages, pages read by OCR": "pages, slides or sheets; those read from their picture",
        "masked": "credentials that were masked",
        "left out": "what could not be read of documents that are otherwise indexed",
        "by format": "seconds are those of parser processes, which work side by side",
    },
)

CHUNKS = _description(
    """Passages small enough to be embedded and returned on their own.

Each has heading path, place, character offsets and token count, and is kept in the lake under a
hash of the parsed text and the chunker's parameters. A chunk that touches a masked credential is
dropped, with a warning event.""",
    {
        "chunks, documents": "made now, and of how many documents",
        "reused": "documents whose chunks were in the lake already",
        "dropped_secrets": "chunks withheld because they touched a credential",
        "tokens per chunk": "cl100k tokens of the chunks made now",
        "first chunks": "their places; texts stay in the lake",
    },
)

EMBEDDINGS = _description(
    """One vector per distinct text and embedder, paid for once.

Vectors are kept in the lake as they come in. When the embedder fails, what is done is kept, the
documents concerned carry the reason, and the index still gets its removals.""",
    {
        "embedded, reused": "texts embedded now; texts whose vector was in the lake already",
        "remaining": "texts left for the next run, since a run embeds for 15 seconds",
        "failed": "documents quarantined because a text of theirs has no vector",
        "tokens, requests, retries": "what the provider counts; attempts, and those repeated",
        "cost in $": "of this run; missing where no price is known",
        "promised to batches in $": "what the batches handed over by this run will cost",
        "usage": "this run, today and this month, beside the tenant's caps on spending",
        "halted": "whether nothing can be embedded until a person acts or a cap is a new one",
        "outage, remedy": "why the embedder stopped answering, and what to do",
    },
)

EMBEDDING_COST = _description(
    """What a tenant spends on embeddings, reported once a day for all tenants by one run.

`rag-assets usage` shows the same on the command line, up to this minute.""",
    {
        "yesterday in $": "the last whole day; missing without a price. Plots compares tenants",
        "month to yesterday in $": "of the month that yesterday is in",
        "tokens, requests, retries": "of yesterday",
        "tokens without a known price": "whose cost is in no figure; embedder.price sets one",
        "31 days": "the tenant's cost of each of the last 31 days, without today",
        "by day": "the last seven days, today so far included",
        "by model": "the last 31 days by provider and model",
    },
)

SEARCH_INDEX = _description(
    """The entries that answers come from, exactly what the catalog says.

Removals go first, in every generation that is kept; then each complete document of the slice is
published, so that a search always finds its previous or its new version, whole. A new embedder or
chunker builds the next generation beside the one that serves, and replaces it when complete.""",
    {
        "what is indexed": "the tenant as it is now, with its index and alias",
        "failed documents": "everything in quarantine, whenever it failed; each leads to its row",
        "by format": "all documents of the tenant by status",
        "upserted, deleted": "entries written and deleted",
        "published, unchanged, removed documents": "of the slice, and of what vanished",
        "live entries": "entries that the generation should hold now",
        "pending": "documents that wait for a next run",
    },
)
