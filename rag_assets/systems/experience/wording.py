"""The words of an entry: its problem and solution, when to try it, and what is searched of it."""

from __future__ import annotations

from typing import Final, Protocol

from rag_assets.api.experience_responses import EntryType
from rag_assets.common.tokens import count_text
from rag_assets.systems.experience.traces import (
    condense,
    error_line,
    prose_of,
    searchable,
    stored_keys,
)

WORDING_VERSION: Final = 2
"""Increased whenever the same entry would have another searched text or other keys.

Records that were written by a former version are written anew by the next run of their tenant.
"""
MAX_TOKENS: Final = 2_000
"""cl100k_base tokens of an entry that are searched."""
MAX_ERROR_TOKENS: Final = 200
"""Of these, tokens of the error beside a description."""
_MAX_SYMPTOM_TOKENS: Final = 60
_GAP = "[...]"


class Worded(Protocol):
    """What an entry says, captured or kept."""

    @property
    def entry_type(self) -> EntryType: ...  # noqa: D102
    @property
    def agent_type(self) -> str | None: ...  # noqa: D102
    @property
    def task_type(self) -> str | None: ...  # noqa: D102
    @property
    def technology(self) -> str | None: ...  # noqa: D102
    @property
    def failure_description(self) -> str | None: ...  # noqa: D102
    @property
    def error_message(self) -> str | None: ...  # noqa: D102
    @property
    def solution_steps(self) -> str | None: ...  # noqa: D102
    @property
    def gate_type(self) -> str | None: ...  # noqa: D102
    @property
    def human_feedback(self) -> str | None: ...  # noqa: D102
    @property
    def revision_approach(self) -> str | None: ...  # noqa: D102
    @property
    def approved_approach(self) -> str | None: ...  # noqa: D102
    @property
    def when_to_try(self) -> str | None: ...  # noqa: D102


def problem_of(entry: Worded) -> str:
    """Return the problem as people and agents read it; a trace is the line of its exception."""
    match entry.entry_type:
        case "failure_solution":
            texts = (entry.failure_description, entry.error_message)
            return "\n".join(condense(text) for text in texts if text)
        case "gate_rejection":
            feedback = entry.human_feedback or ""
            return f"A reviewer rejected the change at the {_gate(entry)}: {feedback}"
        case "gate_approval":
            return f"Pass the {_gate(entry)} at the first attempt"


def compared_problem(entry: Worded) -> str:
    """Return the problem by which entries are compared, without what differs by machine."""
    match entry.entry_type:
        case "failure_solution":
            description = prose_of(entry.failure_description or "")
            return "\n".join(filter(None, (description, searchable(entry.error_message or ""))))
        case "gate_rejection":
            return entry.human_feedback or ""
        case "gate_approval":
            return problem_of(entry)


def solution_of(entry: Worded) -> str:
    """Return what solved the problem."""
    match entry.entry_type:
        case "failure_solution":
            return entry.solution_steps or ""
        case "gate_rejection":
            return entry.revision_approach or ""
        case "gate_approval":
            return entry.approved_approach or ""


def when_to_try(entry: Worded) -> str | None:
    """Return when the solution is worth trying; None if the entry does not show it.

    What was captured goes before the symptom of a failure: the line of its error.
    """
    if entry.when_to_try:
        return entry.when_to_try
    line = error_line(entry.failure_description or "", entry.error_message)
    return f"After the error {shortened(line, _MAX_SYMPTOM_TOKENS)}" if line else None


def failure_question(description: str, error: str | None) -> str:
    """Return a failure as it is embedded, captured or asked.

    Of traces only the lines of their exceptions are searched: frames of any two traces are alike,
    and would drown the description.
    """
    lines = shortened(searchable(error), MAX_ERROR_TOKENS) if error else ""
    prose = prose_of(description)
    return f"Failure: {prose}\nError: {lines}" if lines else f"Failure: {prose}"


def searched_text(entry: Worded) -> str:
    """Return what is embedded of an entry: what a question about the same problem is nearest to.

    The description of a failure keeps its form in questions. A gate is asked about by tasks, which
    speak of what is to be made: its solution belongs to it.
    """
    if entry.entry_type == "failure_solution":
        question = failure_question(entry.failure_description or "", entry.error_message)
        return shortened(question, MAX_TOKENS)
    return shortened(prose_of(f"{compared_problem(entry)}\n{solution_of(entry)}"), MAX_TOKENS)


def error_keys(entry: Worded) -> list[str]:
    """Return the keys of the errors in an entry, which are searched for exactly."""
    if entry.entry_type == "gate_rejection":
        return stored_keys(entry.human_feedback or "", None)
    return stored_keys(entry.failure_description or "", entry.error_message)


def _gate(entry: Worded) -> str:
    name = entry.gate_type or ""
    return name if name.casefold().endswith("gate") else f"{name} gate"


def shortened(text: str, tokens: int) -> str:
    """A text within a limit: its first and its last lines, which say most of a long error.

    Args:
        text: any.
        tokens: cl100k_base tokens that it may have.
    """
    if count_text(text) <= tokens:
        return text
    lines = text.splitlines()
    if len(lines) <= 2:  # noqa: PLR2004 - nothing between the first and the last
        return _cut(text, tokens)
    least, most = 1, len(lines) // 2
    while least < most:
        middle = (least + most + 1) // 2
        if count_text(_ends(lines, middle)) <= tokens:
            least = middle
        else:
            most = middle - 1
    ends = _ends(lines, least)
    return ends if count_text(ends) <= tokens else _cut(ends, tokens)


def _ends(lines: list[str], count: int) -> str:
    return "\n".join([*lines[:count], _GAP, *lines[-count:]])


def _cut(text: str, tokens: int) -> str:
    """As many characters from both ends as fit."""
    least, most = 0, len(text) // 2
    while least < most:
        middle = (least + most + 1) // 2
        if count_text(_around(text, middle)) <= tokens:
            least = middle
        else:
            most = middle - 1
    return _around(text, least)


def _around(text: str, count: int) -> str:
    return f"{text[:count]} {_GAP} {text[len(text) - count :]}"
