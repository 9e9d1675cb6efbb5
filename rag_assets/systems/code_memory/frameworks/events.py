"""Named events that a text emits or listens to: `emit('order-paid')`, `paid.connect(handler)`.

Emitters and listeners of an event share the node of its name, so a walk leads from one to the
other. A computed name yields no event. A single word such as `click` or `error` yields none either,
because its meaning depends on the emitter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.frameworks.definitions import Events, Framework
from rag_assets.systems.code_memory.frameworks.statements import ANNOTATION, CALL

EMITS: Final = "emits_event"
LISTENS: Final = "listens_to_event"
_MOST: Final = 500
"""Maximum number of events in one text; further events are dropped."""
_LONGEST_NAME: Final = 120
_WORDS: Final = re.compile(r"[A-Za-z0-9]+(?:[.:_/-]{1,2}[A-Za-z0-9]+)+")
"""Matches the name of an event, which has several words."""


def event_facts(
    statements: Sequence[Fact], known: Sequence[Fact], frameworks: Sequence[Framework]
) -> list[Fact]:
    """Return the events that a text emits and listens to.

    Args:
        known: its other facts; only definitions and imports are used.
        frameworks: frameworks with event rules and with markers in the text.
    """
    rules = [rule for one in frameworks for rule in one.events]
    names = _Names(known if rules else ())
    found: dict[tuple[str, int, str], Fact] = {}
    for fact in statements if rules else ():
        for rule in rules:
            for one in _read_events(fact, rule, names):
                found.setdefault((one.kind, one.start, str(one.values)), one)
        if len(found) >= _MOST:
            break
    return [*found.values()]


class _Names:
    """The definitions and the imported names of a text."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.imported: dict[str, str] = {}
        self._declared = [one for one in facts if one.kind == "declares" and one.symbol]
        self._by_last: dict[str, list[str]] = {}
        for one in self._declared:
            self._by_last.setdefault(_last_name(one.symbol), []).append(one.symbol)
        for one in facts:
            if one.kind == "imports" and one.values.get("member"):
                dots = "." * int(one.values["level"])
                self.imported[str(one.values["alias"])] = dots + str(one.values["name"])

    def around(self, at: int) -> str:
        """Return the innermost definition around an offset; "" if there is none."""
        held = (one for one in self._declared if one.start <= at < one.end)
        innermost = max(held, key=lambda one: one.start, default=None)
        return innermost.symbol if innermost is not None else ""

    def within(self, start: int, end: int) -> str:
        """Return the first definition between two offsets; "" if there is none."""
        held = (one for one in self._declared if one.start < end and start < one.end <= end)
        first = min(held, key=lambda one: one.start, default=None)
        return first.symbol if first is not None else ""

    def definition_of_handler(self, value: Sequence[Any] | None) -> str:
        r"""Return the definition that a handler names: `handle`, `App\Order@paid`."""
        if value is None or value[0] not in {"n", "s"}:
            return ""
        name = str(value[1])
        if value[0] == "s":
            owner, _, method = name.replace("\\\\", "\\").partition("@")
            return f"{owner}::{method}" if "\\" in owner and method else ""
        known = self._by_last.get(_last_name(name), ())
        return known[0] if len(known) == 1 else ""


def _last_name(name: str) -> str:
    return re.split(r"[.:#\\]+", name)[-1]


def _read_events(fact: Fact, rule: Events, names: _Names) -> Iterator[Fact]:
    """Yield the events of one statement according to one rule."""
    name, place = fact.values["name"], (fact.start, fact.end)
    if fact.kind == ANNOTATION and name in rule.annotations:
        for event in _event_names(_find_argument(fact, "0"), is_object=rule.is_object):
            symbol = names.within(*fact.values["target"])
            yield Fact(LISTENS, *place, symbol, {"event": event, "listener": symbol})
    if fact.kind != CALL or name not in {*rule.emits, *rule.listens}:
        return
    is_emitted = name in rule.emits
    if is_emitted and rule.requires and _find_argument(fact, rule.requires) is None:
        return
    value = fact.values.get("on") if rule.is_object else _find_argument(fact, "0")
    for event in _event_names(value, is_object=rule.is_object):
        symbol = names.around(fact.start)
        if is_emitted:
            yield Fact(EMITS, *place, symbol, {"event": event})
            continue
        handler = _find_argument(fact, "receiver|0" if rule.is_object else "1")
        is_name = handler is not None and handler[0] == "n"
        listener = names.definition_of_handler(handler)
        values: dict[str, Any] = {"event": event, "listener": listener or symbol}
        if not listener and handler is not None and is_name and handler[1] in names.imported:
            values |= {"listener": names.imported[handler[1]], "is_imported": True}
        if not rule.is_object or is_name:
            yield Fact(LISTENS, *place, symbol, values)


def _find_argument(fact: Fact, places: str) -> Sequence[Any] | None:
    """Return the first argument with one of these names or positions."""
    ordered: Sequence[Sequence[Any]] = fact.values["arguments"]
    named: Mapping[str, Sequence[Any]] = fact.values.get("named", {})
    for place in places.split("|"):
        if place in named:
            return named[place]
        if place.isdigit() and int(place) < len(ordered):
            return ordered[int(place)]
    return None


def _event_names(value: Sequence[Any] | None, *, is_object: bool) -> Iterator[str]:
    """Yield the names of events in a value: a text, an object, or a list of them."""
    values = value[1] if value is not None and value[0] == "l" else [value]
    for one in values:
        if one is None or one[0] != ("n" if is_object else "s"):
            continue
        name = _last_name(str(one[1])) if is_object else str(one[1])
        is_plain = name.isidentifier() and name not in {"self", "cls"}
        if len(name) <= _LONGEST_NAME and (is_plain if is_object else _WORDS.fullmatch(name)):
            yield name
