"""Proof of a purge: no trace of the documents was found in any store that can be reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from typing import Any, Final

from rag_assets.common.batches import batched
from rag_assets.common.errors import ErasureIncomplete
from rag_assets.common.settings import Settings
from rag_assets.pipeline.blobs import nobodys_blobs
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.former_places import count_files_left, open_former_places
from rag_assets.pipeline.live_keys import needed_keys
from rag_assets.pipeline.traces import Traces
from rag_assets.storage.catalog.erasure.traces import DagsterHistory
from rag_assets.storage.installation.home import machine_name
from rag_assets.storage.lake.model import DeadKeys

_OUT_OF_REACH: Final = {
    "Postgres's write-ahead log": "its files are overwritten after the next checkpoints",
    "free space in files of tables": "rewritten when its page is filled again, or by VACUUM FULL",
    "snapshots and backups of Postgres, Elasticsearch, the lake and blobs": (
        "by their own retention"
    ),
    "files of sources": "a source keeps its documents; they are not added again while unchanged",
}
_MATCHED_AT_ONCE = 500
LEFT_IN_FILES: Final = ("deleted entries in segments", "dead rows in tables")
"""Keys of a proof for deleted data that files still contain."""
_AT_THE_PROVIDER: Final = {"logs of the embedding provider": "by the provider's retention"}
_IN_OTHER_INSTANCES: Final = {
    "runs of earlier versions in other Dagster instances than those that are named": (
        "deleted by the sensor `tenants` of each, where it runs"
    )
}
_IN_SERVERLESS: Final = {
    "files of Elastic Serverless": "deleted entries go when Elastic merges its segments"
}


def prove(
    ctx: TenantContext,
    traces: Traces,
    deleted_entries: int | None,
    dead_rows: int,
    *,
    uploaded: bool,
) -> dict[str, Any]:
    """Search every store for remaining data of documents.

    Args:
        traces: traces of the documents.
        uploaded: whether files were uploaded with the documents.
        deleted_entries: number of deleted entries that the index's files still contain; None if it
            cannot be determined.
        dead_rows: number of deleted rows that Postgres's tables still contain.

    Returns:
        The kinds of traces searched for, the traces found by store, and the locations that cannot
        be reached, with the time when data there is deleted.
    """
    found: dict[str, int | list[str]] = {
        "index": _found_in_index(ctx, traces),
        "lake": _found_in_lake(ctx, traces),
        "postgres": _found_in_postgres(ctx, traces),
    }
    if open_former_places(ctx.catalog, ctx.settings).lakes:
        found["former places"] = count_files_left(ctx, traces.dead)
    if uploaded:
        # Blobs that other uploads need are not leftovers; any other blob is.
        found["blobs"] = len(nobodys_blobs(ctx.catalog, ctx.blobs, ctx.ref))
    return _proof(ctx, traces.kinds, found, deleted_entries, dead_rows)


def prove_masked(
    ctx: TenantContext, dead: DeadKeys, deleted_entries: int | None, dead_rows: int
) -> dict[str, Any]:
    """Search for texts with credentials by their hashes, after everything was scanned.

    Args:
        dead: keys of the texts in the lake.
        deleted_entries, dead_rows: see prove.
    """
    traces = Traces(dead=dead)
    found = {"index": _found_in_index(ctx, traces), "lake": _found_in_lake(ctx, traces)}
    return _proof(ctx, ["hashes"], found, deleted_entries, dead_rows)


def require_nothing_left(
    left: Mapping[str, Any],
    subject: str,
    command: str,
    histories: Sequence[DagsterHistory] = (),
) -> None:
    """Require that a search after an erasure has found no data.

    Args:
        left: the data found, by store.
        subject: what is erased, for the message.
        command: the command that continues the erasure.
        histories: Dagster instances that still hold runs of the erased data, perhaps in the
            catalog's database.

    Raises:
        ErasureIncomplete: data was found.
    """
    places = ", ".join(f"{place}: {found}" for place, found in left.items() if found)
    instances = ", ".join(one.place for one in histories)
    waiting = (
        f" once the Dagster instance {instances} has deleted its runs: start its daemon, or set"
        " DAGSTER_HOME to that instance"
        if instances
        else ""
    )
    if places:
        raise ErasureIncomplete(
            f"data of {subject} is left ({places}), so no receipt was written yet",
            hint=f"the erasure stays open: continue it with `{command}`{waiting}",
        )


def _proof(
    ctx: TenantContext,
    searched_for: Sequence[str],
    found: Mapping[str, Any],
    deleted_entries: int | None,
    dead_rows: int,
) -> dict[str, Any]:
    unseen = open_former_places(ctx.catalog, ctx.settings).unseen
    remote = ctx.tenant.embedder.provider not in {"local", "deterministic"}
    return proof_of(searched_for, found, deleted_entries, dead_rows, unseen=unseen, remote=remote)


def total_left(counts: Iterable[int | None]) -> int | None:
    """Return the sum of the counts of several indexes; None if a count is unknown."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def proof_of(
    searched_for: Sequence[str],
    found: Mapping[str, Any],
    deleted_entries: int | None,
    dead_rows: int,
    *,
    unseen: Sequence[str],
    remote: bool,
) -> dict[str, Any]:
    """Return the kinds of traces searched for and the traces found, as stored in a receipt.

    Args:
        searched_for: kinds of traces.
        found: the traces found, by store.
        deleted_entries, dead_rows: see prove.
        unseen: former locations of the installation that could not be searched.
        remote: whether texts were sent to a provider.
    """
    return {
        "searched for": [*searched_for],
        "found": dict(found),
        "deleted entries in segments": deleted_entries,
        "dead rows in tables": dead_rows,
        "places not seen": [*unseen],
        "complete": not (any(found.values()) or deleted_entries or dead_rows or unseen),
        "out of reach": {
            **_OUT_OF_REACH,
            **(_AT_THE_PROVIDER if remote else {}),
            **(_IN_SERVERLESS if deleted_entries is None else {}),
        },
    }


