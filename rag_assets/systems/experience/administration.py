"""Operations of admins: list, merge and split patterns, retract entries, and report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, func, select

from rag_assets.api.experience_responses import (
    Merge,
    Pattern,
    PatternDetails,
    PatternEntry,
    Report,
    SplitPattern,
    UnmatchedName,
)
from rag_assets.common.clock import Clock
from rag_assets.common.errors import InvalidRequest
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import matches_any
from rag_assets.storage.catalog.erasure.holds import list_holds, require_no_hold
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.experience.code_contents import add_stale_paths
from rag_assets.systems.experience.errors import ProblemsDiffer, UnknownExperience
from rag_assets.systems.experience.merges import (
    delete_empty_patterns,
    delete_merges,
    have_same_problem,
    merge_patterns,
    split_entry,
)
from rag_assets.systems.experience.model import (
    Entry,
    PatternFilter,
    RetractDraft,
    find_retraction_problems,
    require_no_problem,
)
from rag_assets.systems.experience.patterns import (
    NAMES,
    Aliases,
    PatternReader,
    compute_cutoff,
    is_living,
    resolve_names,
)
from rag_assets.systems.experience.tables import (
    checkpoints,
    experience_feedback,
    experience_merges,
    experience_questions,
    knowledge_staging,
)
from rag_assets.systems.experience.wording import (
    describe_problem,
    describe_solution,
    describe_when_to_try,
)
from rag_assets.tenants.model import Tenant

_NO_FILTER = PatternFilter()
_MAX_EXCERPT_CHARACTERS = 300
"""Maximum length of a text in a merge; the entry itself contains the full text."""
_SOON = timedelta(days=30)
_MERGES = experience_merges.c
_STAGED = knowledge_staging.c


class Administration:
    """Lists, changes and reports the patterns of tenants."""

    def __init__(self, catalog: Catalog, clock: Clock) -> None:
        self._catalog = catalog
        self._reader = PatternReader(catalog.database)
        self._clock = clock

    def compute_cutoff(self, record: TenantRecord) -> datetime | None:
        """Return the time before which embedded entries are expired; None if none expire."""
        return compute_cutoff(Tenant.from_config(record.config), self._clock.now())

    def list_patterns(
        self,
        record: TenantRecord,
        *,
        after: UUID | None,
        limit: int,
        pattern_filter: PatternFilter = _NO_FILTER,
    ) -> list[Pattern]:
        """Return a page of patterns; see PatternReader.list_page."""
        cutoff = self.compute_cutoff(record)
        names, _ = self._resolve_names(record, pattern_filter)
        patterns = self._reader.list_page(
            record.id, cutoff, after=after, limit=limit, pattern_filter=pattern_filter, names=names
        )
        return self._add_stale_paths(record, patterns)

    def find_unmatched_names(
        self, record: TenantRecord, pattern_filter: PatternFilter
    ) -> tuple[UnmatchedName, ...]:
        """Return the names in a filter that match no entry, in any spelling variant."""
        return self._resolve_names(record, pattern_filter)[1]

    def list_filter_values(self, record: TenantRecord) -> dict[str, list[str]]:
        """Return the values by which patterns can be filtered, by field."""
        return self._reader.list_filter_values(record.id, self.compute_cutoff(record))

    def read_details(self, record: TenantRecord, pattern: UUID) -> PatternDetails:
        """Return one pattern with its entries and merges.

        Raises:
            UnknownExperience: no pattern with an unexpired entry has this id.
        """
        cutoff, days = self.compute_cutoff(record), _find_retention_days(record)
        found_pattern = self._reader.find_pattern(record.id, pattern, cutoff)
        if found_pattern is None:
            raise _unknown_pattern_error()
        [found_pattern] = self._add_stale_paths(record, [found_pattern])
        entries = self._reader.list_entries(record.id, pattern, cutoff)
        return PatternDetails(
            found_pattern,
            tuple(_build_pattern_entry(entry, days) for entry in entries),
            tuple(self._read_merges(record.id, [entry.id for entry in entries], pattern, cutoff)),
        )

    def merge(
        self, record: TenantRecord, pattern: UUID, into: UUID, *, by: str, confirmed: bool = False
    ) -> PatternDetails:
        """Merge a pattern into another.

        Args:
            confirmed: whether to merge them even if their problems differ.

        Raises:
            InvalidRequest: both are the same pattern, or the patterns differ in type or gate.
            ProblemsDiffer: they may solve different problems, and the merge is not confirmed.
            UnknownExperience: one of the patterns does not exist.
        """
        if pattern == into:
            raise InvalidRequest(
                "into: a pattern cannot be merged into itself",
                hint="choose a different target pattern",
            )
        cutoff = self.compute_cutoff(record)
        first = self._reader.find_pattern(record.id, pattern, cutoff)
        second = self._reader.find_pattern(record.id, into, cutoff)
        if first is None or second is None:
            raise _unknown_pattern_error()
        if _get_type_and_gate(first) != _get_type_and_gate(second):
            raise InvalidRequest(
                "into: the target pattern has a different type or gate",
                hint="choose a target pattern with the same type and gate",
            )
        with self._catalog.database.begin_exclusive(record.ref) as connection:
            if not confirmed and not have_same_problem(connection, record.id, pattern, into):
                raise ProblemsDiffer(
                    "into: the two patterns solve different problems; after a merge, each problem"
                    " would also be answered with the other's solution",
                    hint="compare both patterns; if they belong together, merge them with"
                    " `confirm: true`",
                )
            merge_patterns(connection, record.ref, pattern, into, by=by)
        return self.read_details(record, into)

    def split(
        self, record: TenantRecord, pattern: UUID, entry_id: UUID, *, by: str
    ) -> SplitPattern:
        """Move an entry out of a pattern, and return the pattern to which it now belongs.

        The two patterns are never merged automatically again. If the entry came by a manual merge,
        all entries of that merge return to their former pattern.

        Raises:
            InvalidRequest: the pattern has no other entry.
            UnknownExperience: the pattern does not exist, or it has no such entry.
        """
        with self._catalog.database.begin_exclusive(record.ref) as connection:
            result = split_entry(connection, record.ref, pattern, entry_id, by=by)
        details = self.read_details(record, result)
        pattern_fields = {
            field.name: getattr(details.pattern, field.name) for field in fields(Pattern)
        }
        return SplitPattern(**pattern_fields, entries=details.entries)

    def retract(self, record: TenantRecord, draft: RetractDraft, *, by: str) -> int:
        """Retract all entries of a project or a token; return their number.

        Raises:
            InvalidRequest: the draft does not name exactly one of a project and a token.
            OnHold: a hold covers one of the entries.
        """
        require_no_problem(find_retraction_problems(draft))
        conditions = []
        if draft.project_id is not None:
            conditions.append(_STAGED.project_id == draft.project_id)
        if draft.token is not None:
            names = {draft.token, f"token:{draft.token}"}
            conditions.append(matches_any(_STAGED.contributed_by, names))
        return self._retract_entries(record, and_(*conditions), by=by)

    def delete_entry(self, record: TenantRecord, entry_id: UUID, *, by: str) -> None:
        """Retract an entry: searches omit it immediately, and a run deletes it from every store.

        Raises:
            UnknownExperience: no entry has this id.
            OnHold: a hold covers the entry.
        """
        if not self._retract_entries(record, _STAGED.id == entry_id, by=by):
            raise UnknownExperience(
                "the tenant has no entry with this id",
                hint="list the entries of the tenant; this entry was removed, has expired or never"
                " existed",
            )

    def build_report(self, record: TenantRecord) -> Report:
        """Count a tenant's patterns, entries, merges, checkpoints, questions and feedback."""
        cutoff, days = self.compute_cutoff(record), _find_retention_days(record)
        with self._catalog.database.begin() as connection:
            return _read_report(connection, record.id, cutoff, days)

    def _resolve_names(
        self, record: TenantRecord, pattern_filter: PatternFilter
    ) -> tuple[dict[str, tuple[str, ...]], tuple[UnmatchedName, ...]]:
        aliases = Aliases(Tenant.from_config(record.config).experience.aliases)
        filter_names = {name: getattr(pattern_filter, name) for name in NAMES}
        return resolve_names(self._catalog, record.id, aliases, filter_names)

    def _add_stale_paths(self, record: TenantRecord, patterns: Sequence[Pattern]) -> list[Pattern]:
        tenant = Tenant.from_config(record.config)
        return add_stale_paths(
            self._catalog, tenant, patterns, is_living(self.compute_cutoff(record))
        )

    def _retract_entries(
        self, record: TenantRecord, condition: ColumnElement[bool], *, by: str
    ) -> int:
        query = select(knowledge_staging).where(_STAGED.tenant == record.id, condition)
        rows = self._catalog.database.fetch_rows(query.order_by(_STAGED.timestamp, _STAGED.id))
        if not rows:
            return 0
        recorded = [row.document_id for row in rows if row.document_id is not None]
        if recorded:
            # Searches omit the entries as soon as this is committed; a run then erases them from
            # every store.
            self._catalog.erasures.begin_purge(record.ref, recorded, by=by, at=self._clock.now())
        ids = [row.id for row in rows]
        staged = (_STAGED.tenant == record.id, _STAGED.id.in_(ids), _STAGED.document_id.is_(None))
        with self._catalog.database.begin_exclusive(record.ref) as connection:
            # Rows that are not documents yet are covered only by a hold on all documents.
            require_no_hold(list_holds(connection, record.id, ()), record.id, "the retraction")
            connection.execute(delete(knowledge_staging).where(*staged))
            delete_merges(connection, record.ref, ids)
            delete_empty_patterns(connection, record.ref)
        return len(rows)

    def _read_merges(
        self, tenant_id: str, entries: Sequence[UUID], pattern: UUID, cutoff: datetime | None
    ) -> list[Merge]:
        query = (
            select(experience_merges)
            .where(
                _MERGES.tenant == tenant_id,
                _MERGES.entry_id.in_(entries) | (_MERGES.pattern_id == pattern),
            )
            .order_by(_MERGES.merged_at, _MERGES.id)
        )
        with self._catalog.database.begin() as connection:
            rows = connection.execute(query).all()
        entry_ids = {id_ for row in rows for id_ in (row.entry_id, row.other_id) if id_ is not None}
        living = self._reader.find_living_entries(tenant_id, entry_ids, cutoff)
        texts = {
            id_: (_cut_excerpt(describe_problem(e)), _cut_excerpt(describe_solution(e)))
            for id_, e in living.items()
        }
        columns = [field.name for field in fields(Merge) if field.name in _MERGES]
        merges = []
        for row in rows:
            merge = Merge(**{name: getattr(row, name) for name in columns})
            problem, solution = texts.get(row.entry_id, (None, None))
            merge = replace(merge, problem=problem, solution=solution)
            problem, solution = texts.get(row.other_id, (None, None))
            merges.append(replace(merge, other_problem=problem, other_solution=solution))
        return merges


