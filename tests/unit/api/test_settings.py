from __future__ import annotations

import pytest

from rag_assets.api.settings import ServiceSettings
from rag_assets.common.errors import ConfigurationError


def test_origins_are_parted_by_commas() -> None:
    settings = ServiceSettings.from_environment(
        {"RAG_ASSETS_MCP_ORIGINS": "https://app.example, vscode-file://vscode-app,"}
    )
    assert settings.mcp_origins == {"https://app.example", "vscode-file://vscode-app"}
    assert not ServiceSettings.from_environment({}).mcp_origins


@pytest.mark.parametrize(
    "origin", ["*", "null", "app.example", "https://app.example/", "HTTPS://a"]
)
def test_what_is_no_origin_is_refused(origin: str) -> None:
    with pytest.raises(ConfigurationError, match="not an origin"):
        ServiceSettings.from_environment({"RAG_ASSETS_MCP_ORIGINS": origin})
