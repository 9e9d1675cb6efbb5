"""Access policies: which of a tenant's documents a caller may read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from rag_assets.search.model import Caller
from rag_assets.storage.index.model import NONE_MOVED, MovedPages


class ScopedDocument(Protocol):
    """A document or a part of one, with the scope and uri that the catalog has for it now."""

    @property
    def access_scope(self) -> str:
        """Return the scope that a caller needs to read the document."""
        ...

    @property
    def uri(self) -> str:
        """Return the document's uri."""
        ...


class AccessPolicy(Protocol):
    """Decides which documents a caller may read.

    The grants in the catalog limit every policy. A policy may narrow them. It can widen access only
    by adding principals, whose grants are then looked up.
    """

    def principals(self, caller: Caller) -> tuple[str, ...]:
        """Return the principals whose grants apply to a caller."""
        ...

    def scopes(self, caller: Caller, granted: frozenset[str]) -> frozenset[str]:
        """Return the access scopes that filter searches of the index.

        Args:
            granted: all scopes that the caller's principals may read, including the public scope.
        """
        ...

    def permits(self, caller: Caller, document: ScopedDocument) -> bool:
        """Return whether the caller may read a document that the current grants allow."""
        ...


class FlatScopes:
    """An access policy that applies granted scopes as they are, without a hierarchy."""

    def principals(self, caller: Caller) -> tuple[str, ...]:  # noqa: D102
        return caller.principals

    def scopes(self, caller: Caller, granted: frozenset[str]) -> frozenset[str]:  # noqa: D102
        return granted

    def permits(self, caller: Caller, document: ScopedDocument) -> bool:  # noqa: D102
        # The SQL statement that read the document already checked its scope against current grants.
        return True


MANY_SCOPES = 1_000
"""Maximum number of scopes by which the first search of the index filters; see Verify."""


def moved_pages(scopes: Mapping[str, str], readable: frozenset[str]) -> MovedPages:
    """Split recently moved pages into readable and unreadable ones, by their present scopes."""
    if not scopes:
        return NONE_MOVED
    return MovedPages(
        tuple(uuid for uuid, scope in scopes.items() if scope in readable),
        tuple(uuid for uuid, scope in scopes.items() if scope not in readable),
    )
