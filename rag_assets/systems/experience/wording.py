"""Texts and keys of an entry: problem, solution, when to try it, searched text, compared keys."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from rag_assets.common.hashing import compute_key
from rag_assets.common.tokens import count_text
from rag_assets.systems.experience.model import ANY_AGENT, Entry, EntryDraft
from rag_assets.systems.experience.traces import (
    compute_stored_keys,
    condense_errors,
    condense_prose,
    condense_traces,
    find_error_line,
)

WORDING_VERSION: Final = 2
"""Version of the rules for searched texts and keys; increase it with every change of the rules.

The next run of a tenant rewrites records of an earlier version.
"""
MAX_TOKENS: Final = 2_000
"""Maximum size of a searched text, in cl100k_base tokens."""
MAX_ERROR_TOKENS: Final = 200
"""Maximum size of the error within a searched text, in cl100k_base tokens."""
_MAX_SYMPTOM_TOKENS: Final = 60
_GAP = "[...]"


def describe_problem(entry: EntryDraft | Entry) -> str:
    """Return the problem for people and agents, with each stack trace cut to its exceptions."""
    match entry.entry_type:
        case "failure_solution":
            texts = (entry.failure_description, entry.error_message)
            return "\n".join(condense_traces(text) for text in texts if text)
        case "gate_rejection":
            feedback = entry.human_feedback or ""
            return f"A reviewer rejected the change at the {_format_gate(entry)}: {feedback}"
        case "gate_approval":
            return f"Pass the {_format_gate(entry)} at the first attempt"


def describe_comparable_problem(entry: EntryDraft | Entry) -> str:
    """Return the problem in the form that is compared: without machine-specific details."""
    match entry.entry_type:
        case "failure_solution":
            description = condense_prose(entry.failure_description or "")
            return "\n".join(
                filter(None, (description, condense_errors(entry.error_message or "")))
            )
        case "gate_rejection":
            return entry.human_feedback or ""
        case "gate_approval":
            return describe_problem(entry)


def describe_solution(entry: EntryDraft | Entry) -> str:
    """Return the solution of an entry as the text that is shown to agents."""
    match entry.entry_type:
        case "failure_solution":
            return entry.solution_steps or ""
        case "gate_rejection":
            return entry.revision_approach or ""
        case "gate_approval":
            return entry.approved_approach or ""


def describe_when_to_try(entry: EntryDraft | Entry) -> str | None:
    """Return when to try the solution of an entry: the captured text, or "After the error …".

    The result is None if the entry has neither a captured text nor an error.
    """
    if entry.when_to_try:
        return entry.when_to_try
    line = find_error_line(entry.failure_description or "", entry.error_message)
    return f"After the error {shorten_text(line, _MAX_SYMPTOM_TOKENS)}" if line else None


def build_failure_text(description: str, error: str | None) -> str:
    """Return the text to embed for a failure, in an entry or in a question.

    Stack traces are cut to their exceptions, because frames of any two traces are similar and
    would outweigh the description.
    """
    lines = shorten_text(condense_errors(error), MAX_ERROR_TOKENS) if error else ""
    prose = condense_prose(description)
    return f"Failure: {prose}\nError: {lines}" if lines else f"Failure: {prose}"


def build_searched_text(entry: EntryDraft | Entry) -> str:
    """Return the text to embed for an entry.

    The text of a failure has the same form as in questions. Gate entries answer questions about
    tasks, so their text includes the solution.
    """
    if entry.entry_type == "failure_solution":
        question = build_failure_text(entry.failure_description or "", entry.error_message)
        return shorten_text(question, MAX_TOKENS)
    return shorten_text(
        condense_prose(f"{describe_comparable_problem(entry)}\n{describe_solution(entry)}"),
        MAX_TOKENS,
    )


def compute_error_keys(entry: EntryDraft | Entry) -> list[str]:
    """Return the keys of the errors in an entry (see traces.compute_stored_keys)."""
    if entry.entry_type == "gate_rejection":
        return compute_stored_keys(entry.human_feedback or "", None)
    return compute_stored_keys(entry.failure_description or "", entry.error_message)


def compute_exact_key(entry: EntryDraft | Entry) -> str:
    """Return a key that is equal for entries that differ only in case, blanks and encoding."""
    return compute_key(
        "experience",
        entry.entry_type,
        (entry.gate_type or "").casefold(),
        (entry.agent_type or ANY_AGENT).casefold(),
        normalize_text(describe_comparable_problem(entry)),
        normalize_text(describe_solution(entry)),
    )


def compute_problem_key(entry: EntryDraft | Entry) -> str | None:
    """Return a key that is equal for entries with the same problem; None for gate approvals."""
    if entry.entry_type == "gate_approval":
        return None
    return compute_key(
        "experience problem",
        entry.entry_type,
        (entry.gate_type or "").casefold(),
        (entry.agent_type or ANY_AGENT).casefold(),
        normalize_text(describe_comparable_problem(entry)),
    )


def normalize_text(text: str) -> str:
    """Return a text in case-folded NFKC, with single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _format_gate(entry: EntryDraft | Entry) -> str:
    name = entry.gate_type or ""
    return name if name.casefold().endswith("gate") else f"{name} gate"


def shorten_text(text: str, tokens: int) -> str:
    """Return the first and last lines of a text, which matter most in a long error.

    Args:
        tokens: maximum size of the result, in cl100k_base tokens.
    """
    if count_text(text) <= tokens:
        return text
    lines = text.splitlines()
    if len(lines) <= 2:  # noqa: PLR2004 - no line between the first and the last
        return _cut_middle(text, tokens)
    kept_count = _find_largest(
        len(lines) // 2, lambda n: count_text(_join_line_ends(lines, n)) <= tokens
    )
    ends = _join_line_ends(lines, max(1, kept_count))
    return ends if count_text(ends) <= tokens else _cut_middle(ends, tokens)


def _join_line_ends(lines: list[str], count: int) -> str:
    return "\n".join([*lines[:count], _GAP, *lines[-count:]])


def _cut_middle(text: str, tokens: int) -> str:
    """Return a text without its middle: as many characters of both ends as fit."""
    fits = _find_largest(len(text) // 2, lambda n: count_text(_join_text_ends(text, n)) <= tokens)
    return _join_text_ends(text, fits)


def _find_largest(maximum: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number from 0 to a maximum that fits; all smaller numbers must fit too."""
    return bisect_left(range(1, maximum + 1), True, key=lambda number: not fits(number))


def _join_text_ends(text: str, count: int) -> str:
    return f"{text[:count]} {_GAP} {text[len(text) - count :]}"
