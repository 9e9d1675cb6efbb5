"""The tree of a workspace from its application's database: all pages, compared with the known ones.

A row that is not a page is set aside: its page and the pages above it stay as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from rag_assets.common.errors import DeletionsHeld, InvalidRequest, ListingFailed
from rag_assets.records.pages import ROOT
from rag_assets.systems.workspace.pulling.database import ForeignRow
from rag_assets.systems.workspace.pulling.following import Follower
from rag_assets.systems.workspace.pulling.rows import key_of_row, to_json, to_text, to_truth
from rag_assets.systems.workspace.tree import Page, looping_pages
from rag_assets.systems.workspace.tree_service import PageDraft, TreeService

_ID: Final = "id"
_COLUMNS: Final[Mapping[str, Callable[[Any, ZoneInfo], Any]]] = MappingProxyType(
    {
        "parent": to_text,
        "kind": to_text,
        "inherit": to_truth,
        "read": to_json,
        "archived": to_truth,
        "ai": to_text,
    }
)


def pull_tree(follower: Follower, began: datetime, *, scan: bool, allow_deletes: bool) -> None:
    """Make the tree equal to the database's; only a scan removes pages that it no longer has.

    Args:
        follower: of the source.
        began: when the snapshot was opened; pages that were put later are not removed.
        scan: whether to remove pages that the database does not have.
        allow_deletes: whether any number of pages may be removed.

    Raises:
        ListingFailed: the query failed, or has a column that is not a field of a page.
    """
    puller, report, config = follower.puller, follower.report, follower.config
    service = TreeService(puller.catalog, puller.blobs, puller.masker)
    names, rows = follower.database.tree()
    unknown = [name for name in names if name not in {_ID, *_COLUMNS}]
    if unknown:
        raise ListingFailed(
            f"source {config.name!r}: the query of tree has a column {unknown[0]!r} that is none of"
            " a page",
            hint=f"a page has: {', '.join([_ID, *_COLUMNS])}",
        )
    pages, aside = _read(service, follower.zone, names, rows)
    report.set_aside += Counter(f"tree.{column}" for column in aside.values())
    # A page that occurs only as the parent in another row may have been put, so it stays.
    kept = aside.keys() | {page.parent or ROOT for page in pages.values()} - pages.keys()
    may_remove = scan and (bool(rows) or allow_deletes)

    def reconcile(*, remove: bool) -> int:
        done = service.reconcile(
            puller.ref.id,
            pages,
            as_of=began,
            by=follower.by,
            apply=True,
            remove_extra=remove,
            allow_deletes=allow_deletes,
            keep=kept,
        )
        report.pages += done.missing + done.stale
        report.pages_removed += done.removed
        return done.extra

    follower.lock.check()
    try:
        reconcile(remove=may_remove)
    except DeletionsHeld:
        extra = reconcile(remove=False)
        # Under a separate name: deletions of the source's records are judged separately.
        payload = {"source": f"{config.name} (tree)", "vanished": extra}
        puller.catalog.events.write(puller.ref, "deletions_held", [payload])


def _read(
    service: TreeService, zone: ZoneInfo, names: Sequence[str], rows: Sequence[ForeignRow]
) -> tuple[dict[str, Page], dict[str, str]]:
    """Return the pages by uuid, and the wrong column of each row that is not a page."""
    pages: dict[str, Page] = {}
    aside: dict[str, str] = {}
    for row in rows:
        uuid = key_of_row(row.values[names.index(_ID)])
        try:
            page = _page(names, row, zone, uuid)
            service.require_plain(page)
        except _Aside as problem:
            aside[uuid] = problem.column
        except InvalidRequest:
            aside[uuid] = _ID
        else:
            pages[uuid] = page
    for uuid in looping_pages(pages):
        del pages[uuid]
        aside[uuid] = "parent"
    return pages, aside


class _Aside(Exception):
    """A row that is not a page.

    Attributes:
        column: the column that is wrong.
    """

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


def _page(names: Sequence[str], row: ForeignRow, zone: ZoneInfo, uuid: str) -> Page:
    """Return the page in a row.

    Raises:
        _Aside: the row is not a page.
        InvalidRequest: its id cannot be the id of a page.
    """
    if row.largest is not None:
        raise _Aside(names[row.largest])
    given: dict[str, Any] = {}
    for name, value in zip(names, row.values, strict=True):
        if name == _ID or value is None:
            continue
        try:
            given[name] = _COLUMNS[name](value, zone)
        except ValueError:
            raise _Aside(name) from None
    try:
        return PageDraft.model_validate(given).page(uuid)
    except ValidationError as error:
        raise _Aside(str(error.errors()[0]["loc"][0])) from None
