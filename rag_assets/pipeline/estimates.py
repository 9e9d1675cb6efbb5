"""Estimates of a plan: the duration and disk usage of its sync, and the cost of later edits.

Each is computed from measurements of the tenant's own builds, lake and index, never from another
tenant or machine. A figure that was never measured is reported as unknown, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rag_assets.common.errors import BuildNotWritable
from rag_assets.models.factory import find_price
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.recipes import Recipe, read_recipe
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.lake.model import TableSize
from rag_assets.storage.lake.store import build_vectors_table_name

_BYTES_PER_NUMBER = 4


@dataclass(frozen=True, slots=True)
class MeasuredWork:
    """The work on documents that are due.

    Attributes:
        parse: number of contents that would be parsed; the text of the others is in the lake.
        cut: number of chunk sets that would be made; the others are in the lake.
        embeddings, reused: numbers of distinct texts without and with a vector.
        seconds: time that parsing and chunking took.
        read: number of documents whose text was checked for a language that the embedder supports.
        unread: number of these documents in an unsupported language, by language.
    """

    parse: int = 0
    cut: int = 0
    failed: int = 0
    chunks: int = 0
    embeddings: int = 0
    reused: int = 0
    tokens: int = 0
    seconds: float = 0.0
    read: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)
    sample: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DoubleEditCost:
    """The cost of an edit while both the serving and the wanted build are kept up to date.

    Attributes:
        embedded: whether each text of an edit is embedded twice, for each of the two builds;
            otherwise it is embedded once and written to both.
        texts_serving, texts_wanted: average number of chunks per document; None before a build has
            any.
        dollars_serving, dollars_wanted: average cost of embedding a document; None if no price is
            known, or no document was embedded.
    """

    embedded: bool
    texts_serving: float | None
    texts_wanted: float | None
    dollars_serving: float | None
    dollars_wanted: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated duration of a sync, and its disk usage before compaction.

    Each of them is None if a part of it is unknown.

    Attributes:
        rates_lacking, sizes_lacking: the parts that were never measured.
    """

    seconds: float | None
    bytes: int | None
    rates_lacking: tuple[str, ...] = ()
    sizes_lacking: tuple[str, ...] = ()


NOTHING_TO_ESTIMATE = Estimate(0.0, 0)


def estimate_sync(
    ctx: TenantContext, builds: Sequence[Generation], work: MeasuredWork, *, is_batch: bool
) -> Estimate:
    """Estimate a sync's duration and disk usage, from the present sizes of lake and index."""
    parts = {"reading": work.seconds, **_estimate_seconds(ctx, builds, work, is_batch=is_batch)}
    sizes = {
        name: average and count * average for name, count, average in _list_sizes(ctx, builds, work)
    }
    seconds, rates_lacking = _sum_parts(parts)
    total, sizes_lacking = _sum_parts(sizes)
    return Estimate(seconds, None if total is None else round(total), rates_lacking, sizes_lacking)


def _sum_parts(parts: Mapping[str, float | None]) -> tuple[float | None, tuple[str, ...]]:
    """Return the sum, or None and the names of the unknown parts."""
    lacking = tuple(name for name, part in parts.items() if part is None)
    return (None if lacking else sum(part or 0.0 for part in parts.values())), lacking


def _estimate_seconds(
    ctx: TenantContext, builds: Sequence[Generation], work: MeasuredWork, *, is_batch: bool
) -> dict[str, float | None]:
    """Return the seconds that each part takes; None if its rate was never measured."""
    embedder_id = ctx.embedder.embedder_id
    embedding = [g.pace.texts_per_second for g in builds if g.embedder_id == embedder_id]
    writing = [g.pace.entries_per_second for g in builds]
    parts: dict[str, float | None] = {}
    if work.embeddings and not is_batch:
        rate = _find_newest_rate(embedding)
        parts[f"texts embedded per second by {embedder_id}"] = rate and work.embeddings / rate
    if work.chunks:
        rate = _find_newest_rate(writing)
        parts["entries written per second"] = rate and work.chunks / rate
    return parts


def _find_newest_rate(rates: Sequence[float | None]) -> float | None:
    known = [rate for rate in rates if rate]
    return known[-1] if known else None


