from pathlib import Path

import pytest
from ruamel.yaml import YAML

from rag_assets.cli.demo import INCLUDE, SETTINGS, TENANT, _add_tenant, find_program_path
from rag_assets.cli.session import Session
from rag_assets.common.settings import PROJECT_ROOT


def test_the_demo_adds_the_same_tenant_as_the_projects_file() -> None:
    listed = YAML(typ="safe").load((PROJECT_ROOT / "tenants.yaml").read_text())["tenants"]
    [entry] = [entry for entry in listed if entry["id"] == TENANT]
    assert {name: value for name, value in entry.items() if name in SETTINGS} == SETTINGS
    assert entry.keys() - SETTINGS.keys() == {"id", "sources"}
    assert [source["include"] for source in entry["sources"]] == [INCLUDE]


def test_an_empty_home_gets_one_handbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_ASSETS_HOME", str(tmp_path))
    with Session() as session:
        _add_tenant(session)
        copied = tmp_path / "examples" / "handbook"
        original = PROJECT_ROOT / "examples" / "handbook"
        names = {path.relative_to(original) for path in original.rglob("*")}
        assert Path("policies/.gitignore") in names
        assert {path.relative_to(copied) for path in copied.rglob("*")} == names
        (overview := copied / "architecture" / "overview.md").write_text("# Mine\n")
        _add_tenant(session)
    assert overview.read_text() == "# Mine\n"
    [entry] = YAML(typ="safe").load((tmp_path / "tenants.yaml").read_text())["tenants"]
    assert [source["root"] for source in entry["sources"]] == ["examples/handbook"]


def test_program_path_is_relative_in_the_folder_and_absolute_elsewhere() -> None:
    home = Path("/srv/home")
    assert find_program_path(home / ".venv", home) == Path(".venv/bin/rag-assets")
    of_uv = Path("/root/.cache/uv/archive-v0/x")
    assert find_program_path(of_uv, home) == of_uv / "bin/rag-assets"
