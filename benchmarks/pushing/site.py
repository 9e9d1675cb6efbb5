"""A workspace behind a service of its own, as its callers and its operators see it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
from sqlalchemy import text

from benchmarks.measure import CLI
from rag_assets.api.responses import RecordLine, RecordWhereabouts, Status
from rag_assets.client import Client, Question
from rag_assets.client.errors import ClientError
from rag_assets.common.errors import RagAssetsError
from rag_assets.ingest.sources.records import compute_record_document_id
from rag_assets.pipeline.context import build_owner
from rag_assets.resources.own_runs import PARTITION_TAG
from rag_assets.resources.tenant_lock import PROCESS_TAG, WORKER_TAG
from rag_assets.runtime.liveness import ProcessIdentity
from rag_assets.runtime.net import find_free_port
from rag_assets.runtime.processes import BackgroundProcess
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.index.store import VectorStore

SOURCE = "pushed"
_START_SECONDS = 120
_RETRY_SECONDS = 120.0


class Service:
    """`rag-assets serve` for the installation of the environment; it can be killed.

    Args:
        log: file for its output.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._port = find_free_port()

    @property
    def url(self) -> str:
        """Return the address of the service, which stays the same after each start."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start the service, and wait until it answers."""
        with self._log.open("ab") as lines:
            self._process = subprocess.Popen(
                [*CLI, "serve", "--port", str(self._port)],
                # The trial searches continuously and pushes as fast as it can.
                env={
                    **os.environ,
                    "RAG_ASSETS_SERVICE_RATE": "1000000/minute",
                    "RAG_ASSETS_SERVICE_WRITE_RATE": "1000000/minute",
                },
                stdout=lines,
                stderr=lines,
            )
        until = time.monotonic() + _START_SECONDS
        with Client(self.url, "none", retries=0) as client:
            while time.monotonic() < until and self._process.poll() is None:
                with suppress(ClientError):
                    client.ready()
                    return
                time.sleep(0.1)
        raise RuntimeError(f"the service did not start at {self.url}: see {self._log}")

    def kill(self) -> None:
        """Kill the service and all its processes with SIGKILL."""
        if self._process is None:
            return
        with suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self._process.pid).children(recursive=True):
                process.kill()
        self._process.kill()
        self._process.wait()
        self._process = None


