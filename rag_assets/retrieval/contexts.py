"""Hits as text for a model: passages between markers, which no passage can imitate."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_assets.retrieval.model import Hit

NOTHING_FOUND = "No relevant documentation found for your query."

_DASHES = r"[-\u2010-\u2015\u2212\ufe58\ufe63\uff0d]"
_IMITATIONS = re.compile(
    rf"""^[^\S\n]*(?={_DASHES}{{2,}}\s*result\s*\d)   # --- Result N (score: …) ---
    |(?=\[\s*/?\s*(?:end|begin|start)?\s*context\s*\])  # [END CONTEXT]
    |^[^\S\n]*(?=\#{{1,6}}\s*team\s+guidelines)         # ## Team Guidelines
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


def as_results(hits: Sequence[Hit]) -> str:
    """Hits as an agent's tool returns them; a sentence that says so if there are none."""
    if not hits:
        return NOTHING_FOUND
    return "\n\n".join(
        f"--- Result {hit.number} (score: {hit.score:.3f}, source: {_one_line(hit.uri)}) ---\n"
        f"{neutralised(hit.text)}"
        for hit in hits
    )


def neutralised(text: str) -> str:
    """A text whose imitations of our own markers are escaped by a backslash; else as it is.

    What a document says is data: it must not seem to end a passage, or to begin the next.
    """
    return _IMITATIONS.sub(lambda found: f"{found[0]}\\", text)


def _one_line(uri: str) -> str:
    return " ".join(uri.split())
