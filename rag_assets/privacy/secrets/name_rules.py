"""Credentials found by their names: assignments, markup and prose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rag_assets.privacy.secrets.assignments import assigned
from rag_assets.privacy.secrets.markup import in_markup
from rag_assets.privacy.secrets.names import ANCHORS, find_names
from rag_assets.privacy.secrets.prose import stated
from rag_assets.privacy.secrets.rules import Anchor, Rule
from rag_assets.privacy.secrets.spans import SecretSpan

_ARN_REACH = 120
_ARN = re.compile(r"\barn:aws[\w-]*:[\w:/-]*\Z")
"""Matches the text before a name that is part of a resource's name:
`arn:aws:secretsmanager:…:secret:X`."""


def _is_in_arn(text: str, start: int) -> bool:
    low = max(0, start - _ARN_REACH)
    return text.find("arn:", low, start) >= 0 and _ARN.search(text, low, start) is not None


def _named(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    done = 0
    for name in find_names(text, anchors):
        if name.end <= done or _is_in_arn(text, name.start):
            continue
        for span in (*assigned(text, name), *in_markup(text, name), *stated(text, name)):
            if span.start >= name.end:
                done = span.end
            yield span


RULES: Sequence[Rule] = (Rule(ANCHORS, _named),)
