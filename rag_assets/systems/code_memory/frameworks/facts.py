"""Facts about one text that framework data may use: its statements and its events.

Emitters and listeners of an event share the node of its name, so that a walk leads from one to the
other. Computed names yield no events, and neither do single words such as `click` or `error`, whose
meaning depends on the emitter.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.frameworks.definitions import (
    EventRules,
    Framework,
    load_all_frameworks,
)
from rag_assets.systems.code_memory.frameworks.repository import get_last_part
from rag_assets.systems.code_memory.frameworks.statements import (
    ANNOTATION,
    ASSIGNED,
    BODY,
    CALL,
    CLASS,
    FOUND,
    FUNCTION,
    GRAMMARS,
    INSIDE,
    NAME_AT,
    PLACE,
    find_argument,
    list_statements,
)
from rag_assets.systems.code_memory.languages.tree import get_syntax_tree

_MAX_CHAIN_CALLS: Final = 30
"""Maximum number of calls followed in one chain; further calls are ignored."""
_MAX_STATEMENTS: Final = 2_000
"""Maximum number of statements kept for one text; a note reports that further ones are dropped."""
_MAX_SHOWN_CHARACTERS: Final = 200
_MAX_HANDLER_CALLS: Final = 24
"""Maximum number of calls kept for a handler; further calls are dropped."""
_EMITS: Final = "emits_event"
_LISTENS: Final = "listens_to_event"
_MAX_EVENTS: Final = 500
"""Maximum number of events in one text; further events are dropped."""
_MAX_EVENT_CHARACTERS: Final = 120
_EVENT: Final = re.compile(r"[A-Za-z0-9]+(?:[.:_/-]{1,2}[A-Za-z0-9]+)+")
"""Matches the name of an event, which has several words."""


@dataclass(frozen=True, slots=True)
class _NamesOfInterest:
    """The names that the rules of all frameworks of one language look for.

    Attributes:
        called: names of calls, annotations and fields.
        makers: names of calls that create a router or a list of routes.
        ends: endings of the names of calls that create a column.
        routers: usual names and types of routers.
        routes, mounts: names of calls that define a route, or mount a router.
        blocks: names of calls with a block in which functions may add routes without a receiver.
    """

    called: frozenset[str]
    ends: tuple[str, ...]
    makers: frozenset[str]
    routers: frozenset[str]
    routes: frozenset[str]
    mounts: frozenset[str]
    blocks: frozenset[str]


@lru_cache(maxsize=128)
def _collect_names(language: str, own: str) -> _NamesOfInterest:
    frameworks = [
        framework for framework in load_all_frameworks(own) if language in framework.languages
    ]
    names = {name for framework in frameworks for name in framework.names() if name}
    routers = [framework.routers for framework in frameworks]
    return _NamesOfInterest(
        frozenset(names),
        tuple(name[1:] for name in names if name[:1] == "*"),
        frozenset(
            get_last_part(maker) for router in routers for maker in (*router.made_by, *router.lists)
        ),
        frozenset(name for router in routers for name in (*router.called, *router.types)),
        frozenset(
            call for framework in frameworks for rule in framework.routes for call in rule.calls
        ),
        frozenset(mount for router in routers for mount in router.mounts),
        frozenset(
            name
            for framework in frameworks
            if framework.routers.is_implicit and framework.routers.types
            for name in (
                *framework.routers.nested,
                *(name for rule in framework.routes for name in rule.within),
            )
        ),
    )


def list_framework_facts(
    text: str, language: str, known_facts: Sequence[Fact] = (), own: str = ""
) -> tuple[list[Fact], str]:
    """Return the statements and events of a text that frameworks use, and a note.

    The note says how many statements were left out; it is "" if none was left out.

    Args:
        known_facts: the other facts of the text; only definitions and imports are used.
        own: the tenant's own frameworks; see load_all_frameworks.
    """
    if language not in GRAMMARS:
        return [], ""
    known = [framework for framework in load_all_frameworks(own) if language in framework.languages]
    marked = [
        marked_framework
        for marked_framework in known
        if any(marker in text for marker in marked_framework.markers)
    ]
    with_events = [framework for framework in marked if framework.events]
    names = [framework.name for framework in marked if not framework.events]
    is_of_tests = all(framework.requests or framework.events for framework in known)
    if is_of_tests and not marked:
        return [], ""  # In this language only tests and events are read, and the text has neither.
    module, function = GRAMMARS[language]
    tree = get_syntax_tree(text, module, function)
    if language == "typescript" and tree.has_errors:
        tree = get_syntax_tree(text, module, "language_tsx")
    statements, note = list_statements(tree, language)
    kept_facts = (
        _keep_relevant_statements(text, statements, _collect_names(language, own))
        if names or not is_of_tests
        else []
    )
    if len(kept_facts) > _MAX_STATEMENTS:
        note = f"frameworks: only {_MAX_STATEMENTS} of {len(kept_facts)} statements are kept"
        kept_facts = kept_facts[:_MAX_STATEMENTS]
    if names and (kept_facts or any(framework.pages for framework in marked)):
        kept_facts.insert(0, Fact(FOUND, 0, 0, "", {"names": names}))
    return kept_facts + _list_event_facts(statements, known_facts, with_events), note


def _keep_relevant_statements(
    text: str, statements: Sequence[Fact], words: _NamesOfInterest
) -> list[Fact]:
    """Return the statements with a name of interest, and the calls that these depend on."""
    by_place = {(fact.start, fact.end): fact for fact in statements if fact.kind == CALL}
    assigned = [
        fact for fact in statements if fact.kind == ASSIGNED and fact.values["value"][0] == "c"
    ]
    chains = {
        id(fact): [*_iter_calls_in_chain(by_place, fact.values["value"][1:3])] for fact in assigned
    }
    router_variables = {
        fact.values["name"]
        for fact in assigned
        if any(call.values["name"] in words.called for call in chains[id(fact)])
    }
    holders = router_variables | _list_owners(statements, by_place, words)
    declared = (fact.values for fact in statements if fact.kind == ASSIGNED)
    router_variables |= {
        names_of_fact["name"]
        for names_of_fact in declared
        if names_of_fact["value"][0] == "t"
        and names_of_fact["value"][1].lstrip("&*") in words.routers
    }
    kept_ids = _list_calls_in_blocks(statements, words)
    for fact in statements:
        if _is_relevant(fact, words, router_variables):
            kept_ids.add(id(fact))
            if id(fact) in chains and _is_name_of_interest(fact.values["value"][3], words):
                kept_ids |= {id(call) for call in chains[id(fact)][:1]}
        elif (
            fact.kind == ASSIGNED
            and (name := get_last_part(fact.values["name"])) in holders
            and fact.values["value"][0] in "cn"
            and get_last_part(str(fact.values["value"][1])) != name
        ):
            kept_ids |= {id(fact), *map(id, chains.get(id(fact), ()))}
    pending = [fact for fact in statements if fact.kind == CALL and id(fact) in kept_ids]
    maker_starts = sorted(fact.start for fact in pending if fact.values["name"] in words.makers)
    while pending:
        values = pending.pop().values
        named_values = values.get("named", {}).values()
        for value in (values.get("on", ["?"]), *values["arguments"], *named_values):
            call = by_place.get((value[1], value[2])) if value[0] == "c" else None
            if call is not None and id(call) not in kept_ids:
                kept_ids.add(id(call))
                pending.append(call)
    for fact in statements:
        if fact.kind == FUNCTION and bisect_left(maker_starts, fact.start) < bisect_left(
            maker_starts, fact.end
        ):
            kept_ids.add(id(fact))
    return [
        *_complete_routes(
            text, [fact for fact in statements if id(fact) in kept_ids], statements, words
        )
    ]


def _complete_routes(
    text: str, kept_facts: Sequence[Fact], statements: Sequence[Fact], words: _NamesOfInterest
) -> Iterator[Fact]:
    """Yield statements; those that define a route get their place and the calls in their handler.

    The calls are only read for a handler that is written in place, as a function without a name.
    """
    calls = sorted((fact for fact in statements if fact.kind == CALL), key=lambda fact: fact.start)
    starts = [call.start for call in calls]
    for fact in kept_facts:
        body, name_at = fact.values.get(BODY), fact.values.get(NAME_AT)
        if body is None and name_at is None:
            yield fact
            continue
        values = {k: value for k, value in fact.values.items() if k not in {BODY, NAME_AT}}
        is_route = fact.values["name"] in words.routes
        if is_route and name_at is not None:
            shown_text = " ".join(
                text[name_at : min(fact.end, name_at + _MAX_SHOWN_CHARACTERS)].split()
            )
            values[PLACE] = [text.count("\n", fact.start, name_at), shown_text]
        if is_route and body is not None:
            within = calls[bisect_right(starts, body) : bisect_left(starts, fact.end)]
            on = (call.values.get("on", ["?"]) for call in within)
            receivers = (str(value[1]) if value[0] == "n" else "" for value in on)
            names = (call.values["name"] for call in within)
            inside = [*dict.fromkeys(zip(receivers, names, strict=True))][:_MAX_HANDLER_CALLS]
            if inside:
                values[INSIDE] = [[*pair] for pair in inside]
        yield replace(fact, values=values)


def _list_calls_in_blocks(statements: Sequence[Fact], words: _NamesOfInterest) -> set[int]:
    """Return the ids of calls without a receiver in the blocks of a router."""
    calls = [fact for fact in statements if fact.kind == CALL]
    end = max((call.end for call in calls if call.values["name"] in words.blocks), default=0)
    first = min((call.start for call in calls if call.values["name"] in words.blocks), default=end)
    return {id(call) for call in calls if first < call.start < end and "on" not in call.values}


def _list_owners(
    statements: Sequence[Fact], by_place: Mapping[tuple[int, int], Fact], words: _NamesOfInterest
) -> set[str]:
    """Return the variables whose methods handle routes or return mounted routers.

    They are `orders` in `router.get("/", orders.list)`, and `api` in `router.use(api.make())`.
    """
    owners: set[str] = set()
    for fact in statements:
        for value in fact.values["arguments"] if fact.kind == CALL else ():
            if value[0] == "c" and fact.values["name"] in words.mounts:
                call = by_place.get((value[1], value[2]))
                on = call.values.get("on", ["?"]) if call is not None else ["?"]
                owners.add(get_last_part(str(on[1])) if on[0] == "n" else "")
            elif value[0] == "n" and fact.values["name"] in words.routes:
                owners.add(get_last_part(value[1].rpartition(".")[0]))
    return owners - {""}


def _iter_calls_in_chain(
    by_place: Mapping[tuple[int, int], Fact], place: Sequence[int]
) -> Iterator[Fact]:
    """Yield a call, and the earlier calls in its chain."""
    for _ in range(_MAX_CHAIN_CALLS):
        call = by_place.get((place[0], place[1]))
        if call is None:
            return
        yield call
        on = call.values.get("on", ["?"])
        if on[0] != "c":
            return
        place = on[1:3]


def _is_relevant(fact: Fact, words: _NamesOfInterest, router_variables: set[str]) -> bool:
    """Return whether a statement has a name or a path that a framework's rules may match."""
    values = fact.values
    name = values["name"]
    if fact.kind == CLASS:
        return True
    if fact.kind in {CALL, ANNOTATION}:
        argument_values = (*values["arguments"], *values.get("named", {}).values())
        return name in words.called or any(
            _is_relevant_value(value, words, router_variables) for value in argument_values
        )
    if fact.kind == FUNCTION:
        types = (p for parameter in values["parameters"] for p in parameter)
        return name in words.called or any(p.lstrip("&*") in words.routers for p in types)
    value = values["value"]
    if value[0] == "t":
        return value[1].partition("<")[0] in words.called
    if value[0] == "c":
        return (
            _is_name_of_interest(value[3], words) or name in words.routers or name in words.called
        )
    is_constant = value[0] == "s" and (value[1][:1] == "/" or name.isupper())
    return is_constant or name in words.called


