"""A running daemon and webserver of an installation, as its users see them."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.dagster_run import RunRecord

from rag_assets.runtime.processes import ignore_progress
from rag_assets.storage.catalog.catalog import Catalog
from tests.installation import Installation

PARTITION_TAG = "dagster/partition"
PATIENCE = 150
"""How many seconds to wait for what should take fifteen: the machine may be busy."""

_LAUNCH = """
mutation Launch($params: ExecutionParams!) {
  launchPipelineExecution(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}
"""


@dataclass(frozen=True)
class Daemon:
    """An installation whose Dagster daemon and webserver run.

    Its catalog was opened before they started; from then on only the daemon applies tenants.yaml.
    """

    installation: Installation
    catalog: Catalog
    instance: dg.DagsterInstance
    url: str
    logs: Path

    def searchable(self, tenant_id: str, text: str, *, within: float = PATIENCE) -> float:
        """Wait until a search returns a passage with the text; return the seconds it took."""
        return wait_for(lambda: self.finds(tenant_id, text), within, f"{text!r} is found")

    def gone(self, tenant_id: str, text: str, *, within: float = PATIENCE) -> float:
        """Wait until no search returns the text any more; return the seconds it took."""
        return wait_for(lambda: not self.finds(tenant_id, text), within, f"{text!r} is gone")

    def finds(self, tenant_id: str, text: str) -> bool:
        """Return whether a search returns a passage with the text."""
        from rag_assets.common.errors import UnknownTenant

        try:
            hits = self.installation.search(tenant_id, text, mode="text", top_k=20)
        except UnknownTenant:
            return False
        return any(text in hit.text for hit in hits)

    def graphql(self, query: str, variables: Mapping[str, Any] | None = None) -> Any:
        """Send a GraphQL query to the webserver, as its pages do."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(  # noqa: S310 - a loopback address
            f"{self.url}/graphql", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
            answer = json.load(response)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    def launch(self, job: str, tenant_id: str | None = None, *assets: str) -> str:
        """Launch a run as the UI's button does; return its id.

        Args:
            job: its name; "__ASSET_JOB" for Materialize on the pages of assets.
            tenant_id: the partition.
            assets: of the job, by default all.
        """
        selector = {
            "repositoryLocationName": "rag_assets",
            "repositoryName": "__repository__",
            "pipelineName": job,
            "assetSelection": [{"path": [name]} for name in assets] or None,
            "assetCheckSelection": [] if assets else None,
        }
        tags = [{"key": PARTITION_TAG, "value": tenant_id}] if tenant_id else []
        params = {
            "selector": selector,
            "mode": "default",
            "runConfigData": "{}",
            "executionMetadata": {"tags": tags},
        }
        answer = self.graphql(_LAUNCH, {"params": params})["launchPipelineExecution"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return str(answer["run"]["runId"])

    def ended(self, run_id: str, *, within: float = PATIENCE) -> RunRecord:
        """Wait until a run has ended; return it."""
        wait_for(lambda: self.record(run_id).dagster_run.is_finished, within, "the run ended")
        return self.record(run_id)

    def record(self, run_id: str) -> RunRecord:
        """Return a run with its times."""
        record = self.instance.get_run_record_by_id(run_id)
        assert record is not None
        return record

    def runs(self, tenant_id: str, job: str | None = None) -> list[RunRecord]:
        """Return a tenant's runs, the latest first."""
        wanted = dg.RunsFilter(tags={PARTITION_TAG: tenant_id}, job_name=job)
        return list(self.instance.get_run_records(filters=wanted))

    def idle(self, tenant_id: str) -> None:
        """Wait until the tenant has no queued or running run."""
        wait_for(
            lambda: all(run.dagster_run.is_finished for run in self.runs(tenant_id)),
            PATIENCE,
            f"the runs of {tenant_id} ended",
        )


@contextmanager
def running_daemon(installation: Installation, *, watched: bool) -> Iterator[Daemon]:
    """Start the webserver, the daemon and the fork server, and stop them afterwards.

    Args:
        watched: whether to start the change watcher as well, as `rag-assets up` does.
    """
    session = installation.session()
    session.prepare_home()
    catalog = session.catalog
    assert installation.retriever is not None
    if watched:
        session.stack.start_servers(for_dagster=True)
        session.stack.start_dagster()
    else:
        session.stack.fork_server.start()
        session.stack.dagster.start(session.endpoints.database_url, ignore_progress)
    try:
        url = session.stack.dagster.url
        assert url is not None
        yield Daemon(installation, catalog, session.instance, url, session.settings.local / "logs")
    finally:
        session.stack.watcher.process.stop()
        session.stack.dagster.stop()
        session.stack.fork_server.process.stop()


def wait_for(condition: Callable[[], bool], within: float, what: str) -> float:
    """Wait until a condition holds; return the seconds it took."""
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > within:
            pytest.fail(f"not within {within} s: {what}")
        time.sleep(0.2)
    return time.monotonic() - started
