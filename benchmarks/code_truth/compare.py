"""Compare two lists of routes or columns: recall, precision, and each difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from rag_assets.systems.code_memory.laravel.schema.tables import MigratedTable

UNEXPLAINED: Final = "not explained"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two multisets of names.

    Attributes:
        true, derived, same: number of true names, of derived names, and of names that are both.
        missed, wrong: names that are only true, and names that are only derived.
    """

    true: int
    derived: int
    same: int
    missed: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def recall(self) -> float:
        """Return the share of true names that are derived."""
        return self.same / self.true if self.true else 1.0

    @property
    def precision(self) -> float:
        """Return the share of derived names that are true."""
        return self.same / self.derived if self.derived else 1.0


def compare_names(true: Iterable[str], derived: Iterable[str]) -> Comparison:
    """Compare two multisets of names.

    Args:
        true: names from the framework, or from a judge.
        derived: derived names.
    """
    true_counts, derived_counts = Counter(true), Counter(derived)
    same = true_counts & derived_counts
    missed, wrong = (
        sorted((true_counts - derived_counts).elements()),
        sorted((derived_counts - true_counts).elements()),
    )
    return Comparison(
        true_counts.total(), derived_counts.total(), same.total(), tuple(missed), tuple(wrong)
    )


def format_routes(routes: Iterable[Mapping[str, Any]], *, middleware: bool = False) -> list[str]:
    """Identify each route by methods, domain, path, name and action.

    Args:
        routes: routes in the format that the router's are printed in.
        middleware: whether the middleware is part of the identity.
    """
    return [
        " ".join(
            (
                "|".join(sorted(route["methods"])),
                f"{route['domain']}/{route['uri'].lstrip('/')}",
                route["name"] or "-",
                route["action"],
                *(["+".join(map(str, route["middleware"]))] if middleware else []),
            )
        )
        for route in routes
    ]


def list_columns(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return `table.column` for every column of tables read from SQLite."""
    return [f"{name}.{column['name']}" for name, columns in tables.items() for column in columns]


def list_derived_columns(tables: Mapping[str, MigratedTable]) -> list[str]:
    """Return `table.column` for every column of derived tables."""
    return [f"{name}.{column}" for name, table in tables.items() for column in table.columns]


def group_by_cause(differences: Iterable[str], causes: Mapping[str, str]) -> dict[str, list[str]]:
    """Group differences by cause.

    Args:
        causes: causes by pattern of names; the first match counts.
    """
    by_cause: dict[str, list[str]] = {}
    for difference in differences:
        fits = (cause for pattern, cause in causes.items() if fnmatchcase(difference, pattern))
        by_cause.setdefault(next(fits, UNEXPLAINED), []).append(difference)
    return by_cause
