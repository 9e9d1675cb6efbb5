"""Masks entries, includes them in a checkpoint, and reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Table,
    and_,
    bindparam,
    func,
    insert,
    or_,
    select,
    true,
    update,
)

from rag_assets.common.errors import UnknownProject
from rag_assets.common.hashing import compute_key, sha256_hex
from rag_assets.ingest.sources.records import compute_record_document_id
from rag_assets.privacy.masker import Masker
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.database import TenantRef, notify
from rag_assets.storage.catalog.tables import record_revisions, source_records
from rag_assets.systems.experience.model import (
    SOURCE_TYPE,
    About,
    CapturedAbout,
    Entry,
    EntryDraft,
)
from rag_assets.systems.experience.tables import knowledge_staging, projects
from rag_assets.systems.experience.wording import (
    WORDING_VERSION,
    build_searched_text,
    compute_error_keys,
    compute_exact_key,
    compute_problem_key,
)

_TEXTS = (
    *("agent_type", "task_type", "technology", "failure_description", "error_message"),
    *("solution_steps", "gate_type", "human_feedback", "revision_approach", "approved_approach"),
    *("when_to_try", "external_id"),
)
_LENGTHS: Mapping[str, int] = {
    "agent_type": 100,
    "task_type": 100,
    "technology": 100,
    "gate_type": 50,
    "external_id": 200,
}
EXACT_KEY = "exact_key"
"""Metadata field with the exact key of an entry (see wording.compute_exact_key)."""
ERROR_KEYS = "error_keys"
"""Metadata field with the keys of the errors in an entry (see traces.compute_stored_keys)."""
OPERATOR = Caller()
"""The operator, with access to every project."""
_SAME_COLUMNS = tuple({field.name for field in fields(Entry)} - {"about", "captured_at"})
"""The fields of an entry that are columns of `knowledge_staging` with the same name."""
_STAGED = knowledge_staging.c


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """A captured entry.

    Attributes:
        new: whether this request stored the entry.
        masked: names of the rules that found credentials; in the stored texts, the rule's name
            replaces the credential.
    """

    entry: Entry
    new: bool
    masked: tuple[str, ...]

    @property
    def staged(self) -> bool:
        """Return whether the entry waits for a checkpoint."""
        return self.entry.checkpoint_id is None


def mask_draft(masker: Masker, draft: EntryDraft) -> tuple[EntryDraft, tuple[str, ...]]:
    """Replace the credentials in an entry; return the entry and the rules that found them."""
    found_rules: set[str] = set()
    changed: dict[str, Any] = {}
    for name in _TEXTS:
        if (value := getattr(draft, name)) is not None:
            text, rules = masker.replace_credentials(value)
            found_rules.update(rules)
            changed[name] = text[: _LENGTHS.get(name)]
    about = []
    for location in draft.about:
        path, path_rules = masker.replace_credentials(location.path)
        symbol, symbol_rules = masker.replace_credentials(location.symbol or "")
        found_rules.update(path_rules, symbol_rules)
        about.append(About(path=path, symbol=symbol or None))
    return draft.model_copy(update=changed | {"about": tuple(about)}), tuple(sorted(found_rules))


def assign_staged_entries(
    connection: Connection,
    ref: TenantRef,
    source: str,
    checkpoint: UUID,
    project: UUID | None,
    *,
    caller: Caller = OPERATOR,
) -> int:
    """Include staged entries in a checkpoint, as catalog records; return their number.

    The next listing of the source finds these records.

    Args:
        project: id of the project; None for all projects of the caller.
    """
    conditions = [_STAGED.tenant == ref.id, _STAGED.checkpoint_id.is_(None)]
    if project is not None:
        conditions.append(_STAGED.project_id == project)
    elif is_limited_to_own_projects(caller):
        own = select(projects.c.id).where(projects.c.tenant == ref.id, is_own_project(caller))
        conditions.append(_STAGED.project_id.in_(own))
    query = select(knowledge_staging).where(*conditions).with_for_update()
    rows = connection.execute(query).all()
    if not rows:
        return 0
    entries = [entry_from_row(row) for row in rows]
    records = [build_record(ref, source, entry) for entry in entries]
    row_values = {"revision": record_revisions.next_value(), "changed_at": func.clock_timestamp()}
    connection.execute(insert(source_records).values(**row_values), records)
    statement = (
        update(knowledge_staging)
        .where(_STAGED.tenant == ref.id, _STAGED.id == bindparam("entry"))
        .values(
            checkpoint_id=checkpoint,
            document_id=bindparam("document"),
            exact_key=bindparam("whole"),
            problem_key=bindparam("problem"),
            record_version=WORDING_VERSION,
        )
    )
    connection.execute(
        statement,
        [
            {
                "entry": entry.id,
                "document": record["document_id"],
                "whole": compute_exact_key(entry),
                "problem": compute_problem_key(entry),
            }
            for entry, record in zip(entries, records, strict=True)
        ],
    )
    notify(connection, ref.id)
    return len(rows)


def entry_from_row(row: Row[Any]) -> Entry:
    """Return the entry in a row of `knowledge_staging`."""
    about = tuple(CapturedAbout(**location) for location in row.about)
    same_columns = {name: getattr(row, name) for name in _SAME_COLUMNS}
    return Entry(**same_columns, about=about, captured_at=row.timestamp)


def build_record(ref: TenantRef, source: str, entry: Entry) -> dict[str, Any]:
    """Return the catalog record of an entry, with its searched text and metadata for filters."""
    text = build_searched_text(entry)
    data = text.encode()
    metadata = {
        "entry_type": entry.entry_type,
        "agent_type": entry.agent_type,
        "task_type": entry.task_type,
        "technology": entry.technology,
        "gate_type": entry.gate_type,
        "project_id": None if entry.project_id is None else str(entry.project_id),
        EXACT_KEY: compute_exact_key(entry),
        ERROR_KEYS: compute_error_keys(entry) or None,
    }
    optional_fields = {
        "metadata": {name: value for name, value in metadata.items() if value is not None}
    }
    digest = sha256_hex(data)
    return {
        "tenant": ref.id,
        "source": source,
        "source_type": SOURCE_TYPE,
        "source_id": str(entry.id),
        "document_id": compute_record_document_id(source, SOURCE_TYPE, str(entry.id)),
        "record_key": compute_key("record", digest, optional_fields),
        "text": text,
        "media_type": "text/plain",
        "size": len(data),
        "content_sha256": digest,
        "said": optional_fields,
    }


def find_by_external_id(
    connection: Connection, table: Table, external_id: str | None, **owner: object
) -> Row[Any] | None:
    """Return the row of an owner's entry or checkpoint with an external id.

    Args:
        owner: values of the columns that identify the rows of the owner.
    """
    if external_id is None:
        return None
    query = select(table).filter_by(**owner, external_id=external_id)
    return connection.execute(query).first()


def require_project(
    connection: Connection, ref: TenantRef, project: UUID, caller: Caller = OPERATOR
) -> None:
    """Require that a tenant has a project to which the caller has access.

    Raises:
        UnknownProject: the project does not exist or belongs to another owner; the error does not
            distinguish the two.
    """
    if not has_project(connection, ref.id, project, caller):
        raise unknown_project_error(project)


def unknown_project_error(project: UUID) -> UnknownProject:
    """Return the error for a project that is unknown to the caller."""
    return UnknownProject(
        f"the tenant has no project {project}",
        hint="create the project with PUT /rag/experience/projects/{id}",
    )


def has_project(connection: Connection, tenant_id: str, project: UUID, caller: Caller) -> bool:
    """Return whether a tenant has this project and the caller has access to it."""
    conditions = (projects.c.tenant == tenant_id, projects.c.id == project, is_own_project(caller))
    return connection.scalar(select(projects.c.id).where(*conditions)) is not None


def is_limited_to_own_projects(caller: Caller) -> bool:
    """Return whether a caller has access only to its own projects, unlike admins and operators."""
    return caller.role not in {None, "admin"} and caller.name is not None


def is_own_project(caller: Caller) -> ColumnElement[bool]:
    """Return the SQL condition for projects to which a caller has access.

    A project belongs to the organization of the token that created it, or to the token itself.
    """
    if not is_limited_to_own_projects(caller):
        return true()
    owner, name = projects.c, caller.name or ""
    own = [
        and_(owner.owner_token.is_(None), owner.owner_organization.is_(None)),
        owner.owner_token.in_([name, name.removeprefix("token:")]),
    ]
    if caller.organization is not None:
        own.append(owner.owner_organization == caller.organization)
    return or_(*own)