def name_dagster_instance(
    proof: Mapping[str, Any], settings: Settings, others: Sequence[DagsterHistory]
) -> dict[str, Any]:
    """Return a removal's proof with the Dagster instances that recorded runs of the tenant.

    Args:
        proof: the proof of the removal.
        settings: name the Dagster instance from which the tenant's records were deleted.
        others: instances that still hold records of the tenant.
    """
    folder = settings.dagster_home or settings.own_dagster_home
    until = "deleted by its sensor `tenants`; start its daemon"
    remaining = {f"runs in the Dagster instance {one.place}": until for one in others}
    return {
        **proof,
        "Dagster instance": f"{folder} on {machine_name()}",
        "other Dagster instances": [
            {
                "id": one.instance,
                "place": one.place,
                "last run": one.last_run_at.astimezone(UTC).isoformat(timespec="seconds"),
            }
            for one in others
        ],
        "out of reach": {**proof["out of reach"], **remaining, **_IN_OTHER_INSTANCES},
    }


def entries_left(ctx: TenantContext, traces: Traces) -> dict[str, set[str]]:
    """Return the entries with data of documents, by index.

    Such an entry has the id or a hash of a document, or a phrase in a text that no document needs.
    The catalog may lack the build that the entry belongs to, for example after a restore.
    """
    needed = needed_keys(ctx).known.texts or set()
    values = {"document_id": traces.document_ids, "text_sha256": sorted(traces.dead.texts)}
    entries, left = ctx.store.entries, dict[str, set[str]]()
    for index_name in ctx.store.indexes.names():
        ids = {
            id_
            for field, wanted in values.items()
            for batch in batched(wanted, _MATCHED_AT_ONCE)
            for id_ in entries.matching(index_name, ctx.ref.id, field, batch)
        }
        for phrase in traces.phrases:
            holding = entries.containing(index_name, ctx.ref.id, phrase)
            ids.update(id_ for id_, text_sha256 in holding.items() if text_sha256 not in needed)
        if ids:
            left[index_name] = ids
    return left


def _found_in_index(ctx: TenantContext, traces: Traces) -> int:
    found = set[str]().union(*entries_left(ctx, traces).values())
    if (vectors := ctx.store.vectors) is not None:
        found.update(vectors.matching(ctx.ref.id, "document_id", traces.document_ids))
        found.update(vectors.matching(ctx.ref.id, "text_sha256", sorted(traces.dead.texts)))
    return len(found)


def _found_in_lake(ctx: TenantContext, traces: Traces) -> int:
    """Return how many lake files contain the documents' rows, or a phrase in an unneeded row.

    Files that no table lists are searched as well.
    """
    return len(ctx.lake.files_holding(traces.dead, traces.phrases, needed_keys(ctx).known))


def _found_in_postgres(ctx: TenantContext, traces: Traces) -> list[str]:
    texts = [*traces.document_ids, *traces.dead.parsed, *traces.dead.chunk_sets]
    texts += [*traces.dead.texts, *traces.phrases]
    return ctx.catalog.traces.find_columns(ctx.ref.id, texts, traces.names)
