"""The pages that records are attached to: their ids, and the access scopes of their records.

Pages form a tree below the root. A record has the access scope of its page, which the page or a
page above it sets.
"""

from __future__ import annotations

from typing import Final

ROOT: Final = "root"
"""The page above all others; it exists without being put."""
NOBODY: Final = "tree:nobody"
"""The scope of documents on a page that is unknown, or is below an unknown page."""
EXCLUDED: Final = "tree:excluded"
"""The scope of pages that are archived or excluded from search: they are not indexed."""
PAGE_UUID: Final = r"^[A-Za-z0-9][A-Za-z0-9._:@-]*$"
"""Pattern of the id of a page or a database."""
MOST_UUID: Final = 128
"""Limit of an id, in characters."""
UUID_RULE: Final = (
    f"its id has letters, digits and . _ : @ -, up to {MOST_UUID}, and begins with a letter or a"
    " digit"
)
"""The pattern in words."""


def scope_of(uuid: str) -> str:
    """Return the access scope of a page that sets readers."""
    return f"page:{uuid}"
