"""All kinds of credentials of the set."""

from __future__ import annotations

from tests.security.credentials import kinds_blocks, kinds_lines, kinds_named, kinds_tokens
from tests.security.credentials.model import Kind

KINDS: tuple[Kind, ...] = (
    *kinds_tokens.KINDS,
    *kinds_named.KINDS,
    *kinds_lines.KINDS,
    *kinds_blocks.KINDS,
)
