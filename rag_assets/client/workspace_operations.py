"""The operations of workspaces."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
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
from rag_assets.client.calls import Call

_SETTINGS = "/rag/settings"
_PAGE = "/rag/tree/{uuid}"
_MANY_SECONDS = 300.0


def workspace_settings(*, tenant: str | None = None) -> Call[Settings]:
    """The settings of a workspace, as they are in force."""
    return Call("GET", _SETTINGS, Settings, parameters={"tenant": tenant})


def change_workspace_settings(
    settings: Mapping[str, Any], *, tenant: str | None = None
) -> Call[Settings]:
    """Set what is given of a workspace's settings.

    Args:
        settings: enabled, provider, embedding_model, base_url, dimensions, vector_backend,
            resolved_comment_days; None stands for what the operator has configured.
    """
    return Call("PATCH", _SETTINGS, Settings, parameters={"tenant": tenant}, body=dict(settings))


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
) -> Call[TreeChange]:
    """Put a page into the tree of a workspace, or what it is now. For admins.

    Args:
        uuid: of the page; `root` is above all others.
        kind: what it is.
        parent: the page above it, which may be put later; None: the root.
        inherit: whether `read` is added to who reads what is above it; else it replaces them.
        read: who reads it and what is below it.
        archived: whether it and what is below it leave the knowledge.
        ai: `off` takes it and what is below it out of the knowledge.
    """
    body = {"kind": kind, "parent": parent, "inherit": inherit, "read": [*read]}
    body |= {"archived": archived, "ai": ai}
    return Call(
        "PUT", _PAGE, TreeChange, named={"uuid": uuid}, parameters={"tenant": tenant}, body=body
    )


def change_page(
    uuid: str, change: Mapping[str, Any], *, tenant: str | None = None
) -> Call[TreeChange]:
    """Change what is given of a page, such as its parent alone. For admins and writers.

    Args:
        uuid: of the page.
        change: kind, parent, inherit, read, archived, ai; what is not given stays.
    """
    parameters = {"tenant": tenant}
    return Call(
        "PATCH", _PAGE, TreeChange, named={"uuid": uuid}, parameters=parameters, body=dict(change)
    )


def write_tree(lines: Sequence[Mapping[str, Any]], *, tenant: str | None = None) -> Call[TreeLines]:
    """Put and change many pages in one transaction, whatever their order. For admins and writers.

    Args:
        lines: each with `uuid`, `op` (put, which is the default, or change), and what put_page and
            change_page have; at most 5,000.
    """
    return Call(
        "POST",
        "/rag/tree",
        TreeLines,
        parameters={"tenant": tenant},
        lines="\n".join(json.dumps(dict(line)) for line in lines),
        seconds=_MANY_SECONDS,
    )


def reconcile_tree(
    manifest: Sequence[Mapping[str, Any]],
    *,
    apply: bool | None = None,
    allow_deletes: bool | None = None,
    as_of: datetime | None = None,
    tenant: str | None = None,
) -> Call[TreeReconciled]:
    """Compare all pages of the application with the tree. For admins and writers.

    Args:
        manifest: of each page its `uuid`, and what put_page has.
        apply: make the tree the same; pages that it does not name go with all that hangs on them.
        allow_deletes: however many they are.
        as_of: when the manifest was made; by default, when it is sent.
    """
    at = None if as_of is None else as_of.isoformat()
    return Call(
        "POST",
        "/rag/tree/reconcile",
        TreeReconciled,
        parameters={
            "apply": apply,
            "allow_deletes": allow_deletes,
            "as_of": at,
            "tenant": tenant,
        },
        lines="\n".join(json.dumps(dict(line)) for line in manifest),
        seconds=_MANY_SECONDS,
    )


def page(uuid: str, *, tenant: str | None = None) -> Call[TreePage]:
    """Return a page as it stands in the tree. For admins and writers."""
    return Call("GET", _PAGE, TreePage, named={"uuid": uuid}, parameters={"tenant": tenant})


def pages(
    *,
    parent: str | None = None,
    after: str | None = None,
    limit: int | None = None,
    tenant: str | None = None,
) -> Call[TreePages]:
    """Return a list of pages of the tree, by uuid. For admins and writers.

    Args:
        parent: only those directly below this page.
        after: the `next` of the list before.
        limit: pages at most, up to 10,000.
    """
    parameters = {"parent": parent, "after": after, "tenant": tenant}
    return Call("GET", "/rag/tree", TreePages, parameters={**parameters, "limit": limit})


def delete_page(uuid: str, *, tenant: str | None = None) -> Call[TreeChange]:
    """Delete a page, those below it, and all records that hang on them. For admins."""
    return Call("DELETE", _PAGE, TreeChange, named={"uuid": uuid}, parameters={"tenant": tenant})


def page_access(
    page_uuid: str, principals: Sequence[str], *, tenant: str | None = None
) -> Call[PageAccess]:
    """Whether one of these principals may read a page, and by which page and grant. For admins."""
    parameters = {"page_uuid": page_uuid, "principal": [*principals], "tenant": tenant}
    return Call("GET", "/rag/access", PageAccess, parameters=parameters)
