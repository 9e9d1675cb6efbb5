"""What is done with pushed records, worked out of what there is in the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rag_assets.storage.catalog.pushed_records import PushedRecord


@dataclass(frozen=True, slots=True)
class RecordPut:
    """A record to store.

    Attributes:
        record: as it was pushed.
        scope: its access scope, given by the record itself, its source or the tenant; None: that of
            its page.
        lane: 0 where a person waits for it, 1 of many at once.
        secret_blocks: ids of blocks of a page that its application does not want kept any more.
    """

    record: PushedRecord
    scope: str | None
    lane: int = 0
    secret_blocks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RecordChanges:
    """What is done with records.

    Attributes:
        puts: records to store.
        removals: ids of documents whose records go.
        pages: of a workspace that are deleted, with what hangs on them but is not stored.
    """

    puts: Sequence[RecordPut] = ()
    removals: Collection[str] = ()
    pages: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Present:
    """What there is, as far as a plan depends on it.

    Attributes:
        records: by document id.
        below: pages below those of a workspace that the plan may delete.
        standing: those of these pages that another record stands for: they take nothing along.
    """

    records: Mapping[str, PushedRecord]
    below: Mapping[str, Collection[str]]
    standing: Collection[str] = ()


RecordPlan: TypeAlias = Callable[[Present], RecordChanges]
"""From what there is to what is done with it."""
