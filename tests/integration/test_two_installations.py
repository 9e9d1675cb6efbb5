"""Two installations in one process: the resources of each use its own stores."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rag_assets.common.installation import Installation
from rag_assets.declarations import PLAIN
from rag_assets.definitions import build_defs
from rag_assets.resources.stores import close_all
from rag_assets.resources.workbench import Workbench
from rag_assets.search import Retriever
from rag_assets.search.model import SearchRequest
from rag_assets.sensors.tenants import tenants_sensor
from rag_assets.tenants.file import TenantsFile
from tests.databases import create_database, drop_database
from tests.installation import FAST

TENANT = "acme"


class Team:
    """One of the two installations; both have a tenant of the same name.

    Args:
        folder: for its home and its documents.
        installation: the value that names it.
    """

    def __init__(self, folder: Path, installation: Installation, text: str) -> None:
        self.defs = build_defs(installation=installation)
        self.instance = dg.DagsterInstance.ephemeral(tempdir=str(folder))
        documents = folder / "documents"
        documents.mkdir()
        (documents / "page.md").write_text(text)
        source = {"name": "files", "type": "files", "root": str(documents)}
        entry = {"id": TENANT, "profile": "documents", "sources": [source], **FAST}
        TenantsFile(folder / "home" / "tenants.yaml").add(entry)

    @property
    def resources(self) -> dict[str, Any]:
        return dict(self.defs.resources or {})

    @property
    def workbench(self) -> Workbench:
        found: Workbench = self.resources["rag_assets_workbench"]
        return found

    def sync(self) -> None:
        """Read the tenant from tenants.yaml, and index its document."""
        used = {name: self.resources[f"rag_assets_{name}"] for name in ("postgres", "runs")}
        with dg.build_sensor_context(
            instance=self.instance,
            resources={f"rag_assets_{name}": one for name, one in used.items()},
        ) as context:
            tenants_sensor.build(PLAIN)(context)
        self.instance.add_dynamic_partitions(PLAIN.partitions_name, [TENANT])
        job = self.defs.resolve_job_def("sync_tenant")
        assert job.execute_in_process(instance=self.instance, partition_key=TENANT).success

    def texts(self) -> list[str]:
        """Return the texts that a question finds."""
        catalog = self.workbench.postgres.catalog()
        embedders = self.workbench.embedders.embedders(catalog)
        request = SearchRequest.of(query="where are backups kept?", mode="text")
        with closing(Retriever(catalog, self.workbench.elasticsearch.store(), embedders)) as asked:
            return [hit.text for hit in asked.search(TENANT, request).hits]


@pytest.fixture
def teams(
    postgres_url: str, elasticsearch_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Team]]:
    """Create two installations, neither of which the environment names."""
    for name in [name for name in os.environ if re.fullmatch(r"RAG_ASSETS_\w+_URL", name)]:
        monkeypatch.delenv(name)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("RAG_ASSETS_HOME", str(elsewhere))
    monkeypatch.setenv("RAG_ASSETS_LAKE_URL", str(elsewhere / "lake"))
    monkeypatch.setenv("RAG_ASSETS_MASTER_KEY_FILE", str(tmp_path / "master.key"))
    names = [f"t{uuid.uuid4().hex[:12]}" for _ in range(2)]
    made = []
    for name in names:
        (tmp_path / name / "home").mkdir(parents=True)
        installation = Installation(
            home=tmp_path / name / "home",
            database_url=create_database(postgres_url, name),
            elasticsearch_url=elasticsearch_url,
            index_prefix=name,
        )
        made.append(Team(tmp_path / name, installation, f"Backups of {name} are kept."))
    yield made
    for team in made:
        team.instance.dispose()
        indexes = team.workbench.elasticsearch.store().indexes
        for index in indexes.names():
            indexes.drop(index)
    close_all()
    for name in names:
        drop_database(postgres_url, name)
    assert list(elsewhere.iterdir()) == [], "nothing was written to the environment's home"


def test_two_installations_in_one_process_sync_and_answer_from_their_own_stores(
    teams: list[Team],
) -> None:
    for team in teams:
        team.sync()
    for team in teams:
        settings = team.workbench.installation.settings
        assert team.texts() == [f"Backups of {settings.index_prefix} are kept."]
        lake = settings.local / "lake"
        assert any(lake.iterdir())
    first, second = (team.workbench.postgres.identity() for team in teams)
    assert first.id != second.id
    assert first.home != second.home


@pytest.mark.filterwarnings("ignore:Property `ScheduleDefinition.environment_vars`")
def test_the_addresses_of_an_installation_are_in_no_snapshot_of_its_definitions(
    tmp_path: Path,
) -> None:
    from dagster._core.remote_representation.external_data import RepositorySnap

    address = "postgresql://me:example-password@db/knowledge"
    defs = build_defs(installation=Installation(home=tmp_path, database_url=address))
    shown = dg.serialize_value(RepositorySnap.from_def(defs.get_repository_def()))
    assert "example-password" not in shown
