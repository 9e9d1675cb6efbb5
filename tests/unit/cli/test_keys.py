"""A rotation leaves no sealed setting of Elasticsearch without a master key."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rag_assets.cli import keys
from rag_assets.common.elasticsearch_settings import ElasticsearchSettings
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.settings import Settings
from rag_assets.runtime.elasticsearch_access import find_external_connection, seal_secret

SECRET = "secret-key"


class _NoStoredKeys:
    """The table of stored keys of a catalog without keys."""

    @contextmanager
    def rotation_lock(self) -> Iterator[None]:
        yield

    def all(self) -> list[object]:
        return []

    def reseal_all(self, _: object) -> int:
        return 0


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("RAG_ASSETS_MASTER_KEY", "RAG_ASSETS_MASTER_KEY_PREVIOUS"):
        monkeypatch.delenv(name, raising=False)
    (home := tmp_path / "home").mkdir()
    file = tmp_path / "keys" / "master.key"
    made = Settings(home=home, elasticsearch_url="https://a:9200", master_key_file=file)
    sealed = ElasticsearchSettings(api_key=seal_secret(made, SECRET))
    return replace(made, elasticsearch=sealed)


def rotate(settings: Settings, *, as_json: bool = False) -> None:
    tenants = SimpleNamespace(all=list)
    catalog = SimpleNamespace(provider_keys=_NoStoredKeys(), tenants=tenants)
    command: Any = keys.rotate
    command.__wrapped__(SimpleNamespace(settings=settings, catalog=catalog), as_json=as_json)


def api_key(settings: Settings) -> str | None:
    connection = find_external_connection(settings)
    assert connection is not None
    return connection.api_key


def test_rotate_prints_a_sealed_setting_sealed_with_the_new_key(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    rotate(settings)
    printed = capsys.readouterr().out
    assert "RAG_ASSETS_ELASTICSEARCH_API_KEY" in printed
    [sealed] = re.findall(r"^sealed:\S+$", printed, re.MULTILINE)
    with pytest.raises(ConfigurationError, match="cannot be unsealed"):
        api_key(settings)
    assert api_key(replace(settings, elasticsearch=ElasticsearchSettings(api_key=sealed))) == SECRET
    assert SECRET not in printed


def test_rotate_names_the_file_of_a_sealed_setting_in_json(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path / "api.key").write_text(f"{settings.elasticsearch.api_key}\n")
    given = replace(settings, elasticsearch=ElasticsearchSettings(api_key_file=file))
    rotate(given, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    file.write_text(printed["sealed"]["RAG_ASSETS_ELASTICSEARCH_API_KEY_FILE"])
    assert api_key(given) == SECRET


def test_the_former_key_stays_until_the_sealed_setting_is_printed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(keys, "say", fail)
    with pytest.raises(BrokenPipeError):
        rotate(settings)
    assert api_key(settings) == SECRET


def test_a_sealed_setting_that_does_not_open_prevents_a_rotation(settings: Settings) -> None:
    assert settings.master_key_file is not None
    before = settings.master_key_file.read_text()
    altered = replace(settings, elasticsearch=ElasticsearchSettings(api_key="sealed:AAAA"))
    with pytest.raises(ConfigurationError, match="API_KEY cannot be unsealed"):
        rotate(altered)
    assert settings.master_key_file.read_text() == before


def test_rotate_without_a_sealed_setting_reports_the_number_alone(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    rotate(replace(settings, elasticsearch=ElasticsearchSettings()), as_json=True)
    assert json.loads(capsys.readouterr().out) == {"rotated": 0}
