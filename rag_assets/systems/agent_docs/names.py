"""Names of files for agents."""

from __future__ import annotations

from urllib.parse import quote

from rag_assets.common.hashing import sha256_hex

_LONGEST = 150


def file_name(agent_id: str) -> str:
    """A name of a file for an agent, which leads to no other folder and hides no file."""
    name = quote(agent_id, safe="")
    name = "%2E" + name[1:] if name.startswith(".") else name
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{sha256_hex(agent_id)}"
