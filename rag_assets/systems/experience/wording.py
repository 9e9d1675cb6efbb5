"""The words of an entry: its problem and solution, when to try it, and what is searched of it."""

from __future__ import annotations

from typing import Protocol

from rag_assets.api.experience_responses import EntryType
from rag_assets.common.tokens import count_text
from rag_assets.systems.experience.model import ANY_AGENT

MOST_TOKENS = 2_000
"""cl100k_base tokens of an entry that are searched."""
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
    """What was the matter."""
    match entry.entry_type:
        case "failure_solution":
            return "\n".join(filter(None, (entry.failure_description, entry.error_message)))
        case "gate_rejection":
            return entry.human_feedback or ""
        case "gate_approval":
            return f"Pass the {entry.gate_type} gate at the first attempt"


def solution_of(entry: Worded) -> str:
    """What solved it."""
    match entry.entry_type:
        case "failure_solution":
            return entry.solution_steps or ""
        case "gate_rejection":
            return entry.revision_approach or ""
        case "gate_approval":
            return entry.approved_approach or ""


def when_to_try(entry: Worded) -> str:
    """When the solution is worth trying: as it was captured, else of what is known."""
    if entry.when_to_try:
        return entry.when_to_try
    error = (entry.error_message or "").strip().partition("\n")[0].strip()
    known = (
        ("Agent", entry.agent_type if entry.agent_type != ANY_AGENT else None),
        ("task", entry.task_type),
        ("technology", entry.technology),
        ("error", error),
    )
    told = "; ".join(f"{name}: {value}" for name, value in known if value)
    return told or (f"Gate: {entry.gate_type}" if entry.gate_type else "Always")


def failure_question(description: str, error: str | None) -> str:
    """A failure as it is embedded, captured or asked."""
    return f"Failure: {description}\nError: {error}" if error else f"Failure: {description}"


def searched_text(entry: Worded) -> str:
    """What is embedded of an entry: what a question about the same problem is nearest to.

    The description of a failure keeps its form in questions. A gate is asked about by tasks, which
    speak of what is to be made: its solution belongs to it.
    """
    if entry.entry_type == "failure_solution":
        description = entry.failure_description or ""
        whole = failure_question(description, entry.error_message)
        if count_text(whole) <= MOST_TOKENS or entry.error_message is None:
            return shortened(whole, MOST_TOKENS)
        room = MOST_TOKENS - count_text(failure_question(description, _GAP))
        if room < MOST_TOKENS // 4:
            return shortened(whole, MOST_TOKENS)
        return failure_question(description, shortened(entry.error_message, room))
    return shortened(f"{problem_of(entry)}\n{solution_of(entry)}", MOST_TOKENS)


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
