"""A program that only asks need not load what answers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rag_assets.client import Client
from rag_assets.client.environment import from_environment
from rag_assets.common.errors import ConfigurationError

HEAVY = {"dagster", "polars", "elasticsearch", "sqlalchemy", "numpy", "fastapi", "mcp", "openai"}


@pytest.mark.slow
def test_importing_the_client_loads_nothing_heavy() -> None:
    code = "import sys, rag_assets.client; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "httpx2" in loaded
    assert not HEAVY & set(loaded)


def test_the_environment_has_url_token_tenant_and_project() -> None:
    given = {"RAG_ASSETS_TOKEN": "t", "RAG_ASSETS_URL": "https://rag.example"}
    found = {"url": "https://rag.example", "token": "t"}
    assert from_environment(given) == {**found, "tenant": None, "project": None}
    named = {"RAG_ASSETS_TENANT": "acme", "RAG_ASSETS_PROJECT": "web"}
    assert from_environment({**given, **named}) == {**found, "tenant": "acme", "project": "web"}
    with pytest.raises(ConfigurationError, match="RAG_ASSETS_TOKEN"):
        from_environment({})


def test_a_client_does_not_show_its_token() -> None:
    with Client("https://rag.example", "secret") as client:
        assert repr(client) == "Client('https://rag.example')"
