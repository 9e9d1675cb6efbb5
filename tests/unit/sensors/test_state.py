from collections.abc import Iterator
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.files import FilesSource
from rag_assets.ingest.sources.model import ListedDocument
from rag_assets.sensors import state as states
from rag_assets.sensors.due import TenantState
from rag_assets.storage.catalog.builds.progress import WorkLeft
from rag_assets.tenants.model import Tenant
from tests.installation import FAST
from tests.unit.sensors.test_due import sync


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the source of each listing."""
    seen: list[str] = []
    former = FilesSource.list

    def list_files(source: FilesSource) -> Iterator[ListedDocument]:
        seen.append(source.name)
        return former(source)

    monkeypatch.setattr(FilesSource, "list", list_files)
    monkeypatch.setattr(states, "get_deletion_time", MagicMock())
    monkeypatch.setattr(states, "find_unfinished_follow_up", lambda *_: None)
    monkeypatch.setattr(states, "find_unfinished_derivation", lambda *_: None)
    return seen


def read_state_of_sensor(folder: Path, left: WorkLeft) -> TenantState:
    (folder / "files").mkdir()
    source = {"name": "files", "type": "files", "root": str(folder / "files")}
    tenant = Tenant.from_config({"id": "acme", **FAST, "sources": [source]})
    catalog, record, parsed = MagicMock(), MagicMock(id="acme"), MagicMock()
    parsed.parse.return_value = tenant
    catalog.generations.list_live_by_tenant.return_value = {}
    catalog.syncs.of_tenants.return_value = {"acme": {"files": sync()}}
    catalog.work.read.return_value = {"acme": left}
    [(_, state)] = states.read_tenant_states(catalog, [record], parsed, Settings(folder))
    assert isinstance(state, TenantState), state
    return state


def test_sensor_lists_sources_of_tenant_without_pending_work(
    tmp_path: Path, listings: list[str]
) -> None:
    state = read_state_of_sensor(tmp_path, WorkLeft())
    assert listings == ["files"]
    assert state.is_listed
    assert state.digests != {"files": "A"}


@pytest.mark.parametrize(
    "left", [WorkLeft(pending=1), WorkLeft(removals=1), WorkLeft(partly_replaced=1)]
)
def test_sensor_lists_no_source_while_work_is_pending(
    tmp_path: Path, listings: list[str], left: WorkLeft
) -> None:
    state = read_state_of_sensor(tmp_path, left)
    assert not listings
    assert not state.is_listed
    assert state.digests == {"files": "A"}, "of the recorded listing"
