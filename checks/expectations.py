"""expectations: Great Expectations suites over the tenant's chunk and embedding tables."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_assets.checks.documents import iter_parsed_batches
from rag_assets.checks.suites import (
    Columns,
    Validation,
    build_chunk_rules,
    build_vector_rules,
    validate,
)
from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.common.extras import CHECKS, find_missing_modules
from rag_assets.common.formatting import format_count
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.chunking.model import compute_text_hash
from rag_assets.pipeline.context import TenantContext

if TYPE_CHECKING:
    import polars as pl

_PART_ROWS = 50_000
_CHUNK_FACTS = ("ordinal", "start", "end", "line_start", "line_end", "token_count")
_CHUNK_COLUMNS = (
    *("document", "chunk_set", "chunks", *_CHUNK_FACTS),
    *("size", "limit", "characters", "text_sha256", "rehashed"),
)
_VECTOR_COLUMNS = ("document", "text_sha256", "vector_bytes", "created_at")


@dataclass(frozen=True, slots=True)
class ChunkUser:
    """A document that uses a chunk set.

    Attributes:
        title: title in the content.
    """

    uri: str
    title: str | None
    parameters: ChunkParameters


def iter_chunk_rows(
    stored: "pl.DataFrame", users: Mapping[str, ChunkUser]
) -> Iterator[tuple[Any, ...]]:
    """Yield one row for each chunk, without its text, as the suite validates them.

    Args:
        users: for each chunk set, by its key, a document that uses it.
    """
    # Rows that were written twice because of a crash differ only in the time of writing.
    rows = stored.drop("created_at").unique(maintain_order=True)
    for row in rows.iter_rows(named=True):
        key, hashes = row["key"], row["text_sha256"]
        user = users[key]
        in_tokens = user.parameters.kind.unit == "tokens"
        is_code = row["definitions"] is not None
        contexts = row["contexts"] or [""] * len(row["chunks"])
        for position, chunk in enumerate(row["chunks"]):
            headings, text = tuple(chunk["heading_path"] or ()), chunk["text"] or ""
            context = contexts[position] or ""
            yield (
                user.uri,
                key,
                len(row["chunks"]),
                *(chunk[fact] for fact in _CHUNK_FACTS),
                chunk["token_count"]
                if in_tokens
                else len(f"{context}\n" * bool(context)) + len(text),
                user.parameters.limit,
                len(text.strip()),
                hashes[position] if position < len(hashes) else None,
                compute_text_hash(user.title, headings, text, context=context, is_code=is_code),
            )


def iter_vector_rows(stored: "pl.DataFrame", uris: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
    """Yield one row for each vector: its length, time and document, as the suite validates them.

    Args:
        uris: for each embedded text, the uri of a document that contains it, by text_sha256.
    """
    rows = stored.unique(("text_sha256", "vector"), maintain_order=True)
    columns = ("text_sha256", "vector", "created_at")
    for key, vector, created_at in rows.select(columns).iter_rows():
        yield uris[key], key, None if vector is None else len(vector), created_at


def build_verdict(outcome: Validation, rules: int, docs: Path) -> Verdict:
    """Pass if every rule holds for every row."""
    broken, rows = outcome.broken, outcome.rows
    counts: Counter[str] = Counter()
    for rule in broken:
        counts[rule.description] += rule.rows
    if broken:
        violated = ", ".join(
            f"{name} (violated by {format_count(n, 'row')})" for name, n in counts.items()
        )
        description = f"{len(counts)} of {rules} expectations do not hold: {violated}"
    else:
        description = f"{rules} expectations hold for {format_count(rows, 'row')}"
    return Verdict(
        passed=not broken,
        description=description,
        compared=(
            Compared("expectations that hold", rules, rules - len(counts)),
            *(Compared(f"rows that violate: {name}", 0, n) for name, n in counts.items()),
        ),
        columns=("expectation", "document", "which"),
        offenders=tuple(
            (rule.description, str(document), str(which))
            for rule in broken
            for document, which in rule.examples or (("", ""),)
        ),
        mend="change the tenant's chunker, or its embedder's `revision`, and run"
        " `rag-assets sync TENANT`: a new build chunks and embeds the documents again",
        notes={"rows": rows, "data docs": f"/data-docs/{docs.parent.name}/{docs.name}/index.html"},
    )


def build_verdict_without_packages(missing: Sequence[str]) -> Verdict:
    """Return a warning that the check was not evaluated because packages are missing.

    The warning blocks no build.
    """
    return Verdict(
        passed=False,
        description="not evaluated: the check requires packages that are not installed: "
        + ", ".join(missing),
        compared=(),
        severity="WARN",
        mend="run pip install 'rag-assets[checks]'",
    )


@tenant_check(
    "chunks",
    "expectations",
    (
        "The chunks of the tenant's documents meet a Great Expectations suite: required fields, "
        "unique ordinals, offsets and lines in order, sizes within the limits of the chunkers, "
        "correct hashes."
    ),
    job="expectations",
    judges_builds=True,
)
def chunk_expectations(context: CheckContext) -> Verdict:
    """Validate the chunks of the tenant by the rules of a Great Expectations suite."""
    if missing := find_missing_modules(CHECKS):
        return build_verdict_without_packages(missing)
    ctx = context.of_build
    parts = _iter_parts(_CHUNK_COLUMNS, _read_chunk_rows(ctx, context.slice_id))
    rules = build_chunk_rules()
    docs = _get_docs_folder(ctx, "chunks")
    outcome = validate("chunks", rules, parts, ("document", "ordinal"), docs)
    return build_verdict(outcome, len(rules), docs)


@tenant_check(
    "embeddings",
    "expectations",
    (
        "The vectors of the tenant's documents meet a Great Expectations suite: one vector per "
        "text, with the embedder's dimensions, stored under a SHA-256 with its time of creation."
    ),
    job="expectations",
    judges_builds=True,
)
def embedding_expectations(context: CheckContext) -> Verdict:
    """Validate the vectors of the tenant by the rules of a Great Expectations suite."""
    if missing := find_missing_modules(CHECKS):
        return build_verdict_without_packages(missing)
    ctx = context.of_build
    parts = _iter_parts(_VECTOR_COLUMNS, _read_vector_rows(ctx, context.slice_id))
    rules = build_vector_rules(ctx.embedder.dimensions)
    docs = _get_docs_folder(ctx, "embeddings")
    outcome = validate("embeddings", rules, parts, ("document", "text_sha256"), docs)
    return build_verdict(outcome, len(rules), docs)


def _read_chunk_rows(ctx: TenantContext, run_id: str) -> Iterator[list[tuple[Any, ...]]]:
    seen: set[str] = set()
    for batch in iter_parsed_batches(ctx, run_id):
        items = {i.chunk_set_key: i for i in batch if i.chunk_set_key not in seen}
        seen.update(items)
        users = {
            key: ChunkUser(
                item.document.uri, item.title, ctx.chunk_parameters(item.document, item.media_type)
            )
            for key, item in items.items()
        }
        yield list(iter_chunk_rows(ctx.lake.stored_chunk_sets(set(items)), users))


def _read_vector_rows(ctx: TenantContext, run_id: str) -> Iterator[list[tuple[Any, ...]]]:
    seen: set[str] = set()
    for batch in iter_parsed_batches(ctx, run_id):
        by_set = ctx.lake.read_chunk_hashes({item.chunk_set_key for item in batch})
        uris = {
            text: item.document.uri
            for item in batch
            for text in by_set.get(item.chunk_set_key, ())
            if text not in seen
        }
        seen.update(uris)
        stored = ctx.lake.stored_vectors(ctx.embedder.embedder_id, set(uris))
        yield list(iter_vector_rows(stored, uris))


def _iter_parts(
    columns: Sequence[str], batches: Iterator[list[tuple[Any, ...]]]
) -> Iterator[Columns]:
    """Yield the rows in parts, by column; a chunk set or a text never spans two parts."""
    rows: list[tuple[Any, ...]] = []
    for batch in batches:
        rows += batch
        if len(rows) >= _PART_ROWS:
            yield _group_by_column(columns, rows)
            rows = []
    if rows:
        yield _group_by_column(columns, rows)


def _group_by_column(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Columns:
    return {
        name: list(column) for name, column in zip(columns, zip(*rows, strict=True), strict=True)
    }


def _get_docs_folder(ctx: TenantContext, asset: str) -> Path:
    return ctx.settings.data_docs / ctx.ref.id / asset