def _list_sizes(
    ctx: TenantContext, builds: Sequence[Generation], work: MeasuredWork
) -> Iterator[tuple[str, int, float | None]]:
    """Yield the label, the count and the average bytes of each kind of data to be added."""
    tables = ctx.lake.size() if work.parse or work.cut or work.embeddings else {}
    if work.parse:
        yield "bytes of a parsed text", work.parse, _find_bytes_per_row(tables.get("parsed_text"))
    if work.cut:
        yield "bytes of a document's passages", work.cut, _find_bytes_per_row(tables.get("chunks"))
    if work.embeddings:
        yield "bytes of a vector", work.embeddings, _find_bytes_per_vector(ctx, builds, tables)
    if work.chunks:
        yield "bytes of an entry", work.chunks, _find_bytes_per_entry(ctx, builds)


def _find_bytes_per_row(size: TableSize | None) -> float | None:
    return size.bytes / size.rows if size is not None and size.rows else None


def _find_bytes_per_vector(
    ctx: TenantContext, builds: Sequence[Generation], tables: Mapping[str, TableSize]
) -> float | None:
    """Return the average bytes per vector of the embedder.

    If that is unknown, the average of another embedder is scaled by the number of dimensions.
    """
    own = _find_bytes_per_row(tables.get(build_vectors_table_name(ctx.embedder.embedder_id)))
    if own is not None:
        return own
    for build in reversed(builds):
        average = _find_bytes_per_row(tables.get(build_vectors_table_name(build.embedder_id)))
        if average is not None:
            return _correct_for_dimensions(average, ctx, build)
    return None


def _find_bytes_per_entry(ctx: TenantContext, builds: Sequence[Generation]) -> float | None:
    """Return the average bytes per entry in the newest index that has entries.

    The average is scaled to the number of dimensions of the new vectors.
    """
    for build in reversed(builds):
        average = ctx.store.indexes.bytes_per_entry(build.index_name)
        if average is not None:
            return _correct_for_dimensions(average, ctx, build)
    return None


def _correct_for_dimensions(average: float, ctx: TenantContext, build: Generation) -> float:
    more = ctx.embedder.dimensions - build.dimensions
    return max(0.0, average + _BYTES_PER_NUMBER * more)


def estimate_double_edits(
    ctx: TenantContext,
    builds: Sequence[Generation],
    wanted: Generation | None,
    *,
    chunks: int,
    documents: int,
    cost: float | None,
) -> DoubleEditCost | None:
    """Return the cost of an edit while two builds are kept up to date; None if only one is.

    The context and the figures describe the wanted build.
    """
    serving = next((g for g in builds if g.state == "SERVING"), None)
    if serving is None or (wanted is not None and wanted.number == serving.number):
        return None
    try:
        beside = ctx.for_build(serving)
    except BuildNotWritable:
        return None  # Edits are not written to the serving build.
    numbers = {serving.number: None} | ({} if wanted is None else {wanted.number: None})
    progress = ctx.catalog.build_progress.read(ctx.ref.id, numbers)
    serving_progress = progress[serving.number]
    wanted_progress = None if wanted is None else progress[wanted.number]
    finished = (
        (wanted_progress.entries, wanted_progress.documents)
        if wanted_progress is not None
        else (0, 0)
    )
    spent = 0.0 if wanted is None else wanted.spent
    will_spend = None if cost is None else spent + cost
    total = finished[1] + documents
    priced = find_price(beside.tenant.embedder) is not None and serving.spent
    return DoubleEditCost(
        embedded=_has_other_vectors(ctx, serving),
        texts_serving=_compute_average(serving_progress.entries, serving_progress.documents),
        texts_wanted=_compute_average(finished[0] + chunks, total),
        dollars_serving=_compute_average(serving.spent, serving_progress.documents)
        if priced
        else None,
        dollars_wanted=None if will_spend is None else _compute_average(will_spend, total),
    )


def _has_other_vectors(ctx: TenantContext, serving: Generation) -> bool:
    """Return whether the two builds need different texts or different vectors."""
    if ctx.embedder.embedder_id != serving.embedder_id:
        return True
    theirs = read_recipe(serving)
    if theirs is None:
        return True
    ours = Recipe.from_tenant(ctx.tenant, theirs.vector_index)
    return (ours.chunker, ours.chunkers) != (theirs.chunker, theirs.chunkers)


def _compute_average(total: float, count: int) -> float | None:
    return total / count if count else None
