"""Projects are checked before the catalog's transaction, and only once."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rag_assets.common.errors import InvalidRequest
from rag_assets.common.settings import Settings
from rag_assets.pipeline import tenancy as module
from rag_assets.pipeline.tenancy import Projects
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import Compose, PutProject
from rag_assets.tenants.projects import Project, ProjectSettings

PROJECT = Project("documents", "acme", "one")


class Table:
    """The catalog's table of projects, in memory."""

    def __init__(self) -> None:
        self.transactions = 0

    def find(self, project: Project) -> None:
        return None

    def put(self, project: Project, compose: Compose) -> PutProject:
        self.transactions += 1
        compose(project.tenant_ids[-1], None)
        return PutProject(cast("Any", None), created=True, changed=True)


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
def projects(table: Table, tmp_path: Path) -> Projects:
    settings = Settings(home=tmp_path)
    model = '{"provider": "local", "path": "/nowhere"}'
    settings.tenants_file.write_text(f"projects:\n  embedder: {model}\ntenants: []\n")
    return Projects(cast("Catalog", SimpleNamespace(projects=table)), settings)


def test_put_with_a_missing_model_opens_no_transaction(projects: Projects, table: Table) -> None:
    with pytest.raises(InvalidRequest, match="cannot be used"):
        projects.put(PROJECT, ProjectSettings())
    assert table.transactions == 0


def test_put_checks_the_same_configuration_once(
    projects: Projects, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[Any] = []
    monkeypatch.setattr(module, "require_usable", lambda config, _: checked.append(config))
    projects.put(PROJECT, ProjectSettings())
    assert len(checked) == table.transactions == 1
