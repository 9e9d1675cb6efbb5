"""What an entry must hold to be kept: the fields of its type, and a verified solution."""

from __future__ import annotations

from collections.abc import Iterator

from rag_assets.common.errors import InvalidRequest
from rag_assets.systems.experience.entry_types import FIELDS, NEEDED, OF_ANY_TYPE
from rag_assets.systems.experience.errors import NotVerified
from rag_assets.systems.experience.model import CheckpointDraft, EntryDraft, RetractDraft


def faults(draft: EntryDraft) -> Iterator[tuple[str, str]]:
    """The fields that are wrong in an entry, each with what is the matter."""
    own = FIELDS[draft.entry_type]
    for name in sorted(OF_ANY_TYPE.difference(own)):
        if getattr(draft, name) is not None:
            yield name, f"a {draft.entry_type} has no {name}"
    for name in NEEDED[draft.entry_type]:
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