@dataclass
class Workspace:
    """A workspace whose only source is records.

    Attributes:
        id: id of its tenant.
        client: client of an admin, who is a member.
        catalog, instance, store: parts of its installation.
        background: processes that `rag-assets up` starts, by name.
        token: the admin's token.
        blobs: storage of file contents.
    """

    id: str
    client: Client
    service: Service
    catalog: Catalog
    instance: dg.DagsterInstance
    store: VectorStore
    background: Mapping[str, BackgroundProcess] = field(default_factory=dict)
    token: str = field(default="", repr=False)
    blobs: BlobStore | None = None

    def put(self, source_type: str, source_id: str, body: Mapping[str, Any]) -> str:
        """Push a record, with retries; return the outcome."""
        sent = self._retry(lambda: self.client.put_typed_record(source_type, source_id, body))
        return str(sent.outcome)

    def put_content(self, source_id: str, content: bytes) -> None:
        """Put the content of a file, with retries."""
        self._retry(lambda: self.client.put_record_content(source_id, content))

    def put_lines(self, lines: list[dict[str, Any]]) -> tuple[RecordLine, ...]:
        """Push many records, with retries."""
        outcomes: tuple[RecordLine, ...] = self._retry(
            lambda: self.client.write_records(lines)
        ).lines
        return outcomes

    def put_page(self, uuid: str) -> None:
        """Put a page that all members can read into the tree."""
        self._retry(lambda: self.client.put_page(uuid))

    def read_entry_texts(self) -> Iterator[str]:
        """Yield the text of each entry of the serving build."""
        serving = self.catalog.generations.serving(self.id)
        if serving is not None:
            owner = build_owner(self.catalog.tenants.get(self.id).ref, serving)
            for entry in self.store.entries.stored(serving.index_name, owner):
                yield str(entry.fields["text"])

    def read_status(self) -> Status:
        """Return the status that the service reports."""
        status: Status = self._retry(self.client.status)
        return status

    def read_record_sha256(self, source_type: str, source_id: str) -> str | None:
        """Return the hash of a record's stored content, as the service reports it."""
        record: RecordWhereabouts = self._retry(lambda: self.client.record(source_type, source_id))
        return record.sha256

    def find_blob_faults(self) -> list[str]:
        """Return the errors of reading every needed file content."""
        if self.blobs is None:
            raise RuntimeError("the workspace was opened without its blobs")
        ref = self.catalog.tenants.get(self.id).ref
        own = self.blobs.tenant(ref.id, ref.incarnation)
        messages = []
        for needed in self.catalog.blob_needs.all(ref.id):
            try:
                deque(own.stream(needed.sha256), maxlen=0)
            except RagAssetsError as error:
                messages.append(error.message)
        return messages

    def search_texts(self, words: str) -> list[str] | None:
        """Return texts that a word search finds now; None while the service is down."""
        with suppress(ClientError):
            question = Question(query=words, mode="text", top_k=20)
            return [hit.text for hit in self.client.query(question).hits]
        return None

    def is_found(self, word: str) -> bool:
        """Return whether a search for a word finds it now."""
        return any(word in found for found in self.search_texts(word) or ())

    def compute_document_id(self, source_type: str, source_id: str) -> str:
        """Return the id of a record's document."""
        return compute_record_document_id(SOURCE, source_type, source_id)

    def query_rows(self, query: str, **parameters: Any) -> list[Any]:
        """Query Postgres; `:tenant` is the workspace."""
        with self.catalog.database.begin() as connection:
            return [*connection.execute(text(query), {"tenant": self.id, **parameters})]

    def list_runs(self, since: float) -> list[dg.DagsterRun]:
        """Return its runs that were created since a time, oldest first."""
        of_tenant = dg.RunsFilter(tags={PARTITION_TAG: self.id})
        records = self.instance.get_run_records(filters=of_tenant, ascending=True)
        return [r.dagster_run for r in records if r.create_timestamp.timestamp() >= since]

    def kill(self, victim: str, pool: ThreadPoolExecutor) -> None:
        """Kill a process with SIGKILL, and start it again.

        Args:
            victim: "run", "service", or a name in `background`.
            pool: restarts background processes while the caller goes on.
        """
        if victim == "run":
            self.kill_run()
        elif victim == "service":
            self.service.kill()
            self.service.start()
        else:
            record = self.background[victim].find()
            if record is None:
                raise RuntimeError(f"no {victim} was running")
            os.kill(record.pid, signal.SIGKILL)
            pool.submit(subprocess.run, [*CLI, "up"], check=True, stdout=subprocess.DEVNULL)

    def kill_run(self, within: float = 120.0) -> str:
        """Wait for a run, and kill its process; return its id."""
        until = time.monotonic() + within
        while time.monotonic() < until:
            for run in self.list_runs(0.0):
                tag = run.tags.get(WORKER_TAG) or run.tags.get(PROCESS_TAG)
                if run.status != dg.DagsterRunStatus.STARTED or tag is None:
                    continue
                process = ProcessIdentity.parse(tag)
                if process.is_alive():
                    os.kill(process.pid, signal.SIGKILL)
                    return run.run_id
            time.sleep(0.02)
        raise RuntimeError("no run was in progress")

    def count_written_entries(self, since: float) -> dict[str, int]:
        """Return the number of entries that each run since a time has written, by run id."""
        entries_by_run = {}
        for run in self.list_runs(since):
            entries = self.instance.all_logs(
                run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
            )
            for entry in entries:
                materialization = entry.asset_materialization
                if materialization is not None and materialization.asset_key == dg.AssetKey(
                    "search_index"
                ):
                    entries_by_run[run.run_id] = int(
                        str(materialization.metadata["upserted"].value)
                    )
        return entries_by_run

    def _retry(self, call: Callable[[], Any]) -> Any:
        until = time.monotonic() + _RETRY_SECONDS
        while True:
            try:
                return call()
            except ClientError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)


def build_page(title: str, words: str) -> dict[str, Any]:
    """Return the body of a page with one block."""
    block = {"block_id": "b1", "type": "paragraph", "text": words}
    return {"title": title, "blocks": [block], "url": "https://app.example/p"}
