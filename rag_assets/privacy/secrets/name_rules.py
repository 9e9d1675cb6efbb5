"""Credentials found by their names: assignments, markup and prose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_assets.privacy.secrets.assignments import assigned
from rag_assets.privacy.secrets.markup import in_markup
from rag_assets.privacy.secrets.names import ANCHORS, find_names
from rag_assets.privacy.secrets.prose import stated
from rag_assets.privacy.secrets.rules import Anchor, Rule
from rag_assets.privacy.secrets.spans import SecretSpan


def _named(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    done = 0
    for name in find_names(text, anchors):
        if name.end <= done:
            continue
        for span in (*assigned(text, name), *in_markup(text, name), *stated(text, name)):
            if span.start >= name.end:
                done = span.end
            yield span


RULES: Sequence[Rule] = (Rule(ANCHORS, _named),)
