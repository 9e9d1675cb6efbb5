"""The command `sync`: run the pipeline for tenants until no work remains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_assets.cli.arguments import Json
from rag_assets.cli.output import format_seconds, print_json, print_table, progress, say, warn
from rag_assets.cli.runs import STAGES, RunResult
from rag_assets.cli.session import Session, with_session
from rag_assets.common.errors import ConfigurationError, IndexInconsistent, RagAssetsError
from rag_assets.common.formatting import dollars, format_count

if TYPE_CHECKING:
    from rag_assets.pipeline.drift import IndexDifference

PRINTED_COUNTS = {
    "raw_documents": ("added", "changed", "removed", "failed"),
    "parsed_text": ("parsed", "reused", "failed"),
    "chunks": ("chunks", "reused", "masked_secrets", "dropped_secrets"),
    "embeddings": ("embedded", "reused", "tokens", "requests", "retries"),
    "search_index": ("upserted", "deleted"),
}
_LAST_VALUE_COUNTS = (
    *("documents", "touched", "held", "generation", "live entries", "pending", "slice"),
    "waiting for batches",
)
_JSON_NAMES = {"submitted": "handed over"}
"""Names of counts in the JSON output, which keeps former names because it is a contract."""

app = typer.Typer()


@dataclass
class TenantSync:
    """The result of syncing one tenant, over all its runs.

    Attributes:
        held: number of documents that disappeared from their source and whose deletion is held
            back.
        waiting: number of documents that wait for a batch at the provider.
    """

    tenant: str
    nothing_to_do: bool = False
    runs: list[str] = field(default_factory=list)
    stages: dict[str, dict[str, float]] = field(default_factory=dict)
    cost: float = 0.0
    promised: float = 0.0
    waiting: int = 0
    held: int = 0
    seconds: float = 0.0
    error: RagAssetsError | None = None

    @property
    def unpriced_tokens(self) -> int:
        """Return the number of tokens whose price is unknown."""
        return int(self.stages.get("embeddings", {}).get("unpriced tokens", 0))

    def add(self, result: RunResult) -> None:
        """Add the counts, the duration and the cost of another run to this result."""
        self.runs.append(result.run_id)
        for name, stage in result.stages.items():
            total = self.stages.setdefault(name, defaultdict(float))
            total["seconds"] += stage.seconds
            self.held = int(stage.counts.get("held", self.held))
            self.cost += stage.cost or 0.0
            self.promised += stage.promised
            for count, value in stage.counts.items():
                total[count] = value if count in _LAST_VALUE_COUNTS else total[count] + value

    @classmethod
    def from_json(cls, answer: Mapping[str, Any]) -> TenantSync:
        """Parse the JSON that `sync --json` printed in another process."""
        error = answer["error"]
        original_names = {shown: count for count, shown in _JSON_NAMES.items()}
        stages = {
            name: {original_names.get(count, count): value for count, value in stage.items()}
            for name, stage in answer["stages"].items()
            if any(stage.values())
        }
        cost = stages.get("embeddings", {}).pop("cost", None)
        return cls(
            answer["tenant"],
            nothing_to_do=answer["nothing_to_do"],
            runs=answer["runs"],
            stages=stages,
            cost=cost or 0.0,
            waiting=answer["waiting_for_batches"],
            held=answer["held_deletions"],
            seconds=answer["seconds"],
            error=None if error is None else RagAssetsError(error["message"], hint=error["hint"]),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the result as `sync --json` prints it; this format is a stable contract."""
        stages: dict[str, dict[str, float | None]] = {
            name: {
                _JSON_NAMES.get(count, count): (
                    round(value, 3) if count == "seconds" else int(value)
                )
                for count, value in {
                    **dict.fromkeys(PRINTED_COUNTS[name], 0),
                    "seconds": 0.0,
                    **self.stages.get(name, {}),
                }.items()
            }
            for name in STAGES
        }
        cost = None if self.unpriced_tokens and not self.cost else round(self.cost, 8)
        stages["embeddings"]["cost"] = cost
        error = self.error and {"message": self.error.message, "hint": self.error.hint}
        return {
            "tenant": self.tenant,
            "nothing_to_do": self.nothing_to_do,
            "held_deletions": self.held,
            "waiting_for_batches": self.waiting,
            "runs": self.runs,
            "stages": stages,
            "seconds": round(self.seconds, 3),
            "error": error,
        }


