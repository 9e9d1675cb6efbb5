"""Descriptions of assets, their metadata and the columns of their tables, for Dagster's UI."""

from collections.abc import Mapping

import dagster as dg


def _build_schema(columns: Mapping[str, tuple[str, str]]) -> dg.TableSchema:
    return dg.TableSchema(
        [dg.TableColumn(name, kind, text) for name, (kind, text) in columns.items()]
    )


DOCUMENT_COLUMNS = _build_schema(
    {
        "document_id": ("string", "hash of the source's name and the path in it"),
        "uri": ("string", "source and path, for display"),
        "status": ("string", "PROCESSING, READY, FAILED or DELETED"),
        "error_message": ("string", "reason if it FAILED"),
        "media_type": ("string", "media type by its file name"),
        "content_sha256": ("string", "hash of its bytes; missing if it cannot be read"),
        "document_key": ("string", "hash of everything known before parsing"),
        "chunk_count": ("int", "entries of its searchable version"),
        "dropped_count": ("int", "chunks dropped because of a credential"),
        "access_scope": ("string", "access scope of its readers"),
        "changed_at": ("timestamp", "when a listing last found its content changed"),
        "modified_at": ("timestamp", "when the content was last changed, according to its source"),
    }
)
PARSED_COLUMNS = _build_schema(
    {
        "key": ("string", "parse_key: hash of content, type, parsers and secret rules"),
        "digest": ("string", "hash of the output; part of the next key"),
        "text": ("string", "with every credential masked, without changing offsets"),
        "blocks": ("list", "kind, offsets, heading path, page, slide, sheet or row"),
        "title": ("string", "title in the content, never the file name"),
        "media_type": ("string", "detected from the content"),
        "pages": ("int", "pages, slides or sheets"),
        "ocr_pages": ("int", "pages read by OCR"),
        "masked": ("list", "position of each credential, and the rule that found it"),
        "created_at": ("timestamp", "when it was computed"),
    }
)
CHUNK_COLUMNS = _build_schema(
    {
        "key": (
            "string",
            "chunk_set_key: hash of parsed digest, type, detector and chunker",
        ),
        "digest": ("string", "hash of the chunks; part of the index key"),
        "chunks": ("list", "text, offsets, heading path, position and token count of each"),
        "text_sha256": ("list", "hash of each embedded text, in the order of the chunks"),
        "contexts": ("list", "lines above each chunk that starts within a block"),
        "dropped": ("list", "position and rules of dropped chunks, never their text"),
        "language": ("string", "language of the document; missing if uncertain"),
        "created_at": ("timestamp", "when it was computed"),
    }
)
EMBEDDING_COLUMNS = _build_schema(
    {
        "text_sha256": ("string", "hash of the embedded text: title, headings, context, passage"),
        "vector": ("binary", "little-endian float32 values, with norm 1"),
        "created_at": ("timestamp", "when it was stored"),
    }
)
ENTRY_COLUMNS = _build_schema(
    {
        "tenant": ("keyword", "the tenant; also the routing"),
        "generation": ("integer", "generation of the tenant"),
        "document_id": ("keyword", "id of the document"),
        "index_key": (
            "keyword",
            "version of the document; searches return only the version in the catalog",
        ),
        "ordinal": ("integer", "position of the chunk in the document"),
        "uri": ("keyword", "source and path of the document"),
        "title": ("text", "title of the document"),
        "heading_path": ("text", "headings above the passage"),
        "context": ("text", "lines above a passage that starts within a table, a list or code"),
        "language": ("keyword", "language of the document; missing if uncertain"),
        "modified_at": ("date", "time of the last change of the content"),
        "text": ("text", "the passage"),
        "access_scope": ("keyword", "access scope of its readers"),
        "vector": ("dense_vector", "compared by cosine; not in _source"),
    }
)

RUN_NOTE = (
    "Numbers are for one run unless stated otherwise; Plots shows them over time. A run for a"
    " disabled tenant does nothing and reports only `skipped`."
)


def describe_asset(summary: str, meanings: Mapping[str, str]) -> str:
    """Return the description of an asset, with a table of the meanings of its metadata."""
    rows = "\n".join(f"| {name} | {meaning} |" for name, meaning in meanings.items())
    return f"{summary}\n\n{RUN_NOTE}\n\n| metadata | meaning |\n| --- | --- |\n{rows}"


RAW_DOCUMENTS = describe_asset(
    """Every document of the tenant's sources, as rows of the catalog.

Sources are listed and compared with the catalog; documents that may have changed are hashed.
Documents that disappeared are marked deleted, and searches no longer return them. If suspiciously
many disappear, none is deleted until a person allows it. This step also chooses the slice of
documents that the run processes.""",
    {
        "documents, added, changed, removed": "documents in the sources, and their changes",
        "moved": "removed documents whose content is now at another path",
        "touched": "documents with a new size, time or inode but the same content",
        "held": "documents that disappeared and are kept; `sync --allow-deletes` deletes them",
        "pruned": "documents deleted because they are older than the tenant's retention",
        "failed": "documents that cannot be read; `first failures` gives the reasons",
        "left out": "files excluded by a rule of their source, such as vendored code",
        "slice": "number of documents that this run processes; the others wait for the next run",
    },
)

PARSED_TEXT = describe_asset(
    """The text of documents, with every credential masked.

The lake stores text blocks with heading path, position and offsets, under a hash of the content and
the parser. A document that cannot be parsed is quarantined with the reason. Its last good version
stays searchable, and other documents are not affected.""",
    {
        "parsed, reused": "contents parsed now; documents whose text the lake already had",
        "failed": "documents quarantined by this run; `failures` gives the reasons and links",
        "pages, pages read by OCR": "number of pages, slides and sheets, and of pages read by OCR",
        "masked": "number of credentials masked",
        "left out": "parts of indexed documents that could not be read",
        "by format": "results by format; seconds are summed over parallel parser processes",
    },
)

