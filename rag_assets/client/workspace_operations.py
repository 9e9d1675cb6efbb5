"""The operations of workspaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rag_assets.api.workspace_responses import PageAccess, Settings, TreeChange
from rag_assets.client.calls import Call

_SETTINGS = "/rag/settings"
_PAGE = "/rag/tree/{uuid}"


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


def delete_page(uuid: str, *, tenant: str | None = None) -> Call[TreeChange]:
    """Delete a page, those below it, and all records that hang on them. For admins."""
    return Call("DELETE", _PAGE, TreeChange, named={"uuid": uuid}, parameters={"tenant": tenant})


def page_access(
    page_uuid: str, principals: Sequence[str], *, tenant: str | None = None
) -> Call[PageAccess]:
    """Whether one of these principals may read a page, and by which page and grant. For admins."""
    parameters = {"page_uuid": page_uuid, "principal": [*principals], "tenant": tenant}
    return Call("GET", "/rag/access", PageAccess, parameters=parameters)
