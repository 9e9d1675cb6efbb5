"""Evaluates conditions of migrations during a replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_assets.systems.code_memory.laravel.tables_state import TableState


class Conditions:
    """Answers to conditions of migrations.

    The existence of a table or column is evaluated once, at the first request.

    Args:
        states: the current tables.
    """

    def __init__(self, states: Mapping[str, TableState]) -> None:
        self._states = states
        self._answers: dict[tuple[str, int, str, str], bool] = {}

    def hold(self, path: str, guards: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether conditions hold; unknown conditions are assumed to hold.

        Args:
            path: of the file that states them.
            guards: as in facts of the kind `schema`, with settings in place of their marks.
        """
        # Evaluate all conditions now, before the guarded statements change the answers.
        answers = [self._answer(path, guard) for guard in guards]
        return all(answer is not False for answer in answers)

    def known(self, path: str, guards: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether the answers to all conditions are known; see hold."""
        return all(self._answer(path, guard) is not None for guard in guards)

    def _answer(self, path: str, guard: Mapping[str, Any]) -> bool | None:
        truth = self._truth(path, guard)
        return None if truth is None else truth is guard["wanted"]

    def _truth(self, path: str, guard: Mapping[str, Any]) -> bool | None:
        kind = guard["kind"]
        if kind in {"table", "column"}:
            return self._there(path, guard)
        if kind == "equal":
            values = [guard["value"], *guard["values"]]
            if any(isinstance(one, Mapping) for one in values):
                return None
            return any(_alike(values[0], other) for other in values[1:])
        if kind == "set":
            value = guard["value"]
            return None if isinstance(value, Mapping) else value not in (None, False, 0, "", "0")
        return self._any(path, guard) if kind == "any" else None

    def _any(self, path: str, guard: Mapping[str, Any]) -> bool | None:
        answers = []
        for listed in guard["lists"]:
            held = [self._answer(path, one) for one in listed]
            answers.append(False if False in held else (None if None in held else True))
        return True if True in answers else (None if None in answers else False)

    def _there(self, path: str, guard: Mapping[str, Any]) -> bool | None:
        table, column = guard["table"], guard["column"]
        if not isinstance(table, str) or not isinstance(column, str):
            return None
        key = (path, guard["at"], table, column)
        if key not in self._answers:
            state = self._states.get(table)
            self._answers[key] = state is not None and (
                guard["kind"] == "table" or column in state.columns
            )
        return self._answers[key]


def _alike(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other
