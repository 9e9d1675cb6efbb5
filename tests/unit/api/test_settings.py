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
    with pytest.raises(ConfigurationError, match="invalid origin"):
        ServiceSettings.from_environment({"RAG_ASSETS_MCP_ORIGINS": origin})


def test_workers_share_what_there_is_enough_of() -> None:
    given = {"RAG_ASSETS_SERVICE_WORKERS": "4"}
    assert ServiceSettings.from_environment(given).workers == 4
    assert ServiceSettings.from_environment(given, workers=2).workers == 2
    assert ServiceSettings.from_environment({}).workers == 1
    for few in ({"RAG_ASSETS_SERVICE_SEARCHES": "7"}, {"RAG_ASSETS_SERVICE_THREADS": "3"}):
        [name] = few
        with pytest.raises(
            ConfigurationError, match=f"{name} is .: too few to share among 4 workers"
        ):
            ServiceSettings.from_environment({**given, **few})
        assert ServiceSettings.from_environment(few).workers == 1
