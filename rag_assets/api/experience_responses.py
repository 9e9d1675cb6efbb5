"""What the endpoints of experience answer."""

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
"""Why an agent's context is the basic one alone."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One problem solved in one way, as it is answered.

    Attributes:
        id: of the pattern.
        quality: HIGH for a verified solution of a failure, HIGHEST for a person's word at a gate.
        problem, solution: of its entry that answers best.
        when_to_try: the symptom or the precondition in that entry; None: it has none.
        success_count: projects' checkpoints that contributed it, and answers that it helped.
        failure_count: answers that it did not help.
        label: Most Common, Moderate or Less Common, by its successes; Mostly Failed where failures
            outnumber them.
        score: cosine of the question and the nearest of its entries; None where nothing was asked.
        projects: those that contributed to it.
        first_embedded_at, last_embedded_at: of its entries.
        conflicts_with: patterns of the same answer that solve the same problem in another way.
        stale_paths: of the code that it is about, what is no more, or is another content by now.
        shown_count: answers that it was in, of the questions that are kept; None in an answer.
        last_shown_at: when it was in the last of them; None: in none.
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
    """The pattern that a split made, with the entries that went into it."""

    entries: tuple[PatternEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class UnmatchedName:
    """A name in a question that no entry has, whatever its spelling.

    Attributes:
        field: where it stands in the question, as in technology or task.type.
        problem: in words.
    """

    field: str
    problem: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The patterns that answer a question, best first.

    Attributes:
        query_id: to give feedback on; None where nothing was asked.
        threshold: the cosine below which an entry does not answer; None: there is none.
        disabled: whether the tenant is switched off.
        warnings: values of the question that no entry has, whatever its spelling.
    """

    query_id: UUID | None
    threshold: float | None
    patterns: tuple[Pattern, ...] = ()
    disabled: bool = False
    warnings: tuple[UnmatchedName, ...] = ()

    @classmethod
    def of_disabled(cls) -> Self:
        """The answer of a tenant that is switched off."""
        return cls(None, None, disabled=True)


@dataclass(frozen=True, slots=True)
class Context:
    """The context of an agent, with what past projects learned.

    Attributes:
        context: the basic context, and the block of patterns after a blank line.
        tokens: of the block.
        reason: why there is no block; None where there is one.
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
    """An entry that was captured.

    Attributes:
        quality: HIGH or HIGHEST.
        staged: whether it waits for a checkpoint.
        masked: names of the rules whose findings were replaced by these names.
    """

    id: UUID
    quality: str
    staged: bool
    masked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RequestedCheckpoint:
    """A checkpoint that was requested, and how many entries it took."""

    checkpoint_id: UUID
    staged: int


@dataclass(frozen=True, slots=True)
class CheckpointProgress:
    """What became of a checkpoint so far; see Checkpoint."""

    state: str
    staged: int
    embedded: int
    merged: int
    failed: int
    error: str | None
    processed_at: datetime | None


@dataclass(frozen=True, slots=True)
class FeedbackCounts:
    """What is known of a pattern after feedback on it."""

    pattern_id: UUID
    success_count: int
    failure_count: int


@dataclass(frozen=True, slots=True)
class Merge:
    """Why an entry is one of its pattern.

    Attributes:
        way: exact, near, or manual.
        problem_cosine, solution_cosine, bounds: of entries that are near.
        split_at: when it ceased to be one.
        problem, solution: the first characters of the entry's; None: it does not answer any more.
        other_problem, other_solution: likewise, of the entry that it was compared with.
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
    """An entry of a pattern with its texts, and when it expires."""

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
    """A pattern with everything it is counted from."""

    pattern: Pattern
    entries: tuple[PatternEntry, ...]
    merges: tuple[Merge, ...]


@dataclass(frozen=True, slots=True)
class Patterns:
    """A page of patterns.

    Attributes:
        next: `after` of the next page; None for the last one.
        warnings: values of the filter that no entry has, where nothing is listed.
    """

    patterns: tuple[Pattern, ...]
    next: UUID | None = None
    warnings: tuple[UnmatchedName, ...] = ()


@dataclass(frozen=True, slots=True)
class Retracted:
    """How many entries were taken back."""

    entries: int


@dataclass(frozen=True, slots=True)
class Report:
    """What a tenant's experience holds.

    Attributes:
        entries: by type, of those that are found.
        staged: that wait for a checkpoint.
        never_shown: patterns that no question was answered with.
        expires_within_30_days: entries.
        next_expiry: when the next of them does.
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