@app.command()
@with_session
def sync(
    session: Session,
    tenants: Annotated[list[str] | None, typer.Argument(metavar="TENANT...")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Sync all enabled tenants.")] = False,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="First repair differences of lake and index from the catalog."
        ),
    ] = False,
    allow_deletes: Annotated[
        bool, typer.Option("--allow-deletes", help="Delete documents whose deletion is held back.")
    ] = False,
    accept_catalog: Annotated[
        bool,
        typer.Option(
            "--accept-catalog",
            help="Accept a catalog that was restored from an earlier dump; implies --repair.",
        ),
    ] = False,
    in_turn: Annotated[
        bool, typer.Option("--in-turn", help="Sync one tenant after the other, in this process.")
    ] = False,
    as_json: Json = False,
) -> bool:
    """Bring the index in line with the sources."""
    tenants = tenants or []
    if every:
        records = session.catalog.tenants.all()
        tenants = [record.id for record in records if record.state == "ACTIVE"]
    elif not tenants:
        raise ConfigurationError("no tenant is named", hint="add the ids of tenants, or use --all")
    for tenant_id in tenants:
        session.get_active_tenant(tenant_id)
    if accept_catalog:
        accepted = [tenant_id for tenant_id in tenants if _accept_catalog(session, tenant_id)]
        repair = repair or bool(accepted)
        if every:
            # The next weekly compaction may delete data of tenants that the catalog lacks.
            for name in session.keeper.forget_unknown():
                progress(f"{name}: unknown to the catalog; the next weekly compaction deletes it")
    if in_turn:
        sync_one = partial(sync_tenant, session, repair=repair, allow_deletes=allow_deletes)
        results = list(map(sync_one, tenants))
    else:
        results = _sync_all(session, tenants, repair=repair, allow_deletes=allow_deletes)
    if as_json:
        syncs = [result.as_json() for result in results]
        print_json(syncs[0] if len(syncs) == 1 and not every else {"tenants": syncs})
    else:
        for result in results:
            print_sync(result)
    # The lanes run `sync --in-turn --json`, and this process warns about the clock for all of them.
    _print_warnings(session, results, warns_of_clock=not (in_turn and as_json))
    return all(result.error is None for result in results)


def _print_warnings(
    session: Session, results: Sequence[TenantSync], *, warns_of_clock: bool
) -> None:
    """Warn about deletions that are held back, and about a clock that may be wrong."""
    for result in results:
        if result.held:
            warn(_build_held_warning(session, result))
        if result.error is None:
            for held_deletion in session.catalog.departures.list_held(result.tenant):
                if held_deletion.is_manifest:
                    warn(held_deletion.warning)
    if warns_of_clock:
        session.warn_of_clock()


def _accept_catalog(session: Session, tenant_id: str) -> bool:
    """Accept a tenant's catalog; return whether it was restored from an earlier dump."""
    from rag_assets.pipeline.mark_keeper import accept_catalog

    with session.writer(tenant_id, "accepting the catalog") as ctx:
        accepted = accept_catalog(ctx)
    outcome = "is accepted, and compared with all stores" if accepted else "was not set back"
    progress(f"{tenant_id}: the catalog {outcome}")
    return accepted


def _build_held_warning(session: Session, result: TenantSync) -> str:
    from rag_assets.pipeline.mark_keeper import build_held_warning

    record = session.get_active_tenant(result.tenant)
    held_deletions = session.catalog.syncs.list_held(record.id)
    return build_held_warning(
        record.id, held_deletions, session.keeper.find_deletion_refusal(record.ref)
    )


def _sync_all(
    session: Session, tenants: Sequence[str], *, repair: bool, allow_deletes: bool
) -> list[TenantSync]:
    """Sync tenants, concurrently in forks if several have work to do and a fork server runs."""
    from rag_assets.cli.sync_lanes import SyncLanes

    sync_here = partial(sync_tenant, session, repair=repair, allow_deletes=allow_deletes)
    if len(tenants) == 1:
        return [sync_here(tenants[0])]
    results: dict[str, TenantSync] = {}
    due: list[str] = []
    for tenant_id in tenants:
        result = TenantSync(tenant_id)
        if not (repair or allow_deletes) and _has_nothing_to_do(session, result):
            results[tenant_id] = result
        else:
            due.append(tenant_id)
    flags = {"--repair": repair, "--allow-deletes": allow_deletes}
    lanes = SyncLanes(session.settings.home, [name for name, flag in flags.items() if flag])
    if len(due) > 1:
        answers = lanes.sync(due)
        results |= {answer["tenant"]: TenantSync.from_json(answer) for answer in answers}
    return [results.get(tenant_id) or sync_here(tenant_id) for tenant_id in tenants]


