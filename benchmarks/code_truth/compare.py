"""How two lists of routes or columns differ: recall, precision, and each difference."""

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
    """Two multisets of names.

    Attributes:
        true, found, same: how many there are, are derived, and are both.
        missed, wrong: what is only true, and what is only derived.
    """

    true: int
    found: int
    same: int
    missed: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def recall(self) -> float:
        """The share of what is true that is derived."""
        return self.same / self.true if self.true else 1.0

    @property
    def precision(self) -> float:
        """The share of what is derived that is true."""
        return self.same / self.found if self.found else 1.0


def compare(true: Iterable[str], found: Iterable[str]) -> Comparison:
    """Compare names, each as often as it is there.

    Args:
        true: those of the framework, or of a judge.
        found: those that are derived.
    """
    wanted, had = Counter(true), Counter(found)
    same = wanted & had
    missed, wrong = sorted((wanted - had).elements()), sorted((had - wanted).elements())
    return Comparison(wanted.total(), had.total(), same.total(), tuple(missed), tuple(wrong))


def route_names(routes: Iterable[Mapping[str, Any]], *, middleware: bool = False) -> list[str]:
    """What a route is known by: methods, domain, path, name and action.

    Args:
        routes: as the router's are printed.
        middleware: with that, too.
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


def column_names(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """`table.column` of tables that SQLite has."""
    return [f"{name}.{column['name']}" for name, columns in tables.items() for column in columns]


def derived_columns(tables: Mapping[str, MigratedTable]) -> list[str]:
    """`table.column` of tables that are derived."""
    return [f"{name}.{column}" for name, table in tables.items() for column in table.columns]


def explained(differences: Iterable[str], causes: Mapping[str, str]) -> dict[str, list[str]]:
    """Differences by cause.

    Args:
        differences: names.
        causes: by pattern of names; the first that fits counts.
    """
    found: dict[str, list[str]] = {}
    for difference in differences:
        fits = (cause for pattern, cause in causes.items() if fnmatchcase(difference, pattern))
        found.setdefault(next(fits, UNEXPLAINED), []).append(difference)
    return found
