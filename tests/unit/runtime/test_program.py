from dataclasses import replace
from pathlib import Path

import pytest

from rag_assets.common.elasticsearch_settings import ElasticsearchSettings
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.common.settings import Settings
from rag_assets.runtime.program_processes import fingerprint_program


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "rag_assets").mkdir()
    (tmp_path / "rag_assets" / "module.py").write_text("A = 1\n")
    return tmp_path


def test_fingerprint_covers_code_and_settings(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(home=root)
    first = fingerprint_program(settings, root)
    assert fingerprint_program(settings, root) == first
    endpoints = PrivateEndpoints.parse("127.0.0.1,10.0.0.0/8")
    assert fingerprint_program(replace(settings, private_endpoints=endpoints), root) != first
    (root / "rag_assets" / "module.py").write_text("A = 10\n")
    second = fingerprint_program(settings, root)
    assert second != first
    (root / "rag_assets" / "__pycache__").mkdir()
    (root / "rag_assets" / "__pycache__" / "module.pyc").touch()
    settings.tenants_file.write_text("tenants: [{id: a, api_key: $OWN_KEY}]\n")
    assert fingerprint_program(settings, root) == second
    monkeypatch.setenv("OWN_KEY", "a")
    third = fingerprint_program(settings, root)
    monkeypatch.setenv("OWN_KEY", "b")
    assert len({second, third, fingerprint_program(settings, root)}) == 3


def test_fingerprint_changes_with_secrets_of_elasticsearch(root: Path) -> None:
    given = [
        ElasticsearchSettings(),
        ElasticsearchSettings(api_key="a"),
        ElasticsearchSettings(api_key="b"),
        ElasticsearchSettings(username="me", password="a"),
        ElasticsearchSettings(username="me", password="b"),
    ]
    settings = [Settings(home=root, elasticsearch=each) for each in given]
    assert len({fingerprint_program(setting, root) for setting in settings}) == len(given)


def test_terminals_have_the_same_fingerprint(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = fingerprint_program(Settings(home=root), root)
    for name in ("TERM", "LANG", "LC_TIME", "SSH_CONNECTION", "OTHER_TOKEN"):
        monkeypatch.setenv(name, "another")
    assert fingerprint_program(Settings(home=root), root) == first
