from types import SimpleNamespace
from unittest.mock import MagicMock

import dagster as dg
import pytest

from rag_assets.assets.stage_context import skip_inactive_tenant, tenant_stage
from rag_assets.resources import workbench as workbenches
from rag_assets.resources.workbench import Workbench
from rag_assets.storage.catalog.tenants.table import build_unknown_tenant_error


@pytest.fixture
def workbench(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    """Return a workbench whose catalog is a mock."""
    monkeypatch.setattr(workbenches, "_mask_text", lambda text, _: text)
    workbench = MagicMock()
    workbench.context = lambda id_, **options: Workbench.context(workbench, id_, **options)
    return workbench


def materialize(workbench: MagicMock) -> dg.ExecuteInProcessResult:
    @dg.asset
    @skip_inactive_tenant
    def stage(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        run_context = SimpleNamespace(
            run=context.run, partition_key="acme", log=context.log, retry_number=0
        )
        with tenant_stage(run_context, workbench, MagicMock()):  # type: ignore[arg-type]
            raise AssertionError("the stage must not run")

    return dg.materialize([stage], raise_on_error=False)


@pytest.mark.parametrize(
    ("state", "reason"),
    [("DISABLED", "disabled"), ("REMOVING", "removed"), (None, "removed")],
)
def test_stage_of_inactive_tenant_succeeds_and_states_reason(
    workbench: MagicMock, state: str | None, reason: str
) -> None:
    find = workbench.postgres.catalog().tenants.get
    if state is None:
        find.side_effect = build_unknown_tenant_error("acme")
    else:
        find.return_value = MagicMock(id="acme", state=state)
    result = materialize(workbench)
    assert result.success
    [event] = result.asset_materializations_for_node("stage")
    assert {name: value.value for name, value in event.metadata.items()} == {"skipped": reason}
