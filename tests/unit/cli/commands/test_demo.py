from __future__ import annotations

from ruamel.yaml import YAML

from rag_assets.cli.commands.demo import INCLUDE, SETTINGS, TENANT
from rag_assets.common.settings import PROJECT_ROOT


def test_the_demo_adds_the_same_tenant_as_the_projects_file() -> None:
    listed = YAML(typ="safe").load((PROJECT_ROOT / "tenants.yaml").read_text())["tenants"]
    [entry] = [entry for entry in listed if entry["id"] == TENANT]
    assert {name: value for name, value in entry.items() if name in SETTINGS} == SETTINGS
    assert entry.keys() - SETTINGS.keys() == {"id", "sources"}
    assert [source["include"] for source in entry["sources"]] == [INCLUDE]
