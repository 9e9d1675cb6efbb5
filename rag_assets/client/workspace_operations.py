"""The operations of workspaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_assets.api.workspace_responses import Settings
from rag_assets.client.calls import Call

_SETTINGS = "/rag/settings"


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