def _unknown_pattern_error() -> UnknownExperience:
    return UnknownExperience(
        "the tenant has no pattern with this id",
        hint="use an id from the list of patterns; the pattern was merged, has expired or never"
        " existed",
    )


def _find_retention_days(record: TenantRecord) -> int | None:
    return Tenant.from_config(record.config).get_retention_days("experience")


def _build_pattern_entry(entry: Entry, days: int | None) -> PatternEntry:
    expires = None
    if entry.embedded_at is not None and days is not None:
        expires = entry.embedded_at + timedelta(days=days)
    return PatternEntry(
        *(entry.id, entry.project_id, entry.checkpoint_id, entry.contributed_by),
        *(entry.captured_at, entry.embedded_at, expires),
        *(describe_problem(entry), describe_solution(entry), describe_when_to_try(entry)),
        *(entry.agent_type, entry.task_type, entry.technology),
    )


def _get_type_and_gate(pattern: Pattern) -> tuple[str, str]:
    return pattern.entry_type, (pattern.gate_type or "").casefold()


def _cut_excerpt(text: str) -> str:
    return (
        text
        if len(text) <= _MAX_EXCERPT_CHARACTERS
        else f"{text[:_MAX_EXCERPT_CHARACTERS].rstrip()}…"
    )


def _read_report(
    connection: Connection, tenant_id: str, cutoff: datetime | None, days: int | None
) -> Report:
    """Count a tenant's patterns, entries, merges, checkpoints, questions and feedback.

    Args:
        cutoff: entries embedded before this time are expired; None if none expire.
    """
    staged, merges = _STAGED.tenant == tenant_id, _MERGES.tenant == tenant_id
    question_columns, feedback_columns = experience_questions.c, experience_feedback.c
    living = (staged, is_living(cutoff))

    def count(table: Table, *conditions: ColumnElement[bool]) -> int:
        query = select(func.count()).select_from(table).where(*conditions)
        return connection.scalar(query) or 0

    def count_by(column: ColumnElement[str], *conditions: ColumnElement[bool]) -> dict[str, int]:
        query = select(column, func.count()).where(*conditions).group_by(column)
        return dict(connection.execute(query).all())

    oldest = connection.scalar(select(func.min(_STAGED.embedded_at)).where(*living))
    shown_pattern_ids = select(func.jsonb_array_elements_text(question_columns.patterns)).where(
        question_columns.tenant == tenant_id
    )
    answered = set(connection.scalars(shown_pattern_ids))
    pattern_ids = connection.scalars(select(_STAGED.pattern_id).distinct().where(*living))
    patterns = {str(id_) for id_ in pattern_ids}
    feedback = count_by(feedback_columns.outcome, feedback_columns.tenant == tenant_id)
    expiring = 0
    if cutoff is not None:
        expiring = count(knowledge_staging, *living, _STAGED.embedded_at < cutoff + _SOON)
    return Report(
        patterns=len(patterns),
        entries=count_by(_STAGED.entry_type, *living),
        staged=count(knowledge_staging, staged, _STAGED.checkpoint_id.is_(None)),
        failed=count(knowledge_staging, staged, _STAGED.failure.is_not(None)),
        merges=count_by(_MERGES.way, merges, _MERGES.split_at.is_(None)),
        splits=count(experience_merges, merges, _MERGES.split_at.is_not(None)),
        questions=count_by(question_columns.use, question_columns.tenant == tenant_id),
        helped=feedback.get("helped", 0),
        did_not_help=feedback.get("did_not_help", 0),
        never_shown=len(patterns - answered),
        open_checkpoints=count(
            checkpoints, checkpoints.c.tenant == tenant_id, checkpoints.c.state != "done"
        ),
        expires_within_30_days=expiring,
        next_expiry=None if oldest is None or days is None else oldest + timedelta(days=days),
    )
