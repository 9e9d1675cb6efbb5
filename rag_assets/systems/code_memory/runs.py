"""Runs of agents: their settings, and the events that applications send."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from sqlalchemy import Connection, Select, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.clock import Clock
from rag_assets.common.errors import NoRecordsSource, UnknownRun
from rag_assets.common.invalid_values import InvalidFields, allowed_value
from rag_assets.common.times import parse_boundary
from rag_assets.ingest.sources.model import SourceMetadata, compute_document_id
from rag_assets.privacy.masker import Masker
from rag_assets.storage.catalog.database import CatalogQueries, TenantRef, matches_any, notify
from rag_assets.storage.catalog.records.model import PushedRecord, build_record_row
from rag_assets.storage.catalog.tables import documents, record_revisions, source_records
from rag_assets.systems.code_memory.catalog.tables import code_run_events, code_runs
from rag_assets.systems.code_memory.languages.texts import RUN_EVENT, render_run_event
from rag_assets.systems.code_memory.sources.records import RunsConfig
from rag_assets.tenants.model import Tenant

MAX_BYTES: Final = 4 << 20
"""Maximum size in bytes of all events in a request."""
MAX_EVENTS: Final = 1_000
MAX_LINE_BYTES: Final = 128 << 10
"""Maximum size of an event in bytes; several times the size of the longest summary."""
_MAX_ERRORS: Final = 50

_PRINTABLE: Final = r"^[^\x00-\x1f\x7f]*$"
_DRIVE: Final = re.compile(r"[A-Za-z]:[/\\]")

EventKind: TypeAlias = Literal["file_created", "file_updated", "file_deleted", "final_summary"]


def _require_relative_path(path: str) -> str:
    plain = posixpath.normpath(path)
    if path.startswith("/") or _DRIVE.match(path) or plain.split("/")[0] == ".." or plain == ".":
        raise ValueError("the path must be the path of a file, relative to its repository")
    return plain


_EventId = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]*$", max_length=128)
]
FilePath = Annotated[
    str,
    StringConstraints(pattern=_PRINTABLE, min_length=1, max_length=1_000, strip_whitespace=True),
    AfterValidator(_require_relative_path),
]
_Line = Annotated[str, StringConstraints(pattern=_PRINTABLE, max_length=200, strip_whitespace=True)]
_Summary = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=20_000)]
_Moment = Annotated[
    datetime,
    BeforeValidator(parse_boundary),
    WithJsonSchema({"type": "string", "anyOf": [{"format": "date-time"}, {"format": "date"}]}),
]


class RunEvent(BaseModel):
    """An action of an agent in a run.

    Attributes:
        id: the id of the event within its run; an event with a repeated id is ignored.
        path: the path of the file, within its repository or as hits name it; not for a summary.
        action: the action in a few words.
        summary: the summary in words; required for a final_summary.
        at: the time of the action; by default now.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: _EventId
    kind: EventKind
    path: FilePath | None = None
    action: _Line = ""
    summary: _Summary = ""
    at: _Moment | None = None

    @model_validator(mode="after")
    def _require_matching_fields(self) -> RunEvent:
        of_run = self.kind == "final_summary"
        if of_run and not self.summary.strip():
            raise ValueError("summary is missing: a final_summary requires it")
        if of_run and self.path is not None:
            raise ValueError("path must not be set for a final_summary")
        if not of_run and self.path is None:
            raise ValueError(f"path is missing: a {self.kind} requires it")
        return self


def parse_events(body: bytes) -> tuple[RunEvent, ...]:
    """Return the events of a body, one per line; empty lines are skipped.

    Raises:
        InvalidFields: a line is not an event; the error names the line, from 1, and the field.
    """
    events: list[RunEvent] = []
    errors: list[Mapping[str, Any]] = []
    for number, line in enumerate(body.split(b"\n"), start=1):
        if not line.strip():
            continue
        if len(events) == MAX_EVENTS:
            problem = f"a request must not contain more than {MAX_EVENTS:,} events"
            errors.append(_build_error(number, problem))
        elif len(line) > MAX_LINE_BYTES:
            errors.append(
                _build_error(number, f"the event is longer than {MAX_LINE_BYTES:,} bytes")
            )
        else:
            try:
                events.append(RunEvent.model_validate_json(line))
            except ValidationError as error:
                errors += _iter_errors(number, error)
        if len(errors) >= _MAX_ERRORS:
            break
    if not events and not errors:
        errors.append(_build_error(1, "the request contains no event"))
    if errors:
        raise InvalidFields(errors)
    return tuple(events)


def _build_error(number: int, problem: str, *field: str | int) -> Mapping[str, Any]:
    """Return the error of a line, or of a field in that line."""
    where = ("body", number, *field)
    return {"type": "value_error", "loc": where, "msg": f"line {number}: {problem}"}


def _iter_errors(number: int, error: ValidationError) -> Iterator[Mapping[str, Any]]:
    for problem in error.errors(include_url=False, include_input=False):
        yield _build_error(number, allowed_value(problem), *problem["loc"])


def list_runs_sources(tenant: Tenant) -> tuple[RunsConfig, ...]:
    """Return a tenant's sources of run records, one for each repository."""
    return tuple(source for source in tenant.sources if isinstance(source, RunsConfig))


def iter_possible_paths(
    configs: Iterable[RunsConfig], path: str
) -> Iterator[tuple[RunsConfig, str]]:
    """Yield each source that a path may refer to, with the path within its repository."""
    for config in configs:
        yield config, path
        if path.startswith(f"{config.of}/"):
            yield config, path.removeprefix(f"{config.of}/")


