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
    """Return an environment that names another installation."""
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


def test_an_installation_without_values_is_that_of_the_environment(environ: dict[str, str]) -> None:
    assert Installation().settings(environ) == Settings.from_environment(environ)


def test_own_values_replace_the_environments(environ: dict[str, str], tmp_path: Path) -> None:
    urls = {"database_url": "postgresql://db/own", "elasticsearch_url": "https://b"}
    own = Installation(home=tmp_path, index_prefix="own", **urls).settings(environ)
    assert (own.home, own.index_prefix, own.elasticsearch_url) == (tmp_path, "own", "https://b")
    assert (own.lake_url, own.blobs_url) == (f"{own.local}/lake", f"{own.local}/blobs")
    assert (own.database_url, own.service_database_url) == ("postgresql://db/own", None)
    inherited = Settings.from_environment(environ)
    assert own.private_endpoints == inherited.private_endpoints


@pytest.mark.parametrize("address", ["RAG_ASSETS_ELASTICSEARCH_URL", "ELASTICSEARCH_URL"])
def test_accounts_keep_their_server(environ: dict[str, str], tmp_path: Path, address: str) -> None:
    environ[address] = environ.pop("RAG_ASSETS_ELASTICSEARCH_URL")
    environ["RAG_ASSETS_ELASTICSEARCH_SHARDS"] = "3"
    (key := tmp_path / "key").write_text("own")
    other = Installation(elasticsearch_url="https://b", elasticsearch_api_key_file=key)
    found = other.settings(environ).elasticsearch
    assert (found.api_key, found.api_key_file) == (None, key)
    assert found.layout.shards == 3
    same = Installation(elasticsearch_url="https://a").settings(environ).elasticsearch
    assert same.api_key == "key"


def test_an_own_account_replaces_the_former_one(environ: dict[str, str], tmp_path: Path) -> None:
    environ["RAG_ASSETS_ELASTICSEARCH_FINGERPRINT"] = "ab" * 32
    for name in ("key", "ca.pem"):
        (tmp_path / name).write_text("own")
    key, certificate = tmp_path / "key", tmp_path / "ca.pem"
    own = Installation(elasticsearch_api_key_file=key, elasticsearch_ca_file=certificate)
    settings = own.settings(environ)
    found = settings.elasticsearch
    assert settings.elasticsearch_url == "https://a"
    assert (found.api_key, found.api_key_file) == (None, tmp_path / "key")
    assert (found.fingerprint, found.ca_file) == (None, tmp_path / "ca.pem")


def test_an_address_in_code_uses_the_account_in_the_environment(environ: dict[str, str]) -> None:
    del environ["RAG_ASSETS_ELASTICSEARCH_URL"]
    own = Installation(elasticsearch_url="https://b").settings(environ)
    assert own.elasticsearch.api_key == "key"


def test_a_cloud_deployment_in_the_environment_is_another_server(environ: dict[str, str]) -> None:
    del environ["RAG_ASSETS_ELASTICSEARCH_URL"]
    environ["RAG_ASSETS_ELASTICSEARCH_CLOUD_ID"] = "name:YWJj"
    found = Installation(elasticsearch_url="https://b").settings(environ).elasticsearch
    assert (found.cloud_id, found.api_key) == (None, None)


def test_an_installation_may_have_stores_elsewhere(environ: dict[str, str], tmp_path: Path) -> None:
    own = Installation(home=tmp_path, lake_url="s3://a/lake", blobs_url="s3://a/blobs")
    settings = own.settings(environ)
    assert (settings.lake_url, settings.blobs_url) == ("s3://a/lake", "s3://a/blobs")
    assert settings.database_url == ELSEWHERE


def test_a_malformed_value_is_refused_as_in_the_environment(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="RAG_ASSETS_INDEX_PREFIX is not valid"):
        Installation(index_prefix="No!").settings(environ)


def test_the_resource_reads_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_KNOWLEDGE_URL", "postgresql://db/team")
    given = Installation(home=tmp_path, database_url=dg.EnvVar("TEAM_KNOWLEDGE_URL"))
    settings = InstallationResource.from_installation(given).settings
    assert settings.database_url == "postgresql://db/team"
    assert settings.home == tmp_path
