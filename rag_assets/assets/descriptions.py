"""Descriptions of the assets, their metadata and the columns of their tables, for the UI."""

from collections.abc import Mapping

import dagster as dg


def _schema(columns: Mapping[str, tuple[str, str]]) -> dg.TableSchema:
    return dg.TableSchema(
        [dg.TableColumn(name, kind, text) for name, (kind, text) in columns.items()]
    )


DOCUMENT_COLUMNS = _schema(
    {
        "document_id": ("string", "hash of the source's name and the path in it"),
        "uri": ("string", "printable name: source and path"),
        "status": ("string", "PROCESSING, READY, FAILED or DELETED"),
        "error_message": ("string", "why it FAILED"),
        "media_type": ("string", "by its name"),
        "content_sha256": ("string", "hash of its bytes; none while it cannot be read"),
        "document_key": ("string", "hash of everything that is known before parsing"),
        "chunk_count": ("int", "entries of its searchable version"),
        "dropped_count": ("int", "chunks dropped because of a credential"),
        "access_scope": ("string", "who may read it"),
        "changed_at": ("timestamp", "when a listing last found its content changed"),
        "modified_at": ("timestamp", "when the content was made, according to its source"),
    }
)
PARSED_COLUMNS = _schema(
    {
        "key": ("string", "parse_key: hash of content, type, parsers and secret rules"),
        "digest": ("string", "hash of the output; the next key derives from it"),
        "text": ("string", "with every credential masked, without changing offsets"),
        "blocks": ("list", "kind, offsets, heading path, page, slide, sheet or row"),
        "title": ("string", "found in the content, never derived from the file's name"),
        "media_type": ("string", "detected from the content"),
        "pages": ("int", "pages, slides or sheets"),
        "ocr_pages": ("int", "pages read by OCR"),
        "masked": ("list", "place of each credential, and the rule that found it"),
        "created_at": ("timestamp", "when it was computed"),
    }
)
CHUNK_COLUMNS = _schema(
    {
        "key": (
            "string",
            "chunk_set_key: hash of parsed digest, type, detector and chunker",
        ),
        "digest": ("string", "hash of the chunks; the index key derives from it"),
        "chunks": ("list", "text, offsets, heading path, place and token count of each"),
        "text_sha256": ("list", "hash of each embedded text, in their order"),
        "contexts": ("list", "lines from above each chunk that begins within a block"),
        "dropped": ("list", "place and rules of dropped chunks, never their text"),
        "language": ("string", "of the document; none where that is not sure"),
        "created_at": ("timestamp", "when it was computed"),
    }
)
EMBEDDING_COLUMNS = _schema(
    {
        "text_sha256": ("string", "hash of the embedded text: title, headings, context, passage"),
        "vector": ("binary", "little-endian float32, of length 1"),
        "created_at": ("timestamp", "when it was stored"),
    }
)
ENTRY_COLUMNS = _schema(
    {
        "tenant": ("keyword", "the tenant; also the routing"),
        "generation": ("integer", "generation of the tenant"),
        "document_id": ("keyword", "which document"),
        "index_key": (
            "keyword",
            "version of the document; only the one in the catalog is returned",
        ),
        "ordinal": ("integer", "which chunk"),
        "uri": ("keyword", "source and path of the document"),
        "title": ("text", "of the document"),
        "heading_path": ("text", "headings above the passage"),
        "context": ("text", "of a passage that begins within a table, a list or code"),
        "language": ("keyword", "of the document; none where that is not sure"),
        "modified_at": ("date", "when its current content was made"),
        "text": ("text", "the passage"),
        "access_scope": ("keyword", "who may read it"),
        "vector": ("dense_vector", "cosine; not in _source"),
    }
)


_RUN = "Numbers count one run unless stated otherwise; Plots shows them over time."


def described(what: str, meanings: Mapping[str, str]) -> str:
    """Return the description of an asset, with the meaning of its metadata."""
    rows = "\n".join(f"| {name} | {meaning} |" for name, meaning in meanings.items())
    return f"{what}\n\n{_RUN}\n\n| metadata | meaning |\n| --- | --- |\n{rows}"


RAW_DOCUMENTS = described(
    """Every document that the tenant's sources hold, as rows of the catalog.

Sources are listed, compared with what was known, and hashed where something may have changed.
Documents that vanished are marked deleted and left out of answers at once; when suspiciously
many vanish, nothing is deleted until a person allows it. The run's slice is chosen here.""",
    {
        "documents, added, changed, removed": "the sources' documents, and the changes among them",
        "moved": "of those removed, the ones whose content lies at another place now",
        "touched": "other listing facts, same content: nothing to do",
        "held": "disappeared, and kept: `sync --allow-deletes` deletes them; the log says why",
        "pruned": "older than the tenant's retention",
        "failed": "cannot be read, now or permanently; first failures shows why",
        "left out": "files that stay out by a rule of their source: vendored ones, say",
        "slice": "documents that this run processes; the rest waits for the next run",
    },
)

PARSED_TEXT = described(
    """The text of documents, with every credential masked.

Blocks with heading path, place and offsets are kept in the lake under a hash of the content and
the parser. A document that cannot be parsed is quarantined with its reason; the others go on, and
its last good version stays searchable.""",
    {
        "parsed, reused": "contents parsed now; documents whose text was in the lake already",
        "failed": "documents quarantined now; failures has their reasons, with links to their rows",
        "pages, pages read by OCR": "pages, slides or sheets; those read by OCR",
        "masked": "credentials that were masked",
        "left out": "unread parts of documents that are otherwise indexed",
        "by format": "seconds of parser processes, which run in parallel",
    },
)