def _has_nothing_to_do(session: Session, result: TenantSync) -> bool:
    """Return whether a tenant has nothing to do, and record what it waits for in `result`.

    False after an error, because the sync reports the error.
    """
    started = monotonic()
    try:
        result.nothing_to_do = not (
            _find_index_differences(session, result.tenant) or _is_due(session, result.tenant)
        )
        result.waiting = session.catalog.quarantine.count_deferred(result.tenant)
        result.held = _count_held_deletions(session, result.tenant)
    except RagAssetsError:
        return False
    result.seconds = monotonic() - started
    return result.nothing_to_do


def sync_tenant(
    session: Session, tenant_id: str, *, repair: bool = False, allow_deletes: bool = False
) -> TenantSync:
    """Run the pipeline for a tenant until no work remains.

    Returns:
        The result over all runs, which contains the error if the sync failed.
    """
    started = monotonic()
    result = TenantSync(tenant_id)
    try:
        if repair or _needs_repair(session, tenant_id):
            _repair(session, tenant_id, is_complete=repair)
        elif not (allow_deletes or _is_due(session, tenant_id)):
            result.nothing_to_do = True
            result.held = _count_held_deletions(session, tenant_id)
        if not result.nothing_to_do:
            _run_until_done(session, result, allow_deletes=allow_deletes)
        result.waiting = session.catalog.quarantine.count_deferred(tenant_id)
    except RagAssetsError as error:
        result.error = error
    result.seconds = monotonic() - started
    return result


def _count_held_deletions(session: Session, tenant_id: str) -> int:
    return sum(sync.held_deletions for sync in session.catalog.syncs.list_held(tenant_id))


def print_sync(result: TenantSync) -> None:
    """Print the result of each stage, waiting documents, and the error."""
    if result.nothing_to_do:
        say(f"{result.tenant}: nothing to do ({format_seconds(result.seconds)})")
    else:
        _print_stages(result)
    if result.waiting:
        say(
            f"{format_count(result.waiting, 'document')} wait for a batch at the provider,"
            " up to a day:"
            f" rag-assets documents {result.tenant} shows it; a later sync fetches its results"
        )
    if result.error is not None:
        from rag_assets.cli.output import print_error

        print_error(result.error, as_json=False)


def _print_stages(result: TenantSync) -> None:
    stages = result.as_json()["stages"]
    rows = [
        (
            name,
            "  ".join(f"{c.replace('_', ' ')} {stages[name][c]:,}" for c in PRINTED_COUNTS[name]),
            format_seconds(stages[name]["seconds"]),
        )
        for name in STAGES
        if name in result.stages
    ]
    runs = format_count(len(result.runs), "run")
    say(f"{result.tenant}: {runs}, {format_seconds(result.seconds)}")
    if rows:
        print_table(["stage", "result", "time"], rows)
    if result.cost or result.unpriced_tokens:
        say(_format_cost(result, stages["embeddings"]))
    # The error already states the number of documents that wait for the embedder.
    known = [name for name in STAGES if not stages[name].get("halted")]
    if failed := sum(stages[name].get("failed", 0) for name in known):
        say(
            f"{format_count(failed, 'document')} failed: rag-assets documents"
            f" {result.tenant} shows why"
        )


def _format_cost(result: TenantSync, used: Mapping[str, int]) -> str:
    """Format the cost and the number of requests of embedding."""
    cost = f"{dollars(result.cost)} spent" if result.cost else "no price known"
    more = f", {result.unpriced_tokens:,} tokens without a known price" if result.cost else ""
    retries = f" ({format_count(used['retries'], 'retry', 'retries')})" if used["retries"] else ""
    requests = (
        f"{format_count(used['tokens'], 'token')} in {format_count(used['requests'], 'request')}"
    )
    return f"{cost}: {requests}{retries}{more if result.unpriced_tokens else ''}"


