"""Titles in the properties of a document, most of which programs generate."""

from __future__ import annotations

import re

from rag_assets.ingest.parsing.outline import heading_name

_SHORTEST_TITLE = 3
_NO_TITLE = re.compile(
    r"untitled|no title|\(anonymous\)|unspecified|document ?\d*$|slide \d+$|microsoft \w+ -"
    r"|.*\.(?:docx?|pptx?|xlsx?|pdf|tex|dvi|indd|qxd|fm|ps|odt|html?|md|rtf|txt)$"
    r"|\S*[/\\_]\S*$|[^A-Za-z\u00c0-\uffff]*$",
    re.IGNORECASE,
)


def sensible_title(title: str) -> str | None:
    """The title in a document's properties, unless a program generated it."""
    name = heading_name(title.replace("\0", ""))
    return None if len(name) < _SHORTEST_TITLE or _NO_TITLE.match(name) else name
