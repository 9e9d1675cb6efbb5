"""Responses of the experience endpoints.

The client package imports them, so they are here and not in the folder of the experience system.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self, TypeAlias
from uuid import UUID

EntryType: TypeAlias = Literal["failure_solution", "gate_rejection", "gate_approval"]
CheckpointType: TypeAlias = Literal[
    "phase_completion", "project_completion", "cancellation", "manual"
]
CheckpointState: TypeAlias = Literal["waiting", "running", "done", "stopped"]
ProjectState: TypeAlias = Literal["active", "completed", "cancelled"]
Outcome: TypeAlias = Literal["helped", "did_not_help"]
Use: TypeAlias = Literal["task", "failure"]
ContextReason: TypeAlias = Literal[
    "disabled",
    "nothing-found",
    "no-key",
    "cap-reached",
    "embedder-unavailable",
    "index-unavailable",
]
"""Reason why an agent's context has no block of patterns."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A solution to a problem, as answers show it.

    Attributes:
        id: id of the pattern.
        quality: HIGH for a verified solution of a failure, HIGHEST for a decision at a gate.
        problem, solution: texts of the pattern's best matching entry.
        when_to_try: the symptom or the precondition of that entry; None if it has neither.
        success_count: number of checkpoints that contributed to the pattern, plus number of times
            that feedback said it helped.
        failure_count: number of times that feedback said the pattern did not help.
        label: Most Common, Moderate or Less Common, by success_count; Mostly Failed if
            failure_count is higher than success_count.
        score: cosine of the question and the pattern's nearest entry; None without a question.
        projects: ids of the projects that contributed to the pattern.
        first_embedded_at, last_embedded_at: when the first and the last entry were embedded.
        conflicts_with: ids of alternatives for the same problem in the same answer.
        stale_paths: files that the pattern is about and that were changed or deleted later.
        shown_count: number of stored questions whose answers contained the pattern; None in an
            answer.
        last_shown_at: time of the latest of these questions.
    """

    id: UUID
    entry_type: EntryType
    quality: Literal["HIGH", "HIGHEST"]
    problem: str
    solution: str
    when_to_try: str | None
    success_count: int
    failure_count: int
    label: str
    score: float | None
    agent_type: str
    gate_type: str | None
    task_type: str | None
    technology: str | None
    projects: tuple[UUID, ...]
    first_embedded_at: datetime
    last_embedded_at: datetime
    conflicts_with: tuple[UUID, ...] = ()
    stale_paths: tuple[str, ...] = ()
    shown_count: int | None = None
    last_shown_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SplitPattern(Pattern):
    """A new pattern that was created by splitting another pattern, with its entries."""

    entries: tuple[PatternEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class UnmatchedName:
    """A name in a question that matches no entry, in any spelling variant.

    Attributes:
        field: field of the question, such as technology or task.type.
        problem: description of the mismatch, for people.
    """

    field: str
    problem: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The patterns that answer a question, best first.

    Attributes:
        query_id: id for feedback; None if the tenant is disabled.
        threshold: minimum cosine of an entry; None without a threshold.
        disabled: whether the tenant is disabled; then the answer is empty.
        warnings: names in the question that no entry contains in any spelling.
    """

    query_id: UUID | None
    threshold: float | None
    patterns: tuple[Pattern, ...] = ()
    disabled: bool = False
    warnings: tuple[UnmatchedName, ...] = ()

    @classmethod
    def of_disabled(cls) -> Self:
        """Return the answer of a disabled tenant."""
        return cls(None, None, disabled=True)


@dataclass(frozen=True, slots=True)
class Context:
    """The prompt context of an agent, with a block of patterns.

    Attributes:
        context: the basic context, and the block of patterns after a blank line.
        tokens: number of tokens of the block.
        reason: why the block is missing; None if it is present.
        warnings: see Answer.
    """

    context: str
    query_id: UUID | None
    patterns: tuple[Pattern, ...]
    tokens: int
    disabled: bool = False
    reason: ContextReason | None = None
    warnings: tuple[UnmatchedName, ...] = ()


@dataclass(frozen=True, slots=True)
class Project:
    """A project that contributes entries."""

    id: UUID
    name: str
    state: ProjectState
    created_at: datetime


@dataclass(frozen=True, slots=True)
class CapturedEntry:
    """A captured entry.

    Attributes:
        quality: HIGH or HIGHEST.
        staged: whether the entry waits for a checkpoint.
        masked: names of the rules that found credentials; in the text, each credential is replaced
            by the name of its rule.
    """

    id: UUID
    quality: str
    staged: bool
    masked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RequestedCheckpoint:
    """A requested checkpoint, and the number of staged entries that it includes."""

    checkpoint_id: UUID
    staged: int


@dataclass(frozen=True, slots=True)
class CheckpointProgress:
    """The progress of a checkpoint; see Checkpoint."""

    state: str
    staged: int
    embedded: int
    merged: int
    failed: int
    error: str | None
    processed_at: datetime | None


@dataclass(frozen=True, slots=True)
class FeedbackCounts:
    """The counts of a pattern after feedback on it."""

    pattern_id: UUID
    success_count: int
    failure_count: int


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge of an entry into its pattern.

    Attributes:
        way: how the entry was merged: exact, near, or manual.
        problem_cosine, solution_cosine, bounds: only set if way is near.
        split_at: when the merge was undone.
        problem, solution: the beginning of the entry's texts; None if the entry is expired or
            deleted.
        other_problem, other_solution: the same for the entry with which it was compared.
    """

    entry_id: UUID
    other_id: UUID | None
    way: str
    problem_cosine: float | None
    solution_cosine: float | None
    bounds: Mapping[str, float]
    merged_by: str
    merged_at: datetime
    split_at: datetime | None
    split_by: str | None
    problem: str | None = None
    solution: str | None = None
    other_problem: str | None = None
    other_solution: str | None = None


@dataclass(frozen=True, slots=True)
class PatternEntry:
    """An entry of a pattern with its texts and its expiry."""

    id: UUID
    project_id: UUID | None
    checkpoint_id: UUID | None
    contributed_by: str | None
    captured_at: datetime
    embedded_at: datetime | None
    expires_at: datetime | None
    problem: str
    solution: str
    when_to_try: str | None
    agent_type: str
    task_type: str | None
    technology: str | None


@dataclass(frozen=True, slots=True)
class PatternDetails:
    """A pattern with its entries and merges."""

    pattern: Pattern
    entries: tuple[PatternEntry, ...]
    merges: tuple[Merge, ...]


@dataclass(frozen=True, slots=True)
class Patterns:
    """A page of patterns.

    Attributes:
        next: `after` of the next page; None on the last page.
        warnings: if no pattern matches, the names in the filter that match no entry.
    """

    patterns: tuple[Pattern, ...]
    next: UUID | None = None
    warnings: tuple[UnmatchedName, ...] = ()


@dataclass(frozen=True, slots=True)
class Retracted:
    """The number of retracted entries."""

    entries: int


@dataclass(frozen=True, slots=True)
class Report:
    """A report on the experience of a tenant.

    Attributes:
        entries: number of embedded entries by type.
        staged: number of entries that wait for a checkpoint.
        never_shown: number of patterns that never answered a question.
        expires_within_30_days: number of entries that expire within 30 days.
        next_expiry: when the next entry expires.
    """

    patterns: int
    entries: Mapping[str, int]
    staged: int
    failed: int
    merges: Mapping[str, int]
    splits: int
    questions: Mapping[str, int]
    helped: int
    did_not_help: int
    never_shown: int
    open_checkpoints: int
    expires_within_30_days: int
    next_expiry: datetime | None