def _is_name_of_interest(name: str, words: _NamesOfInterest) -> bool:
    return name in words.called or name.endswith(words.ends)


def _is_relevant_value(
    value: Sequence[Any], words: _NamesOfInterest, router_variables: set[str]
) -> bool:
    kind = value[0]
    return (
        (kind == "s" and value[1][:1] == "/" and len(value[1]) > 1)
        or (kind == "n" and (value[1] in words.routers or value[1] in router_variables))
        or (kind == "c" and value[3] in words.called)
    )


def _list_event_facts(
    statements: Sequence[Fact], facts: Sequence[Fact], frameworks: Sequence[Framework]
) -> list[Fact]:
    rules = [rule for framework in frameworks for rule in framework.events]
    names = _EventNames(facts if rules else ())
    events: dict[tuple[str, int, str], Fact] = {}
    for fact in statements if rules else ():
        for rule in rules:
            for event in _read_events(fact, rule, names):
                events.setdefault((event.kind, event.start, str(event.values)), event)
        if len(events) >= _MAX_EVENTS:
            break
    return [*events.values()]


class _EventNames:
    """The definitions and imports of a text: they name the emitters and listeners of events."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.imported: dict[str, str] = {}
        self._declared = [fact for fact in facts if fact.kind == "declares" and fact.symbol]
        self._by_last: dict[str, list[str]] = {}
        for declared_fact in self._declared:
            self._by_last.setdefault(_get_last_name(declared_fact.symbol), []).append(
                declared_fact.symbol
            )
        for fact in facts:
            if fact.kind == "imports" and fact.values.get("member"):
                dots = "." * int(fact.values["level"])
                self.imported[str(fact.values["alias"])] = dots + str(fact.values["name"])

    def find_enclosing(self, at: int) -> str:
        """Return the innermost definition around an offset; "" if there is none."""
        around = (fact for fact in self._declared if fact.start <= at < fact.end)
        innermost = max(around, key=lambda fact: fact.start, default=None)
        return innermost.symbol if innermost is not None else ""

    def find_first_within(self, start: int, end: int) -> str:
        """Return the first definition between two offsets; "" if there is none."""
        within = (fact for fact in self._declared if fact.start < end and start < fact.end <= end)
        first = min(within, key=lambda fact: fact.start, default=None)
        return first.symbol if first is not None else ""

    def find_definition_of_handler(self, value: Sequence[Any] | None) -> str:
        r"""Return the symbol that a handler names: `handle`, `App\Order@paid`; "" if unknown."""
        if value is not None and value[0] == "l" and value[1]:
            value = value[1][-1]  # PHP names a method as `[$this, 'boot']`.
        if value is None or value[0] not in {"n", "s"}:
            return ""
        name = str(value[1])
        if value[0] == "s" and not name.isidentifier():
            owner, _, method = name.replace("\\\\", "\\").partition("@")
            return f"{owner}::{method}" if "\\" in owner and method else ""
        known = self._by_last.get(_get_last_name(name), ())
        return known[0] if len(known) == 1 else ""


def _get_last_name(name: str) -> str:
    return re.split(r"[.:#\\]+", name)[-1]


def _read_events(fact: Fact, rule: EventRules, names: _EventNames) -> Iterator[Fact]:
    name, place = fact.values["name"], (fact.start, fact.end)
    if fact.kind == ANNOTATION and name in rule.annotations:
        for event in _iter_event_names(find_argument(fact, "0"), is_object=rule.is_object):
            symbol = names.find_first_within(*fact.values["target"])
            yield Fact(_LISTENS, *place, symbol, {"event": event, "listener": symbol})
    if fact.kind != CALL or name not in {*rule.emits, *rule.listens}:
        return
    is_emitted = name in rule.emits
    if is_emitted and rule.requires and find_argument(fact, rule.requires) is None:
        return
    value = fact.values.get("on") if rule.is_object else find_argument(fact, "0")
    for event in _iter_event_names(value, is_object=rule.is_object):
        symbol = names.find_enclosing(fact.start)
        if is_emitted:
            yield Fact(_EMITS, *place, symbol, {"event": event})
            continue
        handler = find_argument(fact, "receiver|0" if rule.is_object else "1")
        is_name = handler is not None and handler[0] == "n"
        listener = names.find_definition_of_handler(handler)
        values: dict[str, Any] = {"event": event, "listener": listener or symbol}
        if not listener and handler is not None and is_name and handler[1] in names.imported:
            values |= {"listener": names.imported[handler[1]], "is_imported": True}
        if not rule.is_object or is_name:
            yield Fact(_LISTENS, *place, symbol, values)


def _iter_event_names(value: Sequence[Any] | None, *, is_object: bool) -> Iterator[str]:
    """Yield the names of events in a value: a text, an object, or a list of them."""
    values = value[1] if value is not None and value[0] == "l" else [value]
    for event in values:
        if event is None or event[0] != ("n" if is_object else "s"):
            continue
        name = _get_last_name(str(event[1])) if is_object else str(event[1])
        is_plain = name.isidentifier() and name not in {"self", "cls"}
        if len(name) <= _MAX_EVENT_CHARACTERS and (
            is_plain if is_object else _EVENT.fullmatch(name)
        ):
            yield name
