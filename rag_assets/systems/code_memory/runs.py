"""Runs of agents in the catalog: their settings, and the events they report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.clock import Clock
from rag_assets.common.errors import NoRecordsSource, UnknownRun
from rag_assets.ingest.sources.model import SourceMetadata, document_id
from rag_assets.privacy.masker import Masker
from rag_assets.storage.catalog.changes import notify
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.pushed_records import PushedRecord, record_values
from rag_assets.storage.catalog.tables import record_revisions, source_records
from rag_assets.systems.code_memory.catalog.tables import code_run_events, code_runs
from rag_assets.systems.code_memory.languages.run_events import MEDIA_TYPE, rendered
from rag_assets.systems.code_memory.paths import documents_of, readings, runs_of
from rag_assets.systems.code_memory.run_events import RunEvent, refused
from rag_assets.systems.code_memory.sources.runs import RunsConfig
from rag_assets.tenants.model import Tenant


@dataclass(frozen=True, slots=True)
class Run:
    """A run of an agent.

    Attributes:
        rag_enabled: whether the run receives passages.
        model: the language model that the run prompts; None if unknown.
    """

    id: str
    rag_enabled: bool = True
    model: str | None = None


class Runs:
    """Reads and writes runs and their events.

    Args:
        database: the catalog's database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, ref: TenantRef, run: Run, *, by: str) -> None:
        """Create a run or change its settings; repeating a call has no effect.

        Args:
            run: its new settings.
            by: name of the caller.

        Raises:
            TenantGone: the tenant was removed.
        """
        settings = {"rag_enabled": run.rag_enabled, "model": run.model}
        new = upsert(code_runs).values(tenant=ref.id, run_id=run.id, updated_by=by, **settings)
        changed = {**settings, "updated_by": by, "updated_at": func.clock_timestamp()}
        columns = code_runs.c
        statement = new.on_conflict_do_update(
            index_elements=["tenant", "run_id"],
            set_=changed,
            where=(columns.rag_enabled != run.rag_enabled)
            | columns.model.is_distinct_from(run.model),
        )
        with self._database.begin_for(ref) as connection:
            connection.execute(statement)

    def get(self, tenant_id: str, run_id: str) -> Run:
        """Return a run.

        Raises:
            UnknownRun: the project has no run with this id.
        """
        with self._database.begin() as connection:
            return _run(connection, tenant_id, run_id)

    def receive(
        self, ref: TenantRef, tenant: Tenant, run_id: str, events: Sequence[RunEvent]
    ) -> int:
        """Store all events or none; return how many of them are new.

        Each event becomes a document, which the next listing finds. That listing is soon, and also
        finds the files that the events name.

        Args:
            run_id: the id of an existing run.
            events: the events; those with an id that is already stored are skipped.

        Raises:
            UnknownRun: the project does not have this run.
            NoRecordsSource: the tenant does not have a source of files.
        """
        with self._database.begin_exclusive(ref) as connection:
            _run(connection, ref.id, run_id)
            sources = _SourcesOfRuns.of(connection, tenant, events)
            # Of two events with the same id, the first is stored.
            distinct = {event.id: event for event in reversed(events)}
            records = {id_: _record(sources, run_id, event) for id_, event in distinct.items()}
            rows = [
                {
                    "tenant": ref.id,
                    "run_id": run_id,
                    "external_id": id_,
                    "kind": distinct[id_].kind,
                    "document_id": record.document_id,
                }
                for id_, record in records.items()
            ]
            taken = upsert(code_run_events).on_conflict_do_nothing()
            returned = taken.returning(code_run_events.c.external_id)
            new = [*connection.scalars(returned, rows)]
            if new:
                written = {
                    "revision": record_revisions.next_value(),
                    "changed_at": func.clock_timestamp(),
                }
                put = upsert(source_records).values(**written).on_conflict_do_nothing()
                connection.execute(put, [record_values(ref, records[id_]) for id_ in new])
            # Files that already known events name may have changed again.
            notify(connection, ref.id)
        return len(new)


def require_plain_ids(run_id: str, events: Sequence[RunEvent], masker: Masker) -> None:
    """Refuse credentials in ids, which are stored and shown as they are.

    Raises:
        InvalidFields: the id of the run or of an event contains a credential.
    """
    problem = "it must hold no credential: it is stored and shown as it is"
    if masker.holds_credential(run_id):
        raise refused(1, "run", problem)
    for number, event in enumerate(events, start=1):
        if masker.holds_credential(event.id):
            raise refused(number, "id", problem)


@dataclass(frozen=True, slots=True)
class _SourcesOfRuns:
    """The sources that store events about files of other sources, and the known files.

    Attributes:
        configs: the sources; there is at least one.
        known: document ids of the files that events may name.
    """

    configs: tuple[RunsConfig, ...]
    known: frozenset[str]

    @classmethod
    def of(
        cls, connection: Connection, tenant: Tenant, events: Sequence[RunEvent]
    ) -> _SourcesOfRuns:
        configs = runs_of(tenant)
        if not configs:
            raise NoRecordsSource(
                f"tenant {tenant.id!r} has no source of files",
                hint="add the repository to its `sources`",
            )
        paths = [event.path for event in events if event.path]
        return cls(configs, documents_of(connection, tenant, paths, gone=True))

    def place_of(self, path: str) -> tuple[RunsConfig, str]:
        """Return the source that stores an event about a path, and the path in the repository.

        A file that no listing has found yet belongs to the first repository, unless its path starts
        with the name of a repository.
        """
        possible = [*readings(self.configs, path)]
        for config, within in possible:
            if document_id(config.of, within) in self.known:
                return config, within
        qualified = [reading for reading in possible if reading[1] != path]
        return (qualified or possible)[0]


def _record(sources: _SourcesOfRuns, run_id: str, event: RunEvent) -> PushedRecord:
    config, path = sources.place_of(event.path or "")
    metadata: dict[str, Any] = {"run": run_id, "event": event.kind}
    if path:
        metadata["path"] = path
    if event.action:
        metadata["action"] = event.action
    return PushedRecord(
        source=config.name,
        source_type="file_change" if path else "run_summary",
        source_id=f"{run_id}/{event.id}",
        text=rendered(event.kind, run_id, path or None, event.action, event.summary),
        media_type=MEDIA_TYPE,
        source_metadata=SourceMetadata(
            title=f"{event.kind} {path}" if path else f"summary of run {run_id}",
            metadata=metadata,
            modified_at=event.at or Clock().now(),
        ),
    )


def _run(connection: Connection, tenant_id: str, run_id: str) -> Run:
    columns = code_runs.c
    query = select(code_runs).where(columns.tenant == tenant_id, columns.run_id == run_id)
    row = connection.execute(query).first()
    if row is None:
        raise UnknownRun(
            "the project has no such run", hint="PUT /api/projects/{project}/runs/{run} makes it"
        )
    return Run(row.run_id, row.rag_enabled, row.model)
