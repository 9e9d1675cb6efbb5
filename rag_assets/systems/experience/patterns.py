"""Reads patterns; their counts are computed from entries and feedback and never stored.

An entry is called living if searches find it: it is embedded and not expired. Entries keep the
captured spelling of their names. Spelling variants are resolved when a question is asked, so that a
new alias applies immediately, without indexing again.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    Select,
    Uuid,
    and_,
    cast,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
    union_all,
)
from sqlalchemy.dialects.postgresql import distinct_on

from rag_assets.api.experience_responses import Pattern, UnmatchedName
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import CatalogQueries
from rag_assets.systems.experience.differences import load_words
from rag_assets.systems.experience.entries import entry_from_row
from rag_assets.systems.experience.errors import UnknownExperience
from rag_assets.systems.experience.model import Entry, PatternFilter
from rag_assets.systems.experience.ranking import choose_label, determine_quality
from rag_assets.systems.experience.tables import (
    experience_feedback,
    experience_patterns,
    experience_questions,
    knowledge_staging,
)
from rag_assets.systems.experience.wording import (
    describe_problem,
    describe_solution,
    describe_when_to_try,
)
from rag_assets.tenants.model import Tenant

_STAGED = knowledge_staging.c
_SEARCHED = (
    *(_STAGED.failure_description, _STAGED.error_message, _STAGED.solution_steps),
    *(_STAGED.human_feedback, _STAGED.revision_approach, _STAGED.approved_approach),
    *(_STAGED.when_to_try, _STAGED.gate_type),
    *(_STAGED.agent_type, _STAGED.task_type, _STAGED.technology),
)
_NO_FILTER = PatternFilter()
MAX_CHOICES = 200
"""Maximum number of values to choose from for one field of a pattern filter."""


@dataclass(frozen=True, slots=True)
class PatternCounts:
    """The problem and the counts of a pattern.

    Attributes:
        problem_id: id of the problem; equal for alternative solutions of one problem.
        contributions: number of checkpoints that contributed to the pattern, counted per project.
        helped, did_not_help: number of answers whose latest feedback has this outcome.
    """

    problem_id: UUID
    contributions: int
    projects: tuple[UUID, ...]
    entries: int
    first_embedded_at: datetime
    last_embedded_at: datetime
    helped: int = 0
    did_not_help: int = 0


@dataclass(frozen=True, slots=True)
class AnsweringEntries:
    """Unexpired entries found for a request, and the counts of their patterns.

    Attributes:
        keys: exact keys of all requested entries, including expired and excluded entries.
    """

    entries: tuple[Entry, ...] = ()
    counts: Mapping[UUID, PatternCounts] = field(default_factory=dict)
    keys: frozenset[str] = frozenset()


def compute_cutoff(tenant: Tenant, now: datetime) -> datetime | None:
    """Return the time before which embedded entries are expired; None if none expire."""
    days = tenant.get_retention_days("experience")
    return None if days is None else now - timedelta(days=days)


def is_living(cutoff: datetime | None) -> ColumnElement[bool]:
    """Return the SQL condition for entries that are embedded and not expired."""
    if cutoff is None:
        return and_(_STAGED.embedded, true())
    return and_(_STAGED.embedded, _STAGED.embedded_at >= cutoff)


class PatternReader(CatalogQueries):
    """Reads patterns and their entries."""

    def read_entries(
        self,
        tenant_id: str,
        ids: Collection[UUID],
        cutoff: datetime | None,
        *,
        without: UUID | None = None,
    ) -> AnsweringEntries:
        """Return the unexpired entries with these ids, with the counts of their patterns.

        Args:
            without: id of a project whose entries are excluded.
        """
        conditions = [_STAGED.tenant == tenant_id, _STAGED.id.in_(ids), is_living(cutoff)]
        if without is not None:
            conditions.append(_STAGED.project_id.is_distinct_from(without))
        query = select(knowledge_staging).where(*conditions, _STAGED.pattern_id.is_not(None))
        with self._database.begin() as connection:
            entries = tuple(entry_from_row(row) for row in connection.execute(query))
            patterns = {entry.pattern_id for entry in entries if entry.pattern_id is not None}
            counts = read_counts(connection, tenant_id, patterns, cutoff)
            keys = select(_STAGED.exact_key).where(
                _STAGED.tenant == tenant_id, _STAGED.id.in_(ids), _STAGED.exact_key.is_not(None)
            )
            return AnsweringEntries(entries, counts, frozenset(connection.scalars(keys)))

    def list_page(
        self,
        tenant_id: str,
        cutoff: datetime | None,
        *,
        after: UUID | None,
        limit: int,
        pattern_filter: PatternFilter = _NO_FILTER,
        names: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> list[Pattern]:
        """Return a page of the patterns that have an unexpired entry, in the filter's order.

        Args:
            names: spelling variants of the names in the filter, by field.

        Raises:
            UnknownExperience: the pattern `after` was deleted, so its position in the list is
                unknown.
        """
        matching = select(_STAGED.pattern_id).where(
            _STAGED.tenant == tenant_id,
            is_living(cutoff),
            _STAGED.pattern_id.is_not(None),
            *_build_conditions(pattern_filter, names),
        )
        with self._database.begin() as connection:
            if pattern_filter.order == "id":
                query = matching.distinct().order_by(_STAGED.pattern_id).limit(limit)
                if after is not None:
                    query = query.where(_STAGED.pattern_id > after)
            else:
                sort_keys = _build_sort_keys_query(
                    tenant_id, cutoff, is_by_use=pattern_filter.order == "use"
                )
                key = sort_keys.c
                query = (
                    select(key.id)
                    .where(key.id.in_(matching))
                    .order_by(key.shown_count.desc(), key.last_at.desc(), key.id)
                    .limit(limit)
                )
                if after is not None:
                    query = query.where(_is_after(connection, sort_keys, after))
            ids = list(connection.scalars(query))
            patterns_by_id = {
                shown_pattern.id: shown_pattern
                for shown_pattern in self._read_shown_patterns(connection, tenant_id, ids, cutoff)
            }
        return [patterns_by_id[id_] for id_ in ids if id_ in patterns_by_id]

    def list_filter_values(self, tenant_id: str, cutoff: datetime | None) -> dict[str, list[str]]:
        """Return the values by which patterns can be filtered, by field.

        These are the values of unexpired entries.
        """
        living = (_STAGED.tenant == tenant_id, is_living(cutoff))
        values = {}
        with self._database.begin() as connection:
            for name in ("entry_type", "agent_type", "task_type", "technology"):
                column = _STAGED[name]
                query = select(column).distinct().where(*living, column.is_not(None))
                values[name] = list(connection.scalars(query.order_by(column).limit(MAX_CHOICES)))
        return values

    def find_pattern(
        self, tenant_id: str, pattern: UUID, cutoff: datetime | None
    ) -> Pattern | None:
        """Return one pattern; None if it has no unexpired entry."""
        with self._database.begin() as connection:
            return next(
                iter(self._read_shown_patterns(connection, tenant_id, [pattern], cutoff)), None
            )

    def list_entries(self, tenant_id: str, pattern: UUID, cutoff: datetime | None) -> list[Entry]:
        """Return the unexpired entries of a pattern, in the order in which they were embedded."""
        query = (
            select(knowledge_staging)
            .where(_STAGED.tenant == tenant_id, _STAGED.pattern_id == pattern, is_living(cutoff))
            .order_by(_STAGED.embedded_at, _STAGED.timestamp, _STAGED.id)
        )
        return [entry_from_row(row) for row in self._database.fetch_rows(query)]

    def find_living_entries(
        self, tenant_id: str, ids: Collection[UUID], cutoff: datetime | None
    ) -> dict[UUID, Entry]:
        """Return the unexpired embedded entries with these ids, by id."""
        query = select(knowledge_staging).where(
            _STAGED.tenant == tenant_id, _STAGED.id.in_(ids), is_living(cutoff)
        )
        return {row.id: entry_from_row(row) for row in self._database.fetch_rows(query)}

    def _read_shown_patterns(
        self,
        connection: Connection,
        tenant_id: str,
        ids: Sequence[UUID],
        cutoff: datetime | None,
    ) -> list[Pattern]:
        # A pattern keeps its own text after others were merged into it.
        is_merged_in = _STAGED.home_id != _STAGED.pattern_id
        first = (
            select(knowledge_staging)
            .where(_STAGED.tenant == tenant_id, _STAGED.pattern_id.in_(ids), is_living(cutoff))
            .ext(distinct_on(_STAGED.pattern_id))
            .order_by(
                _STAGED.pattern_id,
                is_merged_in,
                _STAGED.embedded_at,
                _STAGED.timestamp,
                _STAGED.id,
            )
        )
        entries = [entry_from_row(row) for row in connection.execute(first)]
        counts = read_counts(connection, tenant_id, ids, cutoff)
        uses = _build_answer_counts_query(tenant_id).subquery()
        of_ids = select(uses).where(uses.c.root.in_(ids))
        rows_by_root = {row.root: row for row in connection.execute(of_ids)}
        patterns = []
        for entry in entries:
            if entry.pattern_id in counts:
                row = rows_by_root.get(entry.pattern_id)
                pattern = build_pattern(entry, counts[entry.pattern_id], None)
                patterns.append(
                    replace(
                        pattern,
                        shown_count=row.shown_count if row else 0,
                        last_shown_at=row.last_shown_at if row else None,
                    )
                )
        return patterns


def build_pattern(entry: Entry, counts: PatternCounts, score: float | None) -> Pattern:
    """Return a pattern with the text of one of its entries."""
    successes = counts.contributions + counts.helped
    return Pattern(
        id=entry.pattern_id or entry.id,
        entry_type=entry.entry_type,
        quality=determine_quality(entry.entry_type),
        problem=describe_problem(entry),
        solution=describe_solution(entry),
        when_to_try=describe_when_to_try(entry),
        success_count=successes,
        failure_count=counts.did_not_help,
        label=choose_label(successes, counts.did_not_help),
        score=score,
        agent_type=entry.agent_type,
        gate_type=entry.gate_type,
        task_type=entry.task_type,
        technology=entry.technology,
        projects=counts.projects,
        first_embedded_at=counts.first_embedded_at,
        last_embedded_at=counts.last_embedded_at,
    )


def read_counts(
    connection: Connection, tenant_id: str, ids: Iterable[UUID], cutoff: datetime | None
) -> dict[UUID, PatternCounts]:
    """Return the counts of each of these patterns that has an unexpired entry, by id."""
    wanted_ids = list(ids)
    if not wanted_ids:
        return {}
    contribution = tuple_(
        func.coalesce(_STAGED.project_id, _STAGED.id),
        func.coalesce(_STAGED.checkpoint_id, _STAGED.id),
    )
    query = (
        select(
            _STAGED.pattern_id,
            experience_patterns.c.problem_id,
            func.count(contribution.distinct()).label("contributions"),
            func.array_agg(_STAGED.project_id.distinct()).label("projects"),
            func.count().label("entries"),
            func.min(_STAGED.embedded_at).label("first_at"),
            func.max(_STAGED.embedded_at).label("last_at"),
        )
        .join(
            experience_patterns,
            (experience_patterns.c.tenant == _STAGED.tenant)
            & (experience_patterns.c.id == _STAGED.pattern_id),
        )
        .where(_STAGED.tenant == tenant_id, _STAGED.pattern_id.in_(wanted_ids), is_living(cutoff))
        .group_by(_STAGED.pattern_id, experience_patterns.c.problem_id)
    )
    feedback = _count_feedback(connection, tenant_id, wanted_ids)
    return {
        row.pattern_id: PatternCounts(
            problem_id=row.problem_id,
            contributions=row.contributions,
            projects=tuple(sorted(project for project in row.projects if project is not None)),
            entries=row.entries,
            first_embedded_at=row.first_at,
            last_embedded_at=row.last_at,
            **feedback.get(row.pattern_id, {}),
        )
        for row in connection.execute(query)
    }


def _build_conditions(
    pattern_filter: PatternFilter, names: Mapping[str, Collection[str]]
) -> list[ColumnElement[bool]]:
    """Return the SQL conditions that a filter sets on entries."""
    conditions: list[ColumnElement[bool]] = [
        _STAGED[field].in_(spellings) for field, spellings in names.items()
    ]
    if pattern_filter.entry_type is not None:
        conditions.append(_STAGED.entry_type == pattern_filter.entry_type)
    if pattern_filter.project_id is not None:
        conditions.append(_STAGED.project_id == pattern_filter.project_id)
    if pattern_filter.search is not None:
        text = func.concat_ws("\n", *_SEARCHED)
        words = [text.icontains(word, autoescape=True) for word in pattern_filter.search.split()]
        try:
            conditions.append(
                or_(and_(*words), _STAGED.pattern_id == UUID(pattern_filter.search.strip()))
            )
        except ValueError:
            conditions += words
    return conditions


def _build_sort_keys_query(tenant_id: str, cutoff: datetime | None, *, is_by_use: bool) -> CTE:
    """Return the query for the patterns of a tenant and their sort keys."""
    query: Any = select(
        _STAGED.pattern_id.label("id"), func.max(_STAGED.embedded_at).label("last_at")
    )
    shown_count: ColumnElement[int] = literal(0)
    if is_by_use:
        uses = _build_answer_counts_query(tenant_id).subquery()
        query = query.outerjoin(uses, uses.c.root == _STAGED.pattern_id)
        shown_count = func.coalesce(func.max(uses.c.shown_count), 0)
    query = query.add_columns(shown_count.label("shown_count"))
    living = (_STAGED.tenant == tenant_id, is_living(cutoff), _STAGED.pattern_id.is_not(None))
    sort_keys: CTE = query.where(*living).group_by(_STAGED.pattern_id).cte("sort_keys")
    return sort_keys


def _is_after(connection: Connection, sort_keys: CTE, after: UUID) -> ColumnElement[bool]:
    """Return the SQL condition for patterns that follow the pattern `after` in the list."""
    key = sort_keys.c
    last = connection.execute(select(sort_keys).where(key.id == after)).first()
    if last is None:
        raise UnknownExperience(
            "after: the tenant no longer has a pattern with this id",
            hint="start again at the first page",
        )
    is_older = or_(key.last_at < last.last_at, and_(key.last_at == last.last_at, key.id > after))
    return or_(
        key.shown_count < last.shown_count,
        and_(key.shown_count == last.shown_count, is_older),
    )


def _build_answer_counts_query(tenant_id: str) -> Select[Any]:
    """Return a query for the number of answers that contained each root pattern.

    An answer with a pattern that was merged into the root counts for the root.
    """
    questions, pattern = experience_questions.c, experience_patterns.c
    shown = (
        select(
            questions.id.label("query_id"),
            questions.asked_at,
            cast(func.jsonb_array_elements_text(questions.patterns), Uuid).label("pattern_id"),
        )
        .where(questions.tenant == tenant_id)
        .cte("shown")
    )
    # Few patterns are merged; all others are their own roots.
    above = (
        select(pattern.id.label("part"), pattern.merged_into.label("id"))
        .where(pattern.tenant == tenant_id, pattern.merged_into.is_not(None))
        .cte("above", recursive=True)
    )
    parents = (
        select(above.c.part, pattern.merged_into)
        .join(above, pattern.id == above.c.id)
        .where(pattern.tenant == tenant_id, pattern.merged_into.is_not(None))
    )
    above = above.union(parents)
    merged = select(pattern.id).where(pattern.tenant == tenant_id, pattern.merged_into.is_not(None))
    roots = select(above).where(above.c.id.not_in(merged)).subquery()
    root = func.coalesce(roots.c.id, shown.c.pattern_id)
    once = (
        select(root.label("root"), shown.c.query_id, shown.c.asked_at)
        .select_from(shown.outerjoin(roots, roots.c.part == shown.c.pattern_id))
        .distinct()
        .subquery()
    )
    return select(
        once.c.root,
        func.count().label("shown_count"),
        func.max(once.c.asked_at).label("last_shown_at"),
    ).group_by(once.c.root)


def _count_feedback(
    connection: Connection, tenant_id: str, ids: Sequence[UUID]
) -> dict[UUID, dict[str, int]]:
    """Count the feedback on each pattern and on the patterns merged into it, by outcome.

    Only the latest feedback of each question counts.
    """
    pattern = experience_patterns.c
    family = (
        select(pattern.id.label("root"), pattern.id)
        .where(pattern.tenant == tenant_id, pattern.id.in_(ids))
        .cte("family", recursive=True)
    )
    parts = (
        select(family.c.root, pattern.id)
        .join(family, pattern.merged_into == family.c.id)
        .where(pattern.tenant == tenant_id)
    )
    family = family.union(parts)
    feedback = experience_feedback.c
    # A question that was answered with several merged patterns counts once.
    last = (
        select(family.c.root, feedback.outcome)
        .join(experience_feedback, feedback.pattern_id == family.c.id)
        .where(feedback.tenant == tenant_id)
        .ext(distinct_on(family.c.root, feedback.query_id))
        .order_by(family.c.root, feedback.query_id, feedback.given_at.desc(), feedback.pattern_id)
        .subquery()
    )
    query: Any = select(
        last.c.root,
        func.count().filter(last.c.outcome == "helped").label("helped"),
        func.count().filter(last.c.outcome == "did_not_help").label("did_not_help"),
    ).group_by(last.c.root)
    return {
        row.root: {"helped": row.helped, "did_not_help": row.did_not_help}
        for row in connection.execute(query)
    }


NAMES: Final = ("agent_type", "task_type", "technology")
"""The fields of an entry that questions filter by."""
_MAX_SPELLINGS: Final = 90


class Aliases:
    """Groups of spelling variants of the same name.

    Args:
        own: a tenant's own spelling variants by name; they replace the shipped variants.
    """

    def __init__(self, own: Mapping[str, Sequence[str]]) -> None:
        shipped = load_words()["aliases"].strip().splitlines()
        groups = {_fold_name(name): names for name, *names in map(str.split, shipped)}
        groups |= {_fold_name(name): [*names] for name, names in own.items()}
        self._names = {
            _fold_name(variant): name for name, names in groups.items() for variant in names
        }

    def resolve_name(self, spelling: str) -> str:
        """Return the canonical name for a spelling variant; unknown spellings are only folded."""
        folded = _fold_name(spelling)
        return self._names.get(folded, folded)

    def find_spellings(self, spelling: str, stored: Collection[str]) -> tuple[str, ...]:
        """Return the spelling variants of a name that occur among the stored spellings."""
        name = self.resolve_name(spelling)
        spellings = sorted(other for other in stored if self.resolve_name(other) == name)
        return tuple(spellings[:_MAX_SPELLINGS])


def resolve_names(
    catalog: Catalog, tenant_id: str, aliases: Aliases, asked_names: Mapping[str, str | None]
) -> tuple[dict[str, tuple[str, ...]], tuple[UnmatchedName, ...]]:
    """Return the stored spelling variants of each name, and the names without a stored variant.

    Args:
        asked_names: the names in a question by field; None matches all entries.
    """
    wanted_names = {field: name for field, name in asked_names.items() if name is not None}
    stored = _read_stored_names(catalog, tenant_id, wanted_names) if wanted_names else {}
    known_spellings = {
        field: aliases.find_spellings(name, stored[field]) for field, name in wanted_names.items()
    }
    unmatched = tuple(
        UnmatchedName(field, "no entry has this value or a value with the same meaning")
        for field, spellings in known_spellings.items()
        if not spellings
    )
    return {
        field: spellings or (wanted_names[field],) for field, spellings in known_spellings.items()
    }, unmatched


def _read_stored_names(
    catalog: Catalog, tenant_id: str, fields: Collection[str]
) -> dict[str, frozenset[str]]:
    entries = knowledge_staging.c
    queries = [
        select(literal(field), entries[field])
        .where(entries.tenant == tenant_id, entries.embedded, entries[field].is_not(None))
        .distinct()
        for field in fields
    ]
    with catalog.database.begin() as connection:
        rows = connection.execute(union_all(*queries)).all()
    return {field: frozenset(name for column, name in rows if column == field) for field in fields}


def _fold_name(spelling: str) -> str:
    """Return a name in lower case without blanks and punctuation, except + and #."""
    compatible = unicodedata.normalize("NFKC", spelling).casefold()
    folded = "".join(c for c in compatible if c.isalnum() or c in "+#")
    return folded or compatible
