"""Printing of hits: the location in the document and the excerpt that matches the question."""

from __future__ import annotations

import textwrap

from rag_assets.cli.commands.output import say
from rag_assets.ingest.chunking.model import describe_location
from rag_assets.retrieval.model import Hit
from rag_assets.ingest.chunking.model import describe_location
from rag_assets.search.model import Hit

_COMMIT = 10
_WIDTH = 92


def print_hit(hit: Hit) -> None:
    """Print a hit: its document and location, its headings, and its excerpt."""
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
    """Return the document, the location in it, the score that orders hits, and the cosine."""
    scores = {hit.score_kind: hit.score, "cosine": hit.cosine}
    shown = ", ".join(f"{kind} {of:.2f}" for kind, of in scores.items() if of is not None)
    near = f"  ({shown})" if shown else ""
    return f"{', '.join(filter(None, (hit.uri, describe_location(hit))))}{near}"
