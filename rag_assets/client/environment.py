"""Settings of the client from the environment.

| variable | default | meaning |
|---|---|---|
| RAG_ASSETS_URL | http://127.0.0.1:8000 | address of the service |
| RAG_ASSETS_TOKEN | required | a service token or a JWT |
| RAG_ASSETS_TENANT | none | default for calls without a tenant |
| RAG_ASSETS_PROJECT | none | default for calls about guidelines or code without a project |
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypedDict

from rag_assets.common.errors import ConfigurationError


class ClientOptions(TypedDict):
    """The arguments of a client that environment variables determine."""

    url: str
    token: str
    tenant: str | None
    project: str | None


def from_environment(environ: Mapping[str, str] | None = None) -> ClientOptions:
    """Read the settings.

    Raises:
        ConfigurationError: RAG_ASSETS_TOKEN is not set.
    """
    env = os.environ if environ is None else environ
    token = env.get("RAG_ASSETS_TOKEN")
    if not token:
        raise ConfigurationError(
            "RAG_ASSETS_TOKEN is not set",
            hint="create a service token with `rag-assets tokens create`",
        )
    return ClientOptions(
        url=env.get("RAG_ASSETS_URL") or "http://127.0.0.1:8000",
        token=token,
        tenant=env.get("RAG_ASSETS_TENANT") or None,
        project=env.get("RAG_ASSETS_PROJECT") or None,
    )
