"""Commands for the work and cost of a tenant's next sync, and for usage and cost so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_assets.billing.spending import Cap, build_caps
from rag_assets.cli.arguments import Json, TenantArgument
from rag_assets.cli.output import print_json, print_table, say
from rag_assets.cli.session import Session, with_reading_session, with_session
from rag_assets.common.formatting import dollars, duration, format_count
from rag_assets.models.prices import split_embedder_id
from rag_assets.storage.catalog.accounts.usage import Usage, UsageRow, today, total
from rag_assets.tenants.model import Tenant

if TYPE_CHECKING:
    from rag_assets.pipeline.estimates import DoubleEditCost, Estimate
    from rag_assets.pipeline.preview import Preview

_COLUMNS = ("tenant", "day", "provider", "model", "requests", "retries", "texts", "tokens", "cost")

app = typer.Typer()


@app.command()
@with_session
def plan(session: Session, tenant_id: TenantArgument, *, as_json: Json = False) -> None:
    """Show what a sync would do and cost; change nothing."""
    from rag_assets.pipeline.preview import preview_sync

    work = preview_sync(session.build_reader_context(tenant_id))
    if as_json:
        print_json({"tenant": tenant_id, **asdict(work)})
        return
    say(f"A sync of {tenant_id} would:")
    print_table(
        ["", ""],
        [
            (
                "files",
                f"{work.added:,} added, {work.changed:,} changed, {work.removed:,} removed",
            ),
            (
                "parse",
                f"{work.parse:,} of {work.documents:,} documents, {work.failed:,} would fail",
            ),
            ("chunks", f"{work.chunks:,}"),
            (
                "embeddings",
                f"{work.embeddings:,} new ({work.tokens:,} tokens), {work.reused:,} reused",
            ),
            ("cost", _format_cost(work)),
            *(
                [("CPU time", _format_cpu_time(work))]
                if work.embedding_cpu_seconds is not None
                else []
            ),
            ("duration", _format_duration(work.estimate, is_batch=work.batch)),
            ("disk", _format_disk(work.estimate)),
            ("deletions", f"{work.entries_deleted:,} entries"),
        ],
    )
    if work.cap is not None:
        say(
            f"\nThe cap of {work.cap.limit_text} would stop it early: {work.cap.spent_text}."
            " Documents that are indexed by then are kept."
        )
    if work.waiting:
        say(f"\n{work.waiting:,} documents wait for a batch at the provider.")
    if work.unread:
        say(f"\n{work.unread}.")
    for reason in work.unlisted:
        say(f"\nnot listed, so its documents are kept: {reason}")
    if work.held:
        reasons = "; ".join(work.held_reasons)
        say(
            f"\n{format_count(work.held, 'document')} disappeared, and the deletion would"
            " be held back"
            f" without --allow-deletes: {reasons}"
        )
    if work.new_generation:
        say("\nThe configuration changed: a new generation is built next to the serving one.")
    if work.twice is not None:
        say(f"\nUntil it answers, {_describe_double_cost(work.twice)}")


def _format_cpu_time(work: Preview) -> str:
    seconds = work.embedding_cpu_seconds or 0.0
    text_ms = 1000 * seconds / max(1, work.embeddings)
    return f"about {duration(seconds)} of a core for embedding, {text_ms:,.0f} ms per text"


def _format_duration(estimate: Estimate, *, is_batch: bool) -> str:
    if estimate.seconds is None:
        return f"unknown until a sync has measured: {', '.join(estimate.rates_lacking)}"
    return (
        f"about {duration(estimate.seconds)}{', and up to a day for the batch' if is_batch else ''}"
    )


def _format_disk(estimate: Estimate) -> str:
    if estimate.bytes is None:
        return f"unknown until a sync has measured: {', '.join(estimate.sizes_lacking)}"
    return f"about {estimate.bytes / 1e6:,.1f} MB more, in lake and index"


def _describe_double_cost(twice: DoubleEditCost) -> str:
    if not twice.embedded:
        return "an edit is embedded once, and written to both builds."
    costs_per_document = [
        f"{_format_average(texts, 'text')}{'' if cost is None else f' ({dollars(cost)})'} for the"
        f" {which} build"
        for texts, cost, which in (
            (twice.texts_serving, twice.dollars_serving, "serving"),
            (twice.texts_wanted, twice.dollars_wanted, "new"),
        )
    ]
    costs = ", ".join(costs_per_document)
    return f"an edit is embedded for both builds: per document, on average {costs}."


def _format_average(count: float | None, noun: str) -> str:
    return f"an unknown number of {noun}s" if count is None else f"{count:,.1f} {noun}s"


def _format_cost(work: Preview) -> str:
    embedder = " ".join(split_embedder_id(work.embedder))
    if work.cost is None or work.per_million is None:
        return f"no price known for {embedder}: set embedder.price in tenants.yaml"
    rate = f", {dollars(work.per_million)} per million tokens" if work.per_million else ""
    suffix = ", through the batch API within a day" if work.batch else ""
    return f"{dollars(work.cost)} ({embedder}{rate}{suffix})"


@app.command()
@with_reading_session
def usage(
    session: Session,
    tenant_id: Annotated[
        str | None, typer.Argument(metavar="TENANT", help="By default all tenants.")
    ] = None,
    *,
    days: Annotated[int, typer.Option(min=1, max=3_660, help="Number of days to report.")] = 30,
    as_json: Json = False,
) -> None:
    """Show usage and cost of embeddings and answers by day, provider and model."""
    records = session.catalog.tenants.all()
    if tenant_id is not None:
        records = [session.catalog.tenants.get(tenant_id)]
    since = today() - timedelta(days=days - 1)
    rows = session.catalog.usage.rows(since, tenant_id)
    used = {id_: total(its) for id_, its in groupby(rows, key=lambda row: row.tenant_id)}
    caps = {
        record.id: _list_caps(session, Tenant.from_config(record.config))
        for record in records
        if record.id in used or record.id == tenant_id
    }
    if as_json:
        print_json(_as_json(since.isoformat(), rows, used, caps))
        return
    if not rows:
        say(f"No usage in {format_count(days, 'day')}.")
    else:
        print_table(_COLUMNS, [_build_row(row) for row in rows])
        say()
    for id_, of_tenant in used.items():
        say(f"{id_}: {of_tenant.cost_text} in {format_count(days, 'day')}")
    for id_, of_caps in caps.items():
        for cap in of_caps:
            say(f"{id_}: the cap of {cap.limit_text}: {cap.spent_text}")


def _list_caps(session: Session, tenant: Tenant) -> list[Cap]:
    """Return a tenant's caps per day and per month with the spending so far; none per run."""
    day = today()
    caps = tenant.caps.model_copy(update={"per_run": None})
    return build_caps(caps, session.catalog.usage.read_spending(tenant.id, day), day)


