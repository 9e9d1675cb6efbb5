"""plan: preview the work and cost of a sync without changes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rag_assets.cli.commands.output import print_json, print_table, say
from rag_assets.cli.commands.session import Session, with_session
from rag_assets.common.formatting import counted, dollars, duration
from rag_assets.models.prices import split_embedder_id

if TYPE_CHECKING:
    from rag_assets.pipeline.estimates import Estimate, Twice
    from rag_assets.pipeline.preview import Preview


@with_session
def plan(session: Session, tenant_id: str, *, as_json: bool) -> None:
    """Print the work and cost of a tenant's next sync."""
    from rag_assets.pipeline.preview import preview

    found = preview(session.reader(tenant_id))
    if as_json:
        print_json({"tenant": tenant_id, **asdict(found)})
        return
    say(f"A sync of {tenant_id} would:")
    print_table(
        ["", ""],
        [
            (
                "files",
                f"{found.added:,} added, {found.changed:,} changed, {found.removed:,} removed",
            ),
            (
                "parse",
                f"{found.parse:,} of {found.documents:,} documents, {found.failed:,} would fail",
            ),
            ("chunks", f"{found.chunks:,}"),
            (
                "embeddings",
                f"{found.embeddings:,} new ({found.tokens:,} tokens), {found.reused:,} reused",
            ),
            ("cost", _cost(found)),
            *([("CPU time", _cpu_time(found))] if found.embedding_cpu_seconds is not None else []),
            ("duration", _duration(found.estimate, batch=found.batch)),
            ("disk", _disk(found.estimate)),
            ("deletions", f"{found.entries_deleted:,} entries"),
        ],
    )
    if found.cap is not None:
        say(
            f"\nThe cap of {found.cap.limit_text} would stop it early: {found.cap.spent_text}."
            " Documents that are done by then are kept."
        )
    if found.waiting:
        say(f"\n{found.waiting:,} documents wait for a batch that is at the provider.")
    if found.unread:
        say(f"\n{found.unread}.")
    for reason in found.unlisted:
        say(f"\nnot listed, so its documents are kept: {reason}")
    if found.held:
        reasons = "; ".join(found.held_reasons)
        say(
            f"\n{counted(found.held, 'document')} disappeared, and the deletion would be held back"
            f" without --allow-deletes: {reasons}"
        )
    if found.new_generation:
        say("\nThe configuration changed: a new generation is built beside the serving one.")
    if found.twice is not None:
        say(f"\nUntil it answers, {_twice(found.twice)}")


def _cpu_time(found: Preview) -> str:
    seconds = found.embedding_cpu_seconds or 0.0
    each = 1000 * seconds / max(1, found.embeddings)
    return f"about {duration(seconds)} of a core for embedding, {each:,.0f} ms a text"


def _duration(estimate: Estimate, *, batch: bool) -> str:
    if estimate.seconds is None:
        return f"unknown: never measured here: {', '.join(estimate.rates_lacking)}"
    return f"about {duration(estimate.seconds)}{', and up to a day for the batch' if batch else ''}"


def _disk(estimate: Estimate) -> str:
    if estimate.bytes is None:
        return f"unknown: never measured here: {', '.join(estimate.sizes_lacking)}"
    return f"about {estimate.bytes / 1e6:,.1f} MB more, in lake and index"


def _twice(twice: Twice) -> str:
    if not twice.embedded:
        return "an edit is embedded once, and written to both builds."
    each = [
        f"{_some(texts, 'text')}{'' if cost is None else f' ({dollars(cost)})'} for the build that"
        f" {which}"
        for texts, cost, which in (
            (twice.texts_serving, twice.dollars_serving, "answers"),
            (twice.texts_wanted, twice.dollars_wanted, "is made"),
        )
    ]
    return f"an edit is embedded for both builds; of a document on average {', '.join(each)}."


def _some(count: float | None, noun: str) -> str:
    return f"an unknown number of {noun}s" if count is None else f"{count:,.1f} {noun}s"


def _cost(found: Preview) -> str:
    embedder = " ".join(split_embedder_id(found.embedder))
    if found.cost is None or found.per_million is None:
        return f"no price known for {embedder}: set embedder.price in tenants.yaml"
    rate = f", {dollars(found.per_million)} a million tokens" if found.per_million else ""
    way = ", through the batch API within a day" if found.batch else ""
    return f"{dollars(found.cost)} ({embedder}{rate}{way})"
