"""Access policies: what a caller may read of a tenant's documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from rag_assets.retrieval.model import Caller
from rag_assets.storage.catalog.found_relations import ScopedDocument
from rag_assets.storage.index.model import NONE_MOVED, MovedPages


class AccessPolicy(Protocol):
    """Decides what a caller may read.

    The catalog's grants bound every policy: it narrows what they open, and widens it only by naming
    further principals in whose name grants are looked up.
    """

    def principals(self, caller: Caller) -> tuple[str, ...]:
        """Return the principals whose grants a caller has."""
        ...

    def scopes(self, caller: Caller, granted: frozenset[str]) -> frozenset[str]:
        """The access scopes that searches of the index are filtered by.

        Args:
            caller: who makes the request.
            granted: all scopes that the caller's principals may read, the public one among them.
        """
        ...

    def permits(self, caller: Caller, document: ScopedDocument) -> bool:
        """Whether the caller may read a document that the catalog's grants let them read now."""
        ...


class FlatScopes:
    """Grants of scopes as they are, without a hierarchy (see AccessPolicy)."""

    def principals(self, caller: Caller) -> tuple[str, ...]:  # noqa: D102
        return caller.principals

    def scopes(self, caller: Caller, granted: frozenset[str]) -> frozenset[str]:  # noqa: D102
        return granted

    def permits(self, caller: Caller, document: ScopedDocument) -> bool:  # noqa: D102
        # The statement that read the document checked its scope by the grants of that moment.
        return True


MANY_SCOPES = 1_000
"""Scopes that searches of the index are filtered by at most, at first: see Verify."""


def moved_pages(scopes: Mapping[str, str], readable: frozenset[str]) -> MovedPages:
    """Which of the pages that have just been moved may be read, by the scope that each has now."""
    if not scopes:
        return NONE_MOVED
    return MovedPages(
        tuple(uuid for uuid, scope in scopes.items() if scope in readable),
        tuple(uuid for uuid, scope in scopes.items() if scope not in readable),
    )