CHUNKS = described(
    """Passages small enough to be embedded and returned on their own.

Each has heading path, place, character offsets and token count, and is kept in the lake under a
hash of the parsed text and the chunker's parameters. Credentials in it are masked, with an event
that names document and rule. A chunk is dropped if nothing else is left of it, or where a system
demands it.""",
    {
        "chunks, documents": "made now, and of how many documents",
        "reused": "documents whose chunks were in the lake already",
        "masked_secrets": "credentials masked in the documents chunked now",
        "dropped_secrets": "chunks with nothing but a credential, or that a system demands to drop",
        "credentials": "documents, rules and lines of masked credentials; never their text",
        "tokens per chunk": "cl100k tokens of the chunks made now",
        "first chunks": "their places; texts stay in the lake",
    },
)

EMBEDDINGS = described(
    """One vector per distinct text and embedder, computed once.

Vectors are stored in the lake as they arrive. When the embedder fails, finished vectors stay, the
documents concerned are quarantined with the reason, and removals still reach the index.""",
    {
        "embedded, reused": "texts embedded now; texts whose vector was in the lake already",
        "remaining": "texts left for the next run, since a run embeds for 15 seconds",
        "failed": "documents quarantined because a text of theirs has no vector",
        "tokens, requests, retries": "the provider's count; attempts, and repeated ones",
        "cost in $": "of this run; missing where no price is known",
        "promised to batches in $": "cost of the batches submitted by this run",
        "usage": "this run, today and this month, beside the tenant's caps on spending",
        "halted": "whether embedding stops until a person acts or a spending cap renews",
        "outage, remedy": "why the embedder stopped answering, and what to do",
    },
)

EMBEDDING_COST = described(
    """What a tenant spends on embeddings, reported once a day for all tenants by one run.

`rag-assets usage` shows the same on the command line, up to the present.""",
    {
        "yesterday in $": "the last whole day; missing without a price. Plots compares tenants",
        "month to yesterday in $": "of the month that yesterday is in",
        "tokens, requests, retries": "of yesterday",
        "tokens without a known price": "not included in any cost; embedder.price sets a price",
        "31 days": "the tenant's cost of each of the last 31 days, without today",
        "by day": "the last seven days, today so far included",
        "by model": "the last 31 days by provider and model",
    },
)

SEARCH_INDEX = described(
    """The entries that searches return, equal to the catalog.

Removals go first, in every generation that is kept; then each complete document of the slice is
published, so that a search always finds its previous or its new version, whole. A new embedder or
chunker builds the next generation beside the one that serves, and replaces it when complete.""",
    {
        "what is indexed": "the tenant as it is now, with its index and alias",
        "failed documents": "everything in quarantine, whenever it failed; each leads to its row",
        "by format": "all documents of the tenant by status",
        "upserted, deleted": "entries written and deleted",
        "published, unchanged, removed documents": "of the slice, and of what vanished",
        "live entries": "entries that the generation must hold",
        "pending": "documents that wait for a next run",
    },
)

RETRIEVAL_QUALITY = described(
    """How well a tenant's serving build answers its judged questions.

Measured weekly and after each publication of a build, for tenants that have judged questions
(`rag-assets judgements import`). `rag-assets eval` shows the same for every question.""",
    {
        "nDCG@10, MRR": "how far up the answers stand; Plots shows them over time",
        "recall@5, recall@10": "which share of what answers is among the first five, or ten",
        "questions": "that people judged, and that were measured",
        "judged of the first 10": "the share of hits that were judged; others count as irrelevant",
        "questions not measured": "all documents that answer them are gone",
        "intervals": "where the mean lies in 95 of 100 samples of such questions",
        "lowest": "the questions that are answered worst",
        "documents that are gone": "that judgements name, by question",
        "synthetic": "of questions made from headings, which decide nothing",
    },
)

GENERATIONS = described(
    """The builds of a tenant's index, and how far each of them is.

Reported by each run while a build is made, held or published, and daily for tenants with several
builds. `rag-assets generations list` shows the same at once.""",
    {
        "progress": "share of documents in the build that is to answer; Plots shows it over time",
        "documents behind": "whose present content it does not hold",
        "documents a second": "lately; missing while nothing is indexed",
        "spent in $": "on its embeddings",
        "serving build": "the number of the one that answers",
        "documents over time": "how the build grew, from its first document to its last",
        "states": "each build with state, progress, cost, checks and dates; from runs, those that"
        " are kept up to date",
    },
)

RETENTION = described(
    """What of a tenant is due to be erased next, what is held, and what was erased.

Reported by the daily pruning for tenants with a retention, a hold or a receipt.
`rag-assets receipts --verify` verifies the chain of receipts.""",
    {
        "rule": "the tenant's setting",
        "due within 7 days": "documents that will be past their retention, or are; Plots shows it",
        "held documents": "under a hold: they leave no store until it is lifted",
        "prunes to confirm": "past their retention, and too many to be pruned unasked",
        "receipts": "of this tenant",
        "due next": "when the oldest document of each source type is due",
        "last receipts": "what was erased, by which rule, and how much in each store",
    },
)