def build_document_ids(tenant: Tenant, paths: Iterable[str]) -> frozenset[str]:
    """Return the ids of all documents that paths may refer to, whether or not they exist."""
    configs = list_runs_sources(tenant)
    return frozenset(
        compute_document_id(c.of, p)
        for path in paths
        for c, p in iter_possible_paths(configs, path)
    )


def select_document_ids(
    tenant: Tenant, paths: Iterable[str], *, with_deleted: bool = False
) -> Select[str]:
    """Return a query for the ids of the existing documents that paths may refer to."""
    table, ids = documents.c, build_document_ids(tenant, paths)
    conditions = table.tenant == tenant.id, matches_any(table.document_id, ids)
    query = select(table.document_id).where(*conditions)
    return query if with_deleted else query.where(table.status != "DELETED")


@dataclass(frozen=True, slots=True)
class Run:
    """A run of an agent, with the language model that it prompts, if known."""

    id: str
    rag_enabled: bool = True
    model: str | None = None


class Runs(CatalogQueries):
    """Queries on runs and their events; writing raises TenantGone for a removed tenant."""

    def put(self, ref: TenantRef, run: Run, *, by: str) -> None:
        """Create a run or change its settings; a repeated call has no effect."""
        settings = {"rag_enabled": run.rag_enabled, "model": run.model}
        new = upsert(code_runs).values(tenant=ref.id, run_id=run.id, updated_by=by, **settings)
        changed = {**settings, "updated_by": by, "updated_at": func.clock_timestamp()}
        columns = code_runs.c
        differs = columns.model.is_distinct_from(run.model)
        statement = new.on_conflict_do_update(
            index_elements=["tenant", "run_id"],
            set_=changed,
            where=(columns.rag_enabled != run.rag_enabled) | differs,
        )
        self._database.write(ref, statement)

    def get(self, tenant_id: str, run_id: str) -> Run:
        """Return a run, or raise UnknownRun."""
        with self._database.begin() as connection:
            return _read_run(connection, tenant_id, run_id)

    def receive(
        self, ref: TenantRef, tenant: Tenant, run_id: str, events: Sequence[RunEvent]
    ) -> int:
        """Store the events of a run, all or none; return the number of new events.

        Each event becomes a document. A listing soon finds it, and the files that events name. An
        event with a stored id is skipped.

        Raises:
            UnknownRun: the project does not have this run.
            NoRecordsSource: the tenant does not have a source of files.
        """
        with self._database.begin_exclusive(ref) as connection:
            _read_run(connection, ref.id, run_id)
            configs = list_runs_sources(tenant)
            if not configs:
                raise NoRecordsSource(
                    f"tenant {tenant.id!r} has no source that reads files",
                    hint="add the repository to the tenant's `sources`",
                )
            paths = [event.path for event in events if event.path]
            document_query = select_document_ids(tenant, paths, with_deleted=True)
            known = frozenset(connection.scalars(document_query))
            # The first of several events with the same id is stored.
            distinct = {event.id: event for event in reversed(events)}
            records: dict[str, PushedRecord] = {}
            for id_, event in distinct.items():
                config, path = _locate_path(configs, known, event.path or "")
                records[id_] = _build_record(config, path, run_id, event)
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
            insert_new = upsert(code_run_events).on_conflict_do_nothing()
            new = [*connection.scalars(insert_new.returning(code_run_events.c.external_id), rows)]
            if new:
                put = upsert(source_records).values(
                    revision=record_revisions.next_value(), changed_at=func.clock_timestamp()
                )
                values = [build_record_row(ref, records[id_]) for id_ in new]
                connection.execute(put.on_conflict_do_nothing(), values)
            # Even without new events, the files that they name may have changed again.
            notify(connection, ref.id)
        return len(new)


def require_plain_ids(run_id: str, events: Sequence[RunEvent], masker: Masker) -> None:
    """Raise InvalidFields if an id contains a credential: ids are stored and shown unmasked."""
    problem = "the id must not contain a credential: ids are stored and shown unmasked"
    if masker.holds_credential(run_id):
        raise InvalidFields([_build_error(1, problem, "run")])
    for number, event in enumerate(events, start=1):
        if masker.holds_credential(event.id):
            raise InvalidFields([_build_error(number, problem, "id")])


def _locate_path(
    configs: Sequence[RunsConfig], known: Collection[str], path: str
) -> tuple[RunsConfig, str]:
    """Return the source that stores events about a path, and the path in its repository.

    The path of an unknown file belongs to the repository whose name it starts with, else to the
    first repository.
    """
    possible = [*iter_possible_paths(configs, path)]
    for config, within in possible:
        if compute_document_id(config.of, within) in known:
            return config, within
    return next((reading for reading in possible if reading[1] != path), possible[0])


def _build_record(config: RunsConfig, path: str, run_id: str, event: RunEvent) -> PushedRecord:
    optional = {"path": path, "action": event.action}
    metadata = {name: value for name, value in optional.items() if value}
    return PushedRecord(
        source=config.name,
        source_type="file_change" if path else "run_summary",
        source_id=f"{run_id}/{event.id}",
        text=render_run_event(event.kind, run_id, path or None, event.action, event.summary),
        media_type=RUN_EVENT,
        source_metadata=SourceMetadata(
            title=f"{event.kind} {path}" if path else f"summary of run {run_id}",
            metadata={"run": run_id, "event": event.kind, **metadata},
            modified_at=event.at or Clock().now(),
        ),
    )


def _read_run(connection: Connection, tenant_id: str, run_id: str) -> Run:
    columns = code_runs.c
    query = select(code_runs).where(columns.tenant == tenant_id, columns.run_id == run_id)
    row = connection.execute(query).first()
    if row is None:
        raise UnknownRun(
            "the project has no run with this id",
            hint="create the run with PUT /api/projects/{project}/runs/{run}",
        )
    return Run(row.run_id, row.rag_enabled, row.model)
