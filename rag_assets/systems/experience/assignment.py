"""Assigns new entries to patterns: to a pattern with the same solution, or to a new pattern."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from uuid import UUID

import numpy as np
import numpy.typing as npt
from sqlalchemy import ColumnElement, select

from rag_assets.common.hashing import sha256_hex
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.embedding import get_vectors
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.database import matches_any
from rag_assets.storage.index.model import EntryFilter, RankingRequest
from rag_assets.systems.experience.differences import (
    find_problem_difference,
    find_solution_difference,
)
from rag_assets.systems.experience.entries import entry_from_row
from rag_assets.systems.experience.model import Entry
from rag_assets.systems.experience.tables import experience_patterns, knowledge_staging
from rag_assets.systems.experience.wording import (
    build_searched_text,
    compute_exact_key,
    compute_problem_key,
    describe_comparable_problem,
    describe_solution,
)

_MAX_CANDIDATES = 30
_STAGED = knowledge_staging.c
_Vectors = Mapping[str, npt.NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Minimum cosines at which two entries are merged."""

    problem: float
    solution: float


# Calibrated on the pairs of examples/experience (decision 23).
BOUNDS: Mapping[str, Bounds] = {"local/all-MiniLM-L6-v2": Bounds(problem=0.60, solution=0.60)}
"""Bounds by the embedder's `provider/model`; without bounds, only equal entries are merged."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """An entry with the pattern to which it is assigned.

    Attributes:
        home_id: id of the pattern to which the entry belongs before any manual merge; the entry's
            own id if the entry starts a new pattern.
        way: how the entry was merged: exact (equal text) or near (similar vectors); None if it was
            not merged.
        kept_texts: hashes of the entry's texts that were embedded for the comparison.
    """

    entry: Entry
    home_id: UUID
    problem_id: UUID | None = None
    way: str | None = None
    other_id: UUID | None = None
    problem_cosine: float | None = None
    solution_cosine: float | None = None
    bounds: Mapping[str, float] = field(default_factory=dict)
    kept_texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _KnownEntry:
    """An entry with its pattern and problem."""

    entry: Entry
    home_id: UUID
    problem_id: UUID


class Assigner:
    """Assigns entries to patterns, also to patterns of earlier entries in the same batch."""

    def __init__(self, ctx: TenantContext, serving: Generation) -> None:
        self._ctx = ctx
        self._serving = serving
        self._bounds = BOUNDS.get(serving.embedder_id.partition("@")[0])

    def assign(self, entries: Sequence[Entry]) -> tuple[list[Assignment], str | None]:
        """Return the assignment of each entry, and why some were not compared by vectors."""
        keys = {entry.id: compute_exact_key(entry) for entry in entries}
        by_key = self._find_entries_by_key(set(keys.values()))
        problems = self._find_problem_ids(set(filter(None, map(compute_problem_key, entries))))
        near, vectors, reason = self._find_nearest_entries(entries)
        known = self._find_entries_by_id({id_ for ids in near.values() for id_ in ids})
        assigned: list[Assignment] = []
        for entry in entries:
            same_solution = by_key.get(keys[entry.id])
            if same_solution is not None:
                assignment = Assignment(
                    entry,
                    same_solution.home_id,
                    same_solution.problem_id,
                    "exact",
                    same_solution.entry.id,
                )
            else:
                others = [known[id_] for id_ in near.get(entry.id, ()) if id_ in known]
                problem = problems.get(compute_problem_key(entry) or "")
                assignment = self._assign_similar(entry, others, vectors, problem)
            assignment = _with_kept_texts(assignment, vectors)
            assigned.append(assignment)
            now = _KnownEntry(
                entry, assignment.home_id, assignment.problem_id or assignment.home_id
            )
            by_key.setdefault(keys[entry.id], now)
            known[entry.id] = now
            if (key := compute_problem_key(entry)) is not None:
                problems.setdefault(key, now.problem_id)
        return assigned, reason

    def _assign_similar(
        self,
        entry: Entry,
        others: Sequence[_KnownEntry],
        vectors: _Vectors,
        alternative: UUID | None,
    ) -> Assignment:
        """Assign an entry to the most similar pattern, or else to a new pattern.

        The new pattern belongs to a known problem if one has similar or the same words.

        Args:
            entry: an entry without an equal entry.
            vectors: vectors of problems and solutions, by hash of the text.
            alternative: id of the problem that another entry describes in the same words; None
                without such an entry.
        """
        if self._bounds is None:
            return Assignment(entry, entry.id, alternative)
        best: Assignment | None = None
        own_problem, own_solution = describe_comparable_problem(entry), describe_solution(entry)
        for other in others:
            other_problem = describe_comparable_problem(other.entry)
            other_solution = describe_solution(other.entry)
            problem = _compute_cosine(vectors, own_problem, other_problem)
            solution = _compute_cosine(vectors, own_solution, other_solution)
            if problem is None or solution is None or problem < self._bounds.problem:
                continue
            if find_problem_difference(own_problem, other_problem):
                continue
            if entry.entry_type != "gate_approval":
                alternative = alternative or other.problem_id
            if solution < self._bounds.solution:
                continue
            if find_solution_difference(own_solution, other_solution):
                continue
            assignment = Assignment(
                entry,
                other.home_id,
                other.problem_id,
                "near",
                other.entry.id,
                problem,
                solution,
                asdict(self._bounds),
            )
            if best is None or _sum_cosines(assignment) > _sum_cosines(best):
                best = assignment
        return best or Assignment(entry, entry.id, alternative)

    def _find_nearest_entries(
        self, entries: Sequence[Entry]
    ) -> tuple[dict[UUID, list[UUID]], _Vectors, str | None]:
        """Return the entries nearest to each entry, and the vectors for comparing them.

        The third value states why some entries were not compared. Without bounds for the embedder,
        nothing is searched or embedded.
        """
        if self._bounds is None:
            return {}, {}, None
        searched = {entry.id: sha256_hex(build_searched_text(entry)) for entry in entries}
        ctx = self._ctx.for_build(self._serving)
        stored = ctx.lake.vectors(ctx.embedder.embedder_id, set(searched.values()))
        own = dict(zip(stored.hashes, stored.vectors, strict=True))
        compared_entries = [entry for entry in entries if searched[entry.id] in own]
        requests = [
            RankingRequest(own[searched[entry.id]], _MAX_CANDIDATES, _filter_same_kind(entry))
            for entry in compared_entries
        ]
        rankings = asyncio.run(self._fetch_rankings(requests)) if requests else []
        by_document = self._find_entry_ids({id_ for ranking in rankings for id_ in ranking})
        near = {
            entry.id: [by_document[id_] for id_ in ranking if id_ in by_document]
            for entry, ranking in zip(compared_entries, rankings, strict=True)
        }
        known = self._find_entries_by_id({id_ for ids in near.values() for id_ in ids})
        compared = [*entries, *(other.entry for other in known.values())]
        texts = {
            sha256_hex(text): text
            for entry in compared
            for text in (describe_comparable_problem(entry), describe_solution(entry))
        }
        vectors, reason = get_vectors(ctx, self._serving, texts)
        return near, vectors, reason

    async def _fetch_rankings(self, requests: Sequence[RankingRequest]) -> list[list[str]]:
        searcher = self._ctx.store.searcher()
        try:
            rankings = await searcher.rankings(
                self._serving.index_name, self._ctx.owner(self._serving), requests
            )
        finally:
            await searcher.close()
        return [[candidate.document_id for candidate in ranking] for ranking in rankings]

    def _find_entry_ids(self, document_ids: set[str]) -> dict[str, UUID]:
        query = select(_STAGED.document_id, _STAGED.id).where(
            _STAGED.tenant == self._ctx.ref.id, matches_any(_STAGED.document_id, document_ids)
        )
        with self._ctx.catalog.database.begin() as connection:
            return {row.document_id: row.id for row in connection.execute(query)}

    def _find_entries_by_id(self, ids: set[UUID]) -> dict[UUID, _KnownEntry]:
        known = self._read_known_entries(_STAGED.id.in_(ids)) if ids else []
        return {entry.entry.id: entry for entry in known}

    def _find_entries_by_key(self, keys: set[str]) -> dict[str, _KnownEntry]:
        entries_by_key: dict[str, _KnownEntry] = {}
        for known in self._read_known_entries(matches_any(_STAGED.exact_key, keys)):
            entries_by_key.setdefault(compute_exact_key(known.entry), known)
        return entries_by_key

    def _find_problem_ids(self, keys: set[str]) -> dict[str, UUID]:
        """Return the id of the stored problem for each problem key; new keys are left out."""
        ids_by_key: dict[str, UUID] = {}
        for known in (
            self._read_known_entries(matches_any(_STAGED.problem_key, keys)) if keys else ()
        ):
            ids_by_key.setdefault(compute_problem_key(known.entry) or "", known.problem_id)
        return ids_by_key

    def _read_known_entries(self, condition: ColumnElement[bool]) -> list[_KnownEntry]:
        """Return the embedded entries that match a condition, in the order of embedding.

        Entries without a pattern are left out.
        """
        query = (
            select(knowledge_staging, experience_patterns.c.problem_id)
            .join(
                experience_patterns,
                (experience_patterns.c.tenant == _STAGED.tenant)
                & (experience_patterns.c.id == _STAGED.pattern_id),
            )
            .where(_STAGED.tenant == self._ctx.ref.id, _STAGED.embedded, condition)
            .order_by(_STAGED.embedded_at, _STAGED.timestamp, _STAGED.id)
        )
        with self._ctx.catalog.database.begin() as connection:
            return [
                _KnownEntry(entry_from_row(row), row.home_id, row.problem_id)
                for row in connection.execute(query)
            ]


def _filter_same_kind(entry: Entry) -> EntryFilter:
    """Return a filter for entries of the same type, gate and agent."""
    return EntryFilter(
        metadata={
            "entry_type": [entry.entry_type],
            "agent_type": [entry.agent_type],
            "gate_type": [entry.gate_type],
        }
    )


def _compute_cosine(vectors: _Vectors, first: str, second: str) -> float | None:
    first_vector, second_vector = vectors.get(sha256_hex(first)), vectors.get(sha256_hex(second))
    return (
        None
        if first_vector is None or second_vector is None
        else float(first_vector @ second_vector)
    )


def _with_kept_texts(assignment: Assignment, vectors: _Vectors) -> Assignment:
    texts = (describe_comparable_problem(assignment.entry), describe_solution(assignment.entry))
    kept_keys = tuple(key for key in map(sha256_hex, texts) if key in vectors)
    return replace(assignment, kept_texts=kept_keys)


def _sum_cosines(assignment: Assignment) -> float:
    return (assignment.problem_cosine or 0.0) + (assignment.solution_cosine or 0.0)
