"""Choose the contexts of each family of credentials, and insert credentials into them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from random import Random
from types import MappingProxyType
from typing import cast

from tests.security.credentials.model import (
    Context,
    Credential,
    Family,
    Half,
    Kind,
    Sample,
    Span,
)

_PLACES: Mapping[Family, tuple[str, ...]] = MappingProxyType(
    {
        "token": ("token", "named"),
        "named": ("named",),
        "password": ("password", "named"),
        "line": ("line",),
        "block": ("block",),
    }
)
_NEEDS_AN_END = frozenset({"password-blanks", "password-symbols"})
_PIN_PLACES = ("column", "key-value", "row", "label", "prose")
_SLOT = re.compile("«(X|NAME|name|label)»")


def contexts_of(family: Family, half: Half) -> tuple[tuple[str, Context], ...]:
    """Return the contexts of a family in one half, each with its full name."""
    return tuple(
        (f"{place}/{context.name}", context)
        for place in _PLACES[family]
        for context in _declared(place, half)
    )


def _declared(place: str, half: Half) -> tuple[Context, ...]:
    module = import_module(f"tests.security.credentials.{half}.{place}_contexts")
    attribute = "NAMED" if place == "named" else f"{place.upper()}S"
    return cast("tuple[Context, ...]", getattr(module, attribute))


def fits(kind: Kind, context: Context, credential: Credential) -> bool:
    """Return whether people would write such a credential in such a context."""
    if kind.whole_line and not context.on_its_line():
        return False
    if kind.name == "pin" and not _holds_a_pin(context):
        return False
    if kind.name in _NEEDS_AN_END and not context.delimited():
        return False
    return context.applies is None or context.applies(credential)


def _holds_a_pin(context: Context) -> bool:
    """Return whether a context is a table, a list or a sentence: programs contain no PIN."""
    named = "«NAME»" in context.template or "«name»" in context.template
    return not named or any(place in context.name for place in _PIN_PLACES)


def placed(
    kind: Kind, name: str, context: Context, credential: Credential, rng: Random, half: Half
) -> Sample:
    """Insert a credential into a context; return the sample with its spans."""
    if context.transform is not None:
        credential = context.transform(credential, rng)
    words = {
        "X": credential.text,
        "NAME": credential.name,
        "name": credential.name.lower(),
        "label": credential.label,
    }
    parts: list[str] = []
    spans: list[Span] = []
    may: list[Span] = []
    length = 0
    for literal, slot in _pieces(context.template):
        if slot == "X":
            spans += [(length + start, length + end) for start, end in credential.spans]
            may += [(length + start, length + end) for start, end in credential.may]
        parts.append(words[slot] if slot is not None else literal)
        length += len(parts[-1])
    text = "".join(parts)
    return Sample(text, tuple(spans), kind.name, name, half, context.media_type, tuple(may))


def _pieces(template: str) -> list[tuple[str, str | None]]:
    pieces: list[tuple[str, str | None]] = []
    at = 0
    for found in _SLOT.finditer(template):
        pieces += [(template[at : found.start()], None), ("", found.group(1))]
        at = found.end()
    return [*pieces, (template[at:], None)]