CHUNKS = describe_asset(
    """Passages small enough to be embedded and returned on their own.

The lake stores each chunk with heading path, position, character offsets and token count, under a
hash of the parsed text and the chunker's parameters. Credentials are masked, and an event names the
document and the rule. A chunk is dropped if it contains only a credential, or by a rule of the
tenant's system.""",
    {
        "chunks, documents": "number of chunks that this run made, and of their documents",
        "reused": "documents whose chunks were already in the lake",
        "masked_secrets": "credentials masked in the documents that this run chunked",
        "dropped_secrets": "chunks dropped because of a credential, or by a rule of a system",
        "credentials": "document, rule and lines of each masked credential, without its text",
        "tokens per chunk": "distribution of cl100k_base tokens in the chunks that this run made",
        "first chunks": "position and size of the first chunks, without their text",
    },
)

EMBEDDINGS = describe_asset(
    """One vector per distinct text and embedder, computed once.

The lake stores each vector as soon as it arrives. If the embedder fails, finished vectors are kept,
documents without vectors are quarantined with the reason, and deleted documents are still removed
from the index.""",
    {
        "embedded, reused": "texts embedded now; texts whose vector the lake already had",
        "remaining": "texts left for the next run, because a run embeds for a limited time",
        "failed": "documents quarantined because one of their texts has no vector",
        "tokens, requests, retries": "tokens, by the provider's count; requests; repeated requests",
        "cost in $": "cost of this run; missing if the price is unknown",
        "promised to batches in $": "cost of the batches that this run submitted",
        "usage": "usage of this run, today and this month, with the tenant's spending caps",
        "halted": "whether embedding stops until a person acts or a spending cap is reset",
        "outage, remedy": "why the embedder does not respond, and what to do",
    },
)

EMBEDDING_COST = describe_asset(
    """A tenant's spending on embeddings; one run a day reports on all tenants.

`rag-assets usage` shows the same on the command line, including today.""",
    {
        "yesterday in $": "spending of yesterday; missing if the price is unknown",
        "month to yesterday in $": "spending from the first of yesterday's month to yesterday",
        "tokens, requests, retries": "usage of yesterday",
        "tokens without a known price": "not included in any cost; embedder.price sets a price",
        "31 days": "cost of each of the last 31 days, excluding today",
        "by day": "cost of each of the last seven days, including today",
        "by model": "usage of the last 31 days by provider and model",
    },
)

SEARCH_INDEX = describe_asset(
    """The entries that searches return, equal to the catalog.

First, deleted documents are removed from every generation. Then each complete document of the slice
is published in one step, so that a search finds either its previous or its new version. A new
embedder or chunker builds a new generation, which replaces the serving generation when it is
complete.""",
    {
        "tenant summary": "current documents, generation, alias and embedder of the tenant",
        "failed documents": "all documents in quarantine, with reasons and links",
        "by format": "all documents of the tenant by format and status",
        "upserted, deleted": "number of entries written and deleted",
        "published, unchanged, removed documents": "documents of the slice, and deleted documents",
        "live entries": "number of entries that the generation must contain",
        "pending": "number of documents that wait for the next run",
    },
)

RETRIEVAL_QUALITY = describe_asset(
    """How well a tenant's serving build answers its judged questions.

Measured weekly and after each publication of a build, for tenants that have judged questions
(`rag-assets judgements import`). `rag-assets eval` shows the same for every question.""",
    {
        "nDCG@10, MRR": "how high relevant hits are ranked; Plots shows it over time",
        "recall@5, recall@10": "share of the relevant passages among the first 5 or 10 hits",
        "questions": "number of measured questions that people judged",
        "judged of the first 10": "share of hits with a judgement; others count as irrelevant",
        "questions not measured": "questions whose relevant documents were all deleted",
        "intervals": "95 % confidence interval of each mean",
        "lowest": "the questions with the lowest nDCG@10",
        "documents that are gone": "deleted documents that judgements name, by question",
        "synthetic": "results for questions generated from headings; for information only",
    },
)

GENERATIONS = describe_asset(
    """The builds of a tenant's index, and their progress.

Reported by each run while a build is in progress, held or published, and daily for tenants with
several builds. `rag-assets generations list` shows the current state.""",
    {
        "progress": "share of the documents that the wanted build has; Plots shows it over time",
        "documents behind": "documents whose current content the build lacks",
        "documents a second": "current indexing rate; missing while no document is indexed",
        "spent in $": "spending on the build's embeddings",
        "serving build": "number of the build that answers searches",
        "documents over time": "growth of the build from its first to its last document",
        "states": "state, progress, cost, checks and dates of each build; a run reports only the"
        " builds that it keeps up to date",
    },
)

RETENTION = describe_asset(
    """A tenant's documents that are due to be erased, holds, and receipts of erasures.

Reported by the daily pruning for tenants with a retention, a hold or a receipt.
`rag-assets receipts --verify` verifies the chain of receipts.""",
    {
        "rule": "the tenant's retention setting",
        "due within 7 days": "number of documents whose retention ends within 7 days",
        "held documents": "documents under a hold, which are not erased until it is lifted",
        "prunes to confirm": "documents whose pruning a person must confirm",
        "receipts": "number of the tenant's receipts",
        "due next": "time at which the oldest document of each source type is due",
        "last receipts": "the last erasures: rule, documents, and erased data by store",
    },
)
