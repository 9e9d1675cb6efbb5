"""How a hit is shown: where it stands, and the words around what was asked for."""

from __future__ import annotations

import textwrap

from rag_assets.cli.commands.output import say
from rag_assets.ingest.chunking.places import place_of
from rag_assets.retrieval.model import Hit

_WIDTH = 92


def show_hit(hit: Hit) -> None:
    """Print a hit: where it is from, and the part of its text that has most of the question."""
    say(f"{hit.number}. {headline(hit)}")
    if hit.heading_path:
        say(f"   {' › '.join(hit.heading_path)}")
    say(textwrap.indent(textwrap.fill(hit.excerpt, _WIDTH), "   │ "))
    say()


def headline(hit: Hit) -> str:
    """The document, the place in it, and how near it is to the question."""
    near = "" if hit.score is None else f"  (cosine {hit.score:.2f})"
    return f"{', '.join(filter(None, (hit.uri, place_of(hit))))}{near}"
