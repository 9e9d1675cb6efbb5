"""What an entry must hold to be kept: the fields of its type, and a verified solution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rag_assets.api.experience_responses import EntryType
from rag_assets.common.errors import InvalidRequest, NotVerified
from rag_assets.systems.experience.model import CheckpointDraft, EntryDraft, RetractDraft

_FIELDS: Mapping[EntryType, tuple[str, ...]] = {
    "failure_solution": (
        *("failure_description", "error_message", "solution_steps", "success_verified"),
    ),
    "gate_rejection": ("gate_type", "human_feedback", "revision_approach"),
    "gate_approval": ("gate_type", "approved_approach"),
}
_NEEDED: Mapping[EntryType, tuple[str, ...]] = {
    "failure_solution": ("agent_type", "failure_description"),
    "gate_rejection": ("gate_type", "human_feedback", "revision_approach"),
    "gate_approval": ("gate_type", "approved_approach"),
}
_OF_ANY_TYPE = frozenset(name for names in _FIELDS.values() for name in names)


def faults(draft: EntryDraft) -> Iterator[tuple[str, str]]:
    """The fields that are wrong in an entry, each with what is the matter."""
    own = _FIELDS[draft.entry_type]
    for name in sorted(_OF_ANY_TYPE.difference(own)):
        if getattr(draft, name) is not None:
            yield name, f"a {draft.entry_type} has no {name}"
    for name in _NEEDED[draft.entry_type]:
        if getattr(draft, name) is None:
            yield name, f"a {draft.entry_type} needs its {name}"


def require_verified(draft: EntryDraft) -> None:
    """Require that the solution of a failure is there and was verified.

    Raises:
        NotVerified: it is not; nothing of the entry is kept.
    """
    if draft.entry_type != "failure_solution":
        return
    if draft.solution_steps is None:
        raise NotVerified(
            "solution_steps: a failure without a solution teaches nothing",
            hint="capture it once it is solved",
        )
    if not draft.success_verified:
        raise NotVerified(
            "success_verified: the solution was not verified",
            hint="capture it with success_verified: true once it has been",
        )


def checkpoint_faults(draft: CheckpointDraft) -> Iterator[tuple[str, str]]:
    """The fields that are wrong in a checkpoint."""
    if draft.project_id is None and draft.checkpoint_type != "manual":
        yield "project_id", f"a checkpoint of type {draft.checkpoint_type} is of one project"


def retraction_faults(draft: RetractDraft) -> Iterator[tuple[str, str]]:
    """The fields that are wrong in a retraction."""
    if (draft.project_id is None) == (draft.token is None):
        yield "project_id", "name either a project or a token"


def require_none(found: Iterator[tuple[str, str]]) -> None:
    """Require that nothing is wrong.

    Raises:
        InvalidRequest: something is; names the first field.
    """
    for name, problem in found:
        raise InvalidRequest(f"{name}: {problem}", hint="correct that field")
