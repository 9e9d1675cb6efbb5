"""The operations of workspaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Literal

from rag_assets.api.workspace_responses import (
    PageAccess,
    Settings,
    TreeChange,
    TreeLines,
    TreePage,
    TreePages,
    TreeReconciled,
)
from rag_assets.client.calls import join_lines, operation

_SETTINGS_PATH = "/rag/settings"
_PAGE_PATH = "/rag/tree/{uuid}"
_BULK_SECONDS = 300.0
_write = partial(operation, query=("tenant",))


@operation("GET", _SETTINGS_PATH, Settings)
def workspace_settings(*, tenant: str | None = None) -> None:
    """Return the effective settings of a workspace."""


@_write("PATCH", _SETTINGS_PATH, Settings)
def change_workspace_settings(
    settings: Mapping[str, Any], *, tenant: str | None = None
) -> dict[str, Any]:
    """Change settings of a workspace.

    Args:
        settings: enabled, provider, embedding_model, base_url, dimensions, vector_backend,
            resolved_comment_days; None restores the operator's configuration.
    """
    return {"body": dict(settings)}


@_write("PUT", _PAGE_PATH, TreeChange)
def put_page(
    uuid: str,
    *,
    kind: Literal["page", "database"] = "page",
    parent: str | None = None,
    inherit: bool = True,
    read: Sequence[str] = (),
    archived: bool = False,
    ai: Literal["on", "off"] = "on",
    tenant: str | None = None,
) -> dict[str, Any]:
    """Put a new or changed page into the tree of a workspace. For admins and writers.

    Args:
        uuid: uuid of the page; the page `root` is above all others.
        parent: uuid of the page above it, which may be put later; None stands for the root.
        inherit: True adds `read` to the readers of the page above; False replaces them with `read`.
        read: readers of the page and of everything below it.
        archived: whether the page and everything below it are excluded from searches.
        ai: `off` excludes the page and everything below it from searches.
    """
    body = {"kind": kind, "parent": parent, "inherit": inherit, "read": [*read]}
    return {"body": {**body, "archived": archived, "ai": ai}}


@_write("PATCH", _PAGE_PATH, TreeChange)
def change_page(
    uuid: str, change: Mapping[str, Any], *, tenant: str | None = None
) -> dict[str, Any]:
    """Change some fields of a page. For admins and writers.

    Args:
        change: any of kind, parent, inherit, read, archived, ai; other fields stay unchanged.
    """
    return {"body": dict(change)}


@_write("POST", "/rag/tree", TreeLines, seconds=_BULK_SECONDS)
def write_tree(lines: Sequence[Mapping[str, Any]], *, tenant: str | None = None) -> dict[str, Any]:
    """Put and change many pages in one transaction, in any order. For admins and writers.

    Args:
        lines: at most 5,000 lines. Each has `uuid`, `op` (put by default, or change), and the
            fields of put_page or change_page.
    """
    return {"lines": join_lines(lines)}


@operation(
    "POST",
    "/rag/tree/reconcile",
    TreeReconciled,
    query=("apply", "allow_deletes", "as_of", "tenant"),
    seconds=_BULK_SECONDS,
)
def reconcile_tree(
    manifest: Sequence[Mapping[str, Any]],
    *,
    apply: bool | None = None,
    allow_deletes: bool | None = None,
    as_of: datetime | None = None,
    tenant: str | None = None,
) -> dict[str, Any]:
    """Compare all pages of the application with the tree. For admins and writers.

    Args:
        manifest: for each page, its `uuid` and the fields of put_page.
        apply: change the tree to match the manifest. Pages that the manifest does not name are
            deleted with all their records.
        allow_deletes: delete such pages even if there are many.
        as_of: when the manifest was created; by default, when it is sent.
    """
    return {"lines": join_lines(manifest)}


@operation("GET", _PAGE_PATH, TreePage)
def page(uuid: str, *, tenant: str | None = None) -> None:
    """Return a page of the tree. For admins and writers."""


@operation("GET", "/rag/tree", TreePages)
def pages(
    *,
    parent: str | None = None,
    after: str | None = None,
    limit: int | None = None,
    tenant: str | None = None,
) -> None:
    """Return a list of pages of the tree, by uuid. For admins and writers.

    Args:
        parent: only pages directly below this page.
        after: the `next` of the previous list.
        limit: maximum number of pages, up to 10,000.
    """


@operation("DELETE", _PAGE_PATH, TreeChange)
def delete_page(uuid: str, *, tenant: str | None = None) -> None:
    """Delete a page, the pages below it, and all their records. For admins and writers."""


@operation("GET", "/rag/access", PageAccess)
def page_access(
    page_uuid: str, principals: Sequence[str], *, tenant: str | None = None
) -> dict[str, Any]:
    """Return whether principals may read a page, with the page and the grant that decide it.

    For admins.
    """
    parameters = {"page_uuid": page_uuid, "principal": [*principals], "tenant": tenant}
    return {"parameters": parameters}
