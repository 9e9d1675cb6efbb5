"""Names that access is granted to, and those that a token's role adds to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MEMBERS: Final = "members"
"""All tokens but those of guests: what is granted to it, every member of a tenant reads."""
GUESTS: Final = "guests"
"""The tokens of guests: who asks by this name reads nothing for its being public."""
WRITER: Final = "writer"
"""The role of tokens that push records and read nothing: no name of theirs grants them anything."""
RESERVED: Final = frozenset({MEMBERS, GUESTS})
"""Names that no subject of a token may have."""


def principals_of(role: str | None, named: Iterable[str]) -> tuple[str, ...]:
    """The principals of a token's subject, with the one that follows from its role.

    Args:
        role: of the token; None: the operator, who names principals as they are to be.
        named: the subject and its groups.
    """
    if role is None:
        return tuple(named)
    if role == WRITER:
        return (GUESTS,)
    own = tuple(name for name in named if name not in RESERVED)
    return (*own, GUESTS if role == "guest" else MEMBERS)
