"""Plans for changes of pushed records, computed from the state in the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias

from rag_assets.storage.catalog.pushed_records import PushedRecord


@dataclass(frozen=True, slots=True)
class WriteClock:
    """The time of a write according to its application; it orders the writes of one record.

    Attributes:
        updated_at: when the record was changed.
        version: a number that rises with each change.
    """

    updated_at: datetime | None = None
    version: int | None = None

    def is_before(self, other: WriteClock) -> bool:
        """Return whether a write is older than another: by version, or else by time.

        False if the two writes have no value in common.
        """
        if self.version is not None and other.version is not None:
            return self.version < other.version
        if self.updated_at is None or other.updated_at is None:
            return False
        return self.updated_at < other.updated_at

    def merge(self, other: WriteClock) -> WriteClock:
        """Return the latest time and the highest version of two writes."""
        times = [at for at in (self.updated_at, other.updated_at) if at is not None]
        versions = [number for number in (self.version, other.version) if number is not None]
        return WriteClock(max(times, default=None), max(versions, default=None))


UNORDERED: Final = WriteClock()
"""A write without a time and a version: it never counts as older than another."""


@dataclass(frozen=True, slots=True)
class RecordPut:
    """A record to store.

    Attributes:
        record: the record as it was pushed.
        scope: its access scope, given by the record itself, its source or the tenant; None: its
            page's scope.
        lane: 0 if a person waits for it, 1 for bulk writes.
        secret_blocks: ids of blocks of a page that its application no longer wants kept.
    """

    record: PushedRecord
    scope: str | None
    lane: int = 0
    secret_blocks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RecordChanges:
    """Changes of records.

    Attributes:
        puts: records to store.
        removals: ids of documents with records to remove.
        pages: pages of the tree to delete, with attached documents that are not stored.
        pages_deleted_at: the earliest time at which one of these pages was deleted.
        clocks: the latest write of each record, by document and part: see `record_clocks`.
    """

    puts: Sequence[RecordPut] = ()
    removals: Collection[str] = ()
    pages: Collection[str] = ()
    pages_deleted_at: datetime | None = None
    clocks: Mapping[str, dict[str, WriteClock]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Present:
    """The current state, as far as a plan depends on it.

    Attributes:
        records: the stored records, by document id.
        below: pages below those that the plan may delete.
        standing: pages among them that another record still represents; their documents stay.
        clocks: the latest write of each record, by document and part: see `record_clocks`.
        etags: ETags of the records that a write may be conditional on, by document.
    """

    records: Mapping[str, PushedRecord]
    below: Mapping[str, Collection[str]]
    standing: Collection[str] = ()
    clocks: Mapping[str, dict[str, WriteClock]] = field(default_factory=dict)
    etags: Mapping[str, str] = field(default_factory=dict)


RecordPlan: TypeAlias = Callable[[Present], RecordChanges]
"""A function from the current state to the changes."""
