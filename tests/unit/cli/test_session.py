"""A session uses the Dagster instance in the folder that DAGSTER_HOME names."""

from pathlib import Path

import pytest

from rag_assets.cli.session import TEMPLATES, Session
from rag_assets.common.errors import ConfigurationError

DAGSTER_YAML = """
storage:
  postgres:
    postgres_url:
      env: TEAM_PG_URL
"""


@pytest.mark.parametrize(
    ("dagster_yaml", "message"),
    [
        (None, "DAGSTER_HOME is not a folder"),
        (DAGSTER_YAML, "DAGSTER_HOME: .* TEAM_PG_URL is not set"),
        ("storage: {sqlite: {password: secret}}", "DAGSTER_HOME: .*: DagsterInvalidConfigError"),
        ("storage: {", "DAGSTER_HOME: .*: "),
    ],
)
def test_instance_of_an_unusable_dagster_home_names_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dagster_yaml: str | None, message: str
) -> None:
    team = tmp_path / "team"
    if dagster_yaml is not None:
        team.mkdir()
        (team / "dagster.yaml").write_text(dagster_yaml)
    with (
        open_session(tmp_path, str(team), monkeypatch) as session,
        pytest.raises(ConfigurationError, match=message) as raised,
    ):
        _ = session.instance
    assert "secret" not in str(raised.value)


def test_a_relative_dagster_home_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        open_session(tmp_path, "team", monkeypatch) as session,
        pytest.raises(ConfigurationError, match="DAGSTER_HOME is a relative path"),
    ):
        _ = session.instance


def test_a_dagster_project_keeps_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_session(tmp_path, "", monkeypatch) as session:
        (home := tmp_path / "home").joinpath("dagster.yaml").write_text("telemetry: {}\n")
        session.prepare_home()
        folder = session.settings.own_dagster_home
        assert (folder / "dagster.yaml").read_text() == (TEMPLATES / "dagster.yaml").read_text()
        (folder / "dagster.yaml").write_text("# ours\n")
        session.prepare_home()
    assert {path.name for path in home.iterdir()} == {".local", "dagster.yaml"}
    assert (home / "dagster.yaml").read_text() == "telemetry: {}\n"
    assert (folder / "dagster.yaml").read_text() == "# ours\n", "what was changed stays"


def open_session(tmp_path: Path, dagster_home: str, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("RAG_ASSETS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RAG_ASSETS_DATABASE_URL", "postgresql://localhost:1/catalog")
    monkeypatch.setenv("RAG_ASSETS_ELASTICSEARCH_URL", "http://localhost:1")
    monkeypatch.setenv("DAGSTER_HOME", dagster_home)
    monkeypatch.delenv("DAGSTER_STORAGE_DIR", raising=False)
    monkeypatch.delenv("TEAM_PG_URL", raising=False)
    (tmp_path / "home").mkdir()
    return Session()