def _build_row(row: UsageRow) -> Sequence[str]:
    used = row.used
    counts = (used.requests, used.retries, used.texts)
    written_tokens = f" ({used.output_tokens:,} written)" if used.output_tokens else ""
    row_key = (row.tenant_id, str(row.day), row.provider, row.model)
    tokens = f"{used.tokens:,}{written_tokens}"
    return (*row_key, *(f"{n:,}" for n in counts), tokens, used.cost_text)


def _as_json(
    since: str,
    rows: Sequence[UsageRow],
    used: Mapping[str, Usage],
    caps: Mapping[str, Sequence[Cap]],
) -> dict[str, Any]:
    return {
        "since": since,
        "usage": [
            {
                "tenant": row.tenant_id,
                "day": row.day.isoformat(),
                "provider": row.provider,
                "model": row.model,
                **_usage_to_json(row.used),
            }
            for row in rows
        ],
        "totals": [
            {
                "tenant": id_,
                **_usage_to_json(used.get(id_, Usage())),
                "caps": {cap.name: {"dollars": cap.most, "spent": cap.spent} for cap in of_caps},
            }
            for id_, of_caps in caps.items()
        ],
    }


def _usage_to_json(used: Usage) -> dict[str, Any]:
    return asdict(used) | {"cost": used.known_cost}
