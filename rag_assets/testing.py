"""A pytest plugin with the fixture `knowledge_base`, for a team's own tests.

```python
def test_the_wiki_is_indexed(knowledge_base, tmp_path):
    knowledge_base.add_tenant("eu", tmp_path / "wiki")
    defs = knowledge_base.build_defs(upstream=["wiki_export"])
    done = dg.materialize(
        [wiki_export, *knowledge_base.get_assets(defs)],
        partition_key="eu",
        resources=defs.resources,
        instance=knowledge_base.instance,
    )
    assert done.success
```

The fixture uses a real, embedded Postgres with a separate database for each test. The index is in
memory. The embedder is `deterministic`: vectors are hashes of texts, so only equal texts are found.
Tests therefore cannot show how well documents are found by meaning.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import dagster as dg

    from rag_assets.common.installation import Installation
    from rag_assets.plugins.system import System
    from rag_assets.storage.index.store import VectorStore

EMBEDDER = {"provider": "deterministic"}
"""An embedder whose vectors are hashes of texts, without any meaning."""


@dataclass
class KnowledgeBase:
    """An installation for one test.

    Attributes:
        installation: home folder and database of the installation.
        instance: Dagster's instance, in memory, with a partition for each tenant.
    """

    installation: Installation
    instance: dg.DagsterInstance
    _tenants: list[str] = field(default_factory=list)
    _partitions: set[str] = field(default_factory=set)

    def add_tenant(self, tenant_id: str, folder: Path, **config: Any) -> None:
        """Add a tenant whose documents are the files of a folder; create the folder if necessary.

        Args:
            tenant_id: id of the tenant, as in `tenants.yaml`.
            folder: folder of the tenant's only source, which is named `files`.
            config: further settings of the tenant, as in `tenants.yaml`.
        """
        from rag_assets.pipeline.tenancy import reconcile_tenants
        from rag_assets.resources.installation import InstallationResource
        from rag_assets.resources.stores import PostgresResource
        from rag_assets.tenants.file import TenantsFile

        folder.mkdir(parents=True, exist_ok=True)
        source = {"name": "files", "type": "files", "root": str(folder)}
        settings = self.installation.settings()
        TenantsFile(settings.tenants_file).add(
            {"id": tenant_id, "sources": [source], "embedder": EMBEDDER, **config}
        )
        installation = InstallationResource.from_installation(self.installation)
        postgres = PostgresResource(installation=installation)
        reconcile_tenants(postgres.catalog(), settings, postgres.identity())
        self._tenants.append(tenant_id)
        self._add_partitions()

    def build_defs(self, **arguments: Any) -> dg.Definitions:
        """Build this installation's definitions; see `rag_assets.dagster.build_defs`."""
        import rag_assets.dagster

        self._partitions.add(f"{arguments.get('name', 'rag_assets')}_tenants")
        self._add_partitions()
        extra_resources = arguments.pop("resources", {})
        resources = {"elasticsearch": _build_memory_index(self.installation), **extra_resources}
        return rag_assets.dagster.build_defs(
            installation=self.installation, resources=resources, **arguments
        )

    @staticmethod
    def get_assets(definitions: dg.Definitions) -> list[dg.AssetsDefinition]:
        """Return the assets of the definitions that a run can materialize, for `dg.materialize`."""
        import dagster as dg

        assets = definitions.assets or ()
        return [
            asset
            for asset in assets
            if isinstance(asset, dg.AssetsDefinition) and asset.is_materializable
        ]

    def _add_partitions(self) -> None:
        for name in self._partitions:
            self.instance.add_dynamic_partitions(name, self._tenants)


def require_texts_declared(
    system: System, exempt: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Require that a system declares each column of its tables that can contain texts.

    Credentials in a column that is missing from `System.texts` are not masked when rules change.

    Args:
        exempt: the reason why a column contains no texts of people or sources, by "table.column".

    Raises:
        AssertionError: names the columns without a declaration or a reason.
    """
    from rag_assets.plugins.registry import load_reference
    from rag_assets.storage.catalog.erasure.traces import list_text_columns

    columns = {
        f"{name}.{column.name}"
        for name, reference in system.tables.items()
        for column in list_text_columns(load_reference(reference))
        if column.name != "tenant"
    }
    undeclared = sorted(columns - {*system.texts, *exempt})
    if undeclared:
        message = f"add to `texts` of {system.name!r}, or exempt with a reason: {undeclared}"
        raise AssertionError(message)
    unknown = sorted({*system.texts, *exempt} - columns)
    if unknown:
        raise AssertionError(f"{system.name!r} has no such columns of texts: {unknown}")


@pytest.fixture(scope="session")
def knowledge_base_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of an embedded Postgres, which is stopped after the tests."""
    from rag_assets.runtime.postgres import EmbeddedPostgres

    server = EmbeddedPostgres(tmp_path_factory.mktemp("postgres"))
    server.start()
    try:
        yield server.superuser_url
    finally:
        server.stop()


@pytest.fixture
def knowledge_base(knowledge_base_postgres: str, tmp_path: Path) -> Iterator[KnowledgeBase]:
    """Yield an installation without tenants, with its own database and home folder."""
    import dagster as dg
    import psycopg
    from psycopg import sql

    from rag_assets.common.installation import Installation
    from rag_assets.resources.stores import close_all

    name = f"kb{uuid.uuid4().hex[:12]}"
    home = tmp_path / "knowledge_base"
    home.mkdir()
    with psycopg.connect(knowledge_base_postgres, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    url = knowledge_base_postgres.rpartition("/")[0] + f"/{name}"
    with dg.DagsterInstance.ephemeral() as instance:
        yield KnowledgeBase(Installation(home=home, database_url=url), instance)
    close_all()
    _open_memory.cache_clear()


def _build_memory_index(installation: Installation) -> Any:
    from rag_assets.resources.installation import InstallationResource
    from rag_assets.resources.stores import ElasticsearchResource

    home = str(installation.home)

    class MemoryIndex(ElasticsearchResource):
        """An index in the memory of the tests' process."""

        def store(self) -> VectorStore:
            return _open_memory(home)

    return MemoryIndex(installation=InstallationResource.from_installation(installation))


@cache
def _open_memory(_home: str) -> VectorStore:
    """Return the installation's in-memory index.

    All runs share it, although each run creates its own resources.
    """
    from rag_assets.storage.index.store import MEMORY, StoreConfig, open_store

    return open_store(StoreConfig(MEMORY))
