"""The value that names an installation, and the resource that carries it."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.installation import Installation
from rag_assets.common.settings import Settings
from rag_assets.resources.installation import InstallationResource

ELSEWHERE = "postgresql://db/elsewhere"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment that names another installation."""
    home = tmp_path / "environment"
    home.mkdir()
    return {
        "RAG_ASSETS_HOME": str(home),
        "RAG_ASSETS_DATABASE_URL": ELSEWHERE,
        "RAG_ASSETS_SERVICE_DATABASE_URL": "postgresql://service@db/elsewhere",
        "RAG_ASSETS_ELASTICSEARCH_URL": "https://a",
        "RAG_ASSETS_ELASTICSEARCH_API_KEY": "key",
        "RAG_ASSETS_LAKE_URL": str(home / "other-lake"),
        "RAG_ASSETS_BLOBS_URL": str(home / "other-blobs"),
        "RAG_ASSETS_PRIVATE_ENDPOINTS": "models:8000",
    }


def test_an_installation_without_values_is_that_of_the_environment(
    environ: dict[str, str],
) -> None:
    assert Installation().settings(environ) == Settings.from_environment(environ)


def test_what_an_installation_names_replaces_the_environments(
    environ: dict[str, str], tmp_path: Path
) -> None:
    own = Installation(
        home=tmp_path,
        database_url="postgresql://db/own",
        elasticsearch_url="https://b",
        index_prefix="own",
    ).settings(environ)
    assert (own.home, own.index_prefix, own.elasticsearch_url) == (tmp_path, "own", "https://b")
    assert (own.lake_url, own.blobs_url) == (f"{own.local}/lake", f"{own.local}/blobs")
    assert (own.database_url, own.service_database_url) == ("postgresql://db/own", None)
    inherited = Settings.from_environment(environ)
    assert own.elasticsearch == inherited.elasticsearch, "its account"
    assert own.private_endpoints == inherited.private_endpoints


def test_an_installation_may_have_stores_elsewhere(environ: dict[str, str], tmp_path: Path) -> None:
    own = Installation(home=tmp_path, lake_url="s3://a/lake", blobs_url="s3://a/blobs")
    settings = own.settings(environ)
    assert (settings.lake_url, settings.blobs_url) == ("s3://a/lake", "s3://a/blobs")
    assert settings.database_url == ELSEWHERE


def test_a_malformed_value_is_refused_as_in_the_environment(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="RAG_ASSETS_INDEX_PREFIX is not usable"):
        Installation(index_prefix="No!").settings(environ)


def test_the_resource_reads_a_variable_that_a_value_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_KNOWLEDGE_URL", "postgresql://db/team")
    given = Installation(home=tmp_path, database_url=dg.EnvVar("TEAM_KNOWLEDGE_URL"))
    settings = InstallationResource.from_installation(given).settings
    assert settings.database_url == "postgresql://db/team"
    assert settings.home == tmp_path
