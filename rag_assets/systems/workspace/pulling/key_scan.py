"""Compares all keys of a database with what is stored: what is gone, and what changed unseen."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from datetime import datetime
from typing import IO

from rag_assets.common.batches import batched
from rag_assets.common.errors import DeletionsHeld
from rag_assets.pipeline.blobs import drop_blobs
from rag_assets.storage.catalog.record_manifests import NAMED, ManifestComparison, ManifestLine
from rag_assets.systems.workspace.pulling.following import Follower
from rag_assets.systems.workspace.pulling.rows import key_of_row, time_of_row
from rag_assets.systems.workspace.pulling.source import TYPES, RecordType
from rag_assets.systems.workspace.pulling.states import row_key

_BATCH = 2_000
_PART = "block"


def scan_keys(follower: Follower, *, allow_deletes: bool) -> None:
    """Remove records whose rows are gone, and read again what has changed unseen.

    Keys are compared only after all of them were read, so that a query that fails takes nothing.

    Args:
        follower: of the source, after it has followed the queries in the same snapshot.
        allow_deletes: whether any number of records may be removed.

    Raises:
        ListingFailed: a query failed; nothing was removed.
    """
    puller, report, name = follower.puller, follower.report, follower.config.name
    gone = set(follower.aside)
    # The tenant's writers wait while keys are compared: by then all of them lie here.
    with tempfile.TemporaryFile() as spool:
        for source_type in follower.config.queries:
            _spool(follower, source_type, spool, gone)
        report.read_again = _differing(follower, _compare(follower, spool))
        for source_type in report.read_again:
            follower.follow(source_type, None)
        report.held = 0
        try:
            done = _compare(follower, spool, remove=True, allow_deletes=allow_deletes)
        except DeletionsHeld:
            report.held = _compare(follower, spool).counts["extra"]
            payload = {"source": name, "vanished": report.held}
            puller.catalog.events.write(puller.ref, "deletions_held", [payload])
        else:
            report.removed = done.removed
            if done.blobs:
                drop_blobs(puller.catalog, puller.blobs, puller.ref, done.blobs)
    for keys in batched(gone, _BATCH):
        follower.states.forget_rows(puller.ref, name, keys)


def _of_rows(follower: Follower) -> list[RecordType]:
    """Types whose records are rows: a block is a part of its page."""
    return [one for one in TYPES if one in follower.config.queries and one != _PART]


def _spool(follower: Follower, source_type: RecordType, spool: IO[bytes], gone: set[str]) -> None:
    for given, at in follower.database.keys(source_type):
        source_id = key_of_row(given)
        key = row_key(source_type, source_id)
        gone.discard(key)
        # What was set aside is stored as it was before, if at all.
        changed = None if key in follower.aside else time_of_row(at, follower.zone)
        said = None if changed is None else changed.isoformat()
        if source_type != _PART and "\x00" not in source_id:
            line = json.dumps([source_type, source_id, said], ensure_ascii=True)
            spool.write(line.encode() + b"\n")


def _compare(
    follower: Follower, spool: IO[bytes], *, remove: bool = False, allow_deletes: bool = False
) -> ManifestComparison:
    spool.seek(0)
    return follower.puller.catalog.record_manifests.compare(
        follower.puller.ref,
        follower.config.name,
        _lines(spool),
        remove_extra=remove,
        allow_deletes=allow_deletes,
        by=follower.by,
    )


def _lines(spool: IO[bytes]) -> Iterator[ManifestLine]:
    for line in spool:
        source_type, source_id, said = json.loads(line)
        at = None if said is None else datetime.fromisoformat(said)
        yield ManifestLine(source_type, source_id, at)


def _differing(follower: Follower, found: ManifestComparison) -> tuple[RecordType, ...]:
    """Types with rows that are not stored as they are, though nothing is wrong with them."""
    unseen = {
        one.source_type
        for one in found.named
        if one.difference != "extra"
        and row_key(one.source_type, one.source_id) not in follower.aside
    }
    if max(found.counts["missing"], found.counts["stale"]) > NAMED:
        return tuple(_of_rows(follower))
    return tuple(one for one in _of_rows(follower) if one in unseen)
