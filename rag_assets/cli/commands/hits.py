"""Printing of hits: the place in the document and the excerpt that matches the question."""

from __future__ import annotations

import textwrap

from rag_assets.cli.commands.output import say
from rag_assets.ingest.chunking.location import describe
from rag_assets.retrieval.model import Hit

_COMMIT = 10
_WIDTH = 92


def print_hit(hit: Hit) -> None:
    """Print a hit: its document and place, its headings, and its excerpt."""
    say(f"{hit.number}. {headline(hit)}")
    if hit.heading_path:
        say(f"   {' › '.join(hit.heading_path)}")
    if hit.origin is not None and hit.origin.differs:
        say(f"   not as in commit {(hit.origin.commit or 'none')[:_COMMIT]}")
    for line in hit.context.splitlines():
        say(f"   ┆ {textwrap.shorten(line, _WIDTH, placeholder=' …')}")
    say(textwrap.indent(textwrap.fill(hit.excerpt, _WIDTH), "   │ "))
    say()


def headline(hit: Hit) -> str:
    """The document, the place in it, and the cosine."""
    near = "" if hit.score is None else f"  (cosine {hit.score:.2f})"
    return f"{', '.join(filter(None, (hit.uri, describe(hit))))}{near}"
