"""Agents followed by the daemon and the change watcher, and searched with their tool.

The tests only change agents.yaml and the files that its globs match; the daemon does the rest.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from mcp import Client, StdioServerParameters

from tests.e2e.running import PATIENCE, Daemon, running_daemon, wait_for
from tests.installation import Installation

pytestmark = pytest.mark.timeout(600)
PROMISED_SECONDS = 60
"""From a change to an answer of the tool; other work of the machine may hold up one of several."""
GUIDE = "agents:\n  - {id: guide, docs: {strategy: rag, sources: ['docs/**/*.md']}}\n"


@pytest.fixture(scope="module")
def project(shared_installation: Installation) -> Path:
    root = shared_installation.home.parent / "project"
    (root / "docs").mkdir(parents=True)
    (root / ".swebash").mkdir()
    (root / ".swebash/agents.yaml").write_text("agents: []\n")
    (root / "docs/valves.md").write_text("# Valves\n\nThe valve opens at 4 bar.\n")
    named = f"agents: [{root}/.swebash/agents.yaml]\ntenants: []\n"
    (shared_installation.home / "tenants.yaml").write_text(named)
    return root


@pytest.fixture(scope="module")
def daemon(shared_installation: Installation, project: Path) -> Iterator[Daemon]:
    with running_daemon(shared_installation, watched=True) as running:
        yield running


def state_of(daemon: Daemon, tenant_id: str) -> str | None:
    record = daemon.catalog.tenants.find(tenant_id)
    return None if record is None else record.state


def failed_ticks(daemon: Daemon) -> list[str]:
    """Return the errors of the last ticks of the sensor `tenants`."""
    [state] = [s for s in daemon.instance.all_instigator_state() if s.instigator_name == "tenants"]
    ticks = daemon.instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=3)
    return [tick.error.to_string() for tick in ticks if tick.error is not None]


def test_an_agent_is_followed_and_asked(daemon: Daemon, project: Path) -> None:
    file = project / ".swebash/agents.yaml"
    file.write_text(GUIDE)
    seconds = wait_for(lambda: state_of(daemon, "guide") == "ACTIVE", PATIENCE, "it is a tenant")
    partitions = "rag_assets_tenants"
    wait_for(
        lambda: daemon.instance.has_dynamic_partition(partitions, "guide"), PATIENCE, "a partition"
    )
    latencies = asyncio.run(edited_and_asked(daemon.installation, project))
    assert min(latencies) <= PROMISED_SECONDS
    assert seconds <= PATIENCE

    file.write_text("agents: [}\n")
    wait_for(lambda: bool(failed_ticks(daemon)), PATIENCE, "a tick says what is wrong")
    assert any(
        "agents.yaml:1:10: the file is not valid YAML" in said for said in failed_ticks(daemon)
    )
    assert state_of(daemon, "guide") == "ACTIVE", "a wrong file is no order"

    file.write_text("agents: []\n")
    wait_for(lambda: state_of(daemon, "guide") == "DISABLED", PATIENCE, "it is disabled")
    assert not daemon.installation.search("guide", "valve")
    daemon.idle("guide")
    statuses = {run.dagster_run.status for run in daemon.runs("guide")}
    assert statuses <= {dg.DagsterRunStatus.SUCCESS}


async def edited_and_asked(installation: Installation, project: Path) -> list[float]:
    """Return the seconds until the tool finds existing, edited, new and removed files correctly."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "rag_assets.cli", "mcp", "guide"],
        env={**os.environ, **installation.environment},
    )
    async with Client(server, read_timeout_seconds=60) as client:

        async def answer() -> str:
            result = await client.call_tool("rag_search", {"query": "When does the valve open?"})
            return str(result.content[0].text)  # type: ignore[union-attr]

        async def until(wanted: str, *, there: bool = True) -> float:
            began = asyncio.get_running_loop().time()
            while (wanted in (said := await answer())) is not there:
                passed = asyncio.get_running_loop().time() - began
                assert passed < PATIENCE, said
                await asyncio.sleep(0.3)
            return asyncio.get_running_loop().time() - began

        latencies = [await until("opens at 4 bar")]
        (project / "docs/valves.md").write_text("# Valves\n\nThe valve opens at 9 bar.\n")
        latencies.append(await until("opens at 9 bar"))
        assert "4 bar" not in await answer()
        (project / "docs/new").mkdir()
        (project / "docs/new/pumps.md").write_text("# Pumps\n\nA pump opens the valve at noon.\n")
        latencies.append(await until("source: docs/new/pumps.md) ---\n# Pumps"))
        (project / "docs/valves.md").unlink()
        latencies.append(await until("9 bar", there=False))
        return latencies
