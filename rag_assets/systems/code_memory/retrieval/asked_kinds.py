"""The kinds of definitions that a question asks for in everyday words, and its topic.

"Which endpoint takes it, what validates the number, and where is it stored?" asks for a route, a
request and a table without naming any. Such words state the kind; the other words state the topic.
A full-text search for words such as "endpoint" would only match definitions that happen to be named
so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from rag_assets.systems.code_memory.retrieval.asked_names import types_of_word
from rag_assets.systems.code_memory.symbols.source_types import SourceType

_BEGINNINGS: Final[Mapping[str, tuple[SourceType, ...]]] = MappingProxyType(
    {
        "endpoint": ("route", "controller_method"),
        "url": ("route", "controller_method"),
        "api": ("route", "controller_method"),
        "validat": ("request",),
        "authori": ("policy",),
        "allow": ("policy",),
        "permi": ("policy",),
        "forbid": ("policy",),
        "background": ("job",),
        "asynchron": ("job",),
        "announc": ("event", "listener"),
        "notif": ("event", "listener"),
        "react": ("event", "listener"),
        "column": ("table", "migration"),
        "schema": ("table", "migration"),
        "database": ("table", "model"),
        "stor": ("table", "model"),
        "kept": ("table", "model"),
        "sav": ("table", "model"),
        "record": ("table", "model"),
        "persist": ("table", "model"),
    }
)
"""Source types, by the beginning of a word that asks for them."""

_ABOUT_CODE: Final = frozenset({"call", "called", "code", "do", "handle", "step", "work"})
"""Words in questions about code that do not belong to the topic, without the plural `s`."""

_TOKEN: Final = re.compile(r"[^\s,;:?!()\"]+")
_WORD: Final = re.compile(r"[A-Za-z]+")
_COMPOUND: Final = re.compile(r"[A-Za-z]+(?:[.-][A-Za-z]+)+")
_TEST: Final = re.compile(r"\btest", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AskedKinds:
    """The kinds and the topic that a question asks for.

    Attributes:
        types: source types that its words ask for.
        tests: whether it is about tests.
        topic: the question without the words that ask for a kind; each compound is added a second
            time as one word, as code writes it (`two-factor` as `twofactor`).
    """

    types: frozenset[str]
    tests: bool
    topic: str


def asked_kinds(query: str) -> AskedKinds:
    """Return the kinds that a question asks for, and its topic."""
    types: set[str] = set()
    topic: list[str] = []
    for token in _TOKEN.findall(query):
        told = [_types(word.lower()) for word in _WORD.findall(token)]
        types.update(*(found for found in told if found is not None))
        if any(found is None for found in told) or not told:
            topic.append(token)
            if _COMPOUND.fullmatch(token):
                topic.append(re.sub("[.-]", "", token))
    return AskedKinds(frozenset(types), _TEST.search(query) is not None, " ".join(topic) or query)


def _types(word: str) -> tuple[SourceType, ...] | None:
    """Return the types that a word asks for, () for a filler word, None for a word of the topic."""
    if word.removesuffix("s") in _ABOUT_CODE or word in _ABOUT_CODE:
        return ()
    named = types_of_word(word)
    begun = next((t for start, t in _BEGINNINGS.items() if word.startswith(start)), ())
    return (*named, *begun) or None