def _needs_repair(session: Session, tenant_id: str) -> bool:
    """Return whether the index differs from the catalog, so that it must be repaired.

    Raises:
        IndexInconsistent: the index differs, but automatic repair is off for the tenant, or the
            index was replaced.
        IndexUnavailable: the index is closed, blocked or red.
    """
    differences = _find_index_differences(session, tenant_id)
    if not differences:
        return False
    is_automatic = session.embedders.tenant(session.get_active_tenant(tenant_id)).auto_repair
    if not is_automatic or any(difference.is_replaced for difference in differences):
        raise IndexInconsistent(
            "; ".join(difference.text for difference in differences),
            hint=f"restore it without embedding anything: rag-assets sync {tenant_id} --repair",
        )
    for difference in differences:
        progress(f"{difference.text}; repairing it")
    return True


def _find_index_differences(session: Session, tenant_id: str) -> list[IndexDifference]:
    from rag_assets.pipeline.drift import find_index_differences

    ref = session.get_active_tenant(tenant_id).ref
    differences = find_index_differences(session.catalog, session.store, session.keeper, [ref])
    return differences.get(tenant_id, [])


def _is_due(session: Session, tenant_id: str) -> bool:
    """Return whether the tenant has work to do; the sources are listed only if necessary."""
    from rag_assets.pipeline.batches import poll_batches
    from rag_assets.sensors.due import explain_due
    from rag_assets.sensors.state import read_tenant_state

    catalog = session.catalog
    record = session.get_active_tenant(tenant_id)
    catalog.quarantine.retry_transient_failures(record.ref)
    for trouble in poll_batches(catalog, session.embedders, catalog.batches.list_open(tenant_id)):
        warn(trouble)
    tenant = session.embedders.tenant(record)
    synced_sources = catalog.syncs.all(tenant_id)
    if any(source.name not in synced_sources for source in tenant.sources):
        return True
    state = read_tenant_state(catalog, record, tenant, session.settings)
    # A source that cannot be listed needs a run, which fails with the reason.
    reason = explain_due(state, datetime.now(UTC), wait_for_retry=False)
    return bool(state.unlisted) or reason is not None


def _repair(session: Session, tenant_id: str, *, is_complete: bool) -> None:
    """Repair a tenant's stores from the catalog.

    Args:
        is_complete: whether all data is compared, or only the day's share.
    """
    config = {"repair_live_index": {"config": {"everything": is_complete}}}
    repaired = session.runner.run("repair_index", tenant_id, config)
    if repaired.failure is not None:
        raise repaired.failure


def _run_until_done(session: Session, result: TenantSync, *, allow_deletes: bool) -> None:
    from rag_assets.pipeline.listing import ListingPace

    pace = ListingPace()
    halt: RagAssetsError | None = None
    previous: object = None
    while True:
        pace.has_changed = pace.has_changed or _will_watcher_sync(session, result.tenant)
        config: dict[str, dict[str, Any]] = {
            "raw_documents": {"allow_deletes": allow_deletes},
            "embeddings": {"spent": result.cost + result.promised},
        }
        run = session.runner.run_slice(result.tenant, pace, config)
        result.add(run)
        if run.failure is not None and not run.is_halted:
            raise run.failure
        # The command reports the failure after the work that needs no embedder.
        halt = halt or _find_halting_error(run)
        pending = run.stages["search_index"].counts["pending"]
        if not pending and (pace.is_listing or not (pace.has_changed and pace.is_due)):
            break
        progress(f"{pending:,} documents remaining")
        now = (pending, run.stages["embeddings"].counts["remaining"])
        if now == previous and not _has_progressed(run):
            raise RagAssetsError(
                f"the last run made no progress with {pending} documents of {result.tenant}",
                hint=f"run `rag-assets documents {result.tenant}` to see their status and errors",
            )
        previous = now
    if halt is not None:
        raise halt


def _will_watcher_sync(session: Session, tenant_id: str) -> bool:
    """Return whether the change watcher reports that it will sync the tenant."""
    from rag_assets.runtime.watch_report import WatchReportFile

    return tenant_id in WatchReportFile(session.settings).read().marked


def _has_progressed(run: RunResult) -> bool:
    """Return whether a run embedded or published anything."""
    index = run.stages["search_index"].counts
    done = (index.get("published documents", 0), index.get("unchanged documents", 0))
    return any((run.stages["embeddings"].counts["embedded"], *done))


def _find_halting_error(run: RunResult) -> RagAssetsError | None:
    """Return the error that stopped embedding in a run, if any."""
    if run.failure is None:
        return None
    remedy = run.stages["embeddings"].remedy or ""
    return RagAssetsError(run.failure.message.removesuffix(f"; {remedy}"), hint=remedy)
