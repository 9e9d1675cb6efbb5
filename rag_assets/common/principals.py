"""Principals: the names to which access is granted, and the principals that a role implies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MEMBERS: Final = "members"
"""Stands for all tokens except those of guests: every member of a tenant can read what is granted
to it."""
GUESTS: Final = "guests"
"""Stands for the tokens of guests: public access does not apply to a caller with this principal."""
WRITER: Final = "writer"
"""The role of tokens that push records and read nothing: none of their principals grants access."""
RESERVED: Final = frozenset({MEMBERS, GUESTS})
"""Names that the subject of a token may not have."""


def build_principals(role: str | None, named: Iterable[str]) -> tuple[str, ...]:
    """Return the principals of a token's subject, including the principal that its role implies.

    The operator has no role; the principals are used as named.
    """
    if role is None:
        return tuple(named)
    if role == WRITER:
        return (GUESTS,)
    own = tuple(name for name in named if name not in RESERVED)
    return (*own, GUESTS if role == "guest" else MEMBERS)
