"""The statements of one text that framework data may use, in the form of facts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.frameworks.definitions import all_frameworks
from rag_assets.systems.code_memory.frameworks.events import event_facts
from rag_assets.systems.code_memory.frameworks.statements import (
    ANNOTATION,
    ASSIGNED,
    CALL,
    CLASS,
    FUNCTION,
    GRAMMARS,
    statements_of,
)
from rag_assets.systems.code_memory.languages.tree import syntax_tree

FOUND: Final = "frameworks"
"""Kind of the fact that lists the frameworks whose markers a file contains."""
_LONGEST_CHAIN: Final = 30
"""Maximum number of calls followed in one chain; further calls are ignored."""
_MOST_KEPT: Final = 2_000
"""Maximum number of statements kept for one text; a note reports that further ones are dropped."""


@dataclass(frozen=True, slots=True)
class _NamesOfInterest:
    """The names that the frameworks of one language look for.

    Attributes:
        called: names of calls, annotations and fields.
        ends: endings of the names of calls that create a column.
        makers: names of calls that create a router.
        routers: usual names and types of routers.
    """

    called: frozenset[str]
    ends: tuple[str, ...]
    makers: frozenset[str]
    routers: frozenset[str]


@lru_cache(maxsize=128)
def _collect_names(language: str, own: str) -> _NamesOfInterest:
    known = [one for one in all_frameworks(own) if language in one.languages]
    made = (name for one in known for name in one.routers.made_by)
    return _NamesOfInterest(
        frozenset(name for one in known for name in one.names() if name),
        tuple({name[1:] for one in known for name in one.names() if name[:1] == "*"}),
        frozenset(one.rpartition(".")[2].rpartition("::")[2] for one in made),
        frozenset(n for one in known for n in (*one.routers.called, *one.routers.types)),
    )


def framework_facts(
    text: str, language: str, known_facts: Sequence[Fact] = (), own: str = ""
) -> tuple[list[Fact], str]:
    """Return the statements of a text that frameworks may use, and a note if some are left out.

    They include the events that the text emits and listens to.
    """
    if language not in GRAMMARS:
        return [], ""
    known = [one for one in all_frameworks(own) if language in one.languages]
    marked = [one for one in known if any(marker in text for marker in one.markers)]
    events = [one for one in marked if one.events]
    names = [one.name for one in marked if not one.events]
    is_of_tests = all(one.requests or one.events for one in known)
    if is_of_tests and not marked:
        return [], ""  # In this language only tests and events are read, and the text has neither.
    module, function = GRAMMARS[language]
    tree = syntax_tree(text, module, function)
    if language == "typescript" and tree.has_errors:
        tree = syntax_tree(text, module, "language_tsx")
    found, note = statements_of(tree, language)
    kept = _keep_relevant(found, _collect_names(language, own)) if names or not is_of_tests else []
    if len(kept) > _MOST_KEPT:
        kept, note = kept[:_MOST_KEPT], f"frameworks: more than {_MOST_KEPT} statements"
    if names and kept:
        kept.insert(0, Fact(FOUND, 0, 0, "", {"names": names}))
    return kept + event_facts(found, known_facts, events), note


def _keep_relevant(found: Sequence[Fact], words: _NamesOfInterest) -> list[Fact]:
    """Return the statements that a framework may use, and the earlier calls in their chains."""
    by_place = {(one.start, one.end): one for one in found if one.kind == CALL}
    assigned = [one for one in found if one.kind == ASSIGNED and one.values["value"][0] == "c"]
    chains = {id(one): [*_calls_in_chain(by_place, one.values["value"][1:3])] for one in assigned}
    router_variables = {
        one.values["name"]
        for one in assigned
        if any(call.values["name"] in words.called for call in chains[id(one)])
    }
    declared = (one.values for one in found if one.kind == ASSIGNED)
    router_variables |= {
        one["name"]
        for one in declared
        if one["value"][0] == "t" and one["value"][1].lstrip("&*") in words.routers
    }
    held: set[int] = set()
    for one in found:
        if _is_relevant(one, words, router_variables):
            held.add(id(one))
            if id(one) in chains and _is_called_name(one.values["value"][3], words):
                held |= {id(call) for call in chains[id(one)][:1]}
        elif one.kind == ASSIGNED and one.values["name"] in router_variables and id(one) in chains:
            held |= {id(one), *map(id, chains[id(one)])}
    todo = [one for one in found if one.kind == CALL and id(one) in held]
    made = sorted(one.start for one in todo if one.values["name"] in words.makers)
    while todo:
        values = todo.pop().values
        for value in (values.get("on", ["?"]), *values["arguments"]):
            call = by_place.get((value[1], value[2])) if value[0] == "c" else None
            if call is not None and id(call) not in held:
                held.add(id(call))
                todo.append(call)
    for one in found:
        if one.kind == FUNCTION and bisect_left(made, one.start) < bisect_left(made, one.end):
            held.add(id(one))
    return [one for one in found if id(one) in held]


def _calls_in_chain(
    by_place: Mapping[tuple[int, int], Fact], place: Sequence[int]
) -> Iterator[Fact]:
    """Yield a call, and the earlier calls in its chain."""
    for _ in range(_LONGEST_CHAIN):
        call = by_place.get((place[0], place[1]))
        if call is None:
            return
        yield call
        on = call.values.get("on", ["?"])
        if on[0] != "c":
            return
        place = on[1:3]


def _is_relevant(fact: Fact, words: _NamesOfInterest, router_variables: set[str]) -> bool:
    """Return whether a framework may use a statement.

    Args:
        router_variables: names of the text's variables that may hold routers.
    """
    values = fact.values
    name = values["name"]
    if fact.kind == CLASS:
        return True
    if fact.kind in {CALL, ANNOTATION}:
        given = (*values["arguments"], *values.get("named", {}).values())
        return name in words.called or any(
            _is_relevant_value(one, words, router_variables) for one in given
        )
    if fact.kind == FUNCTION:
        types = (p for one in values["parameters"] for p in one)
        return name in words.called or any(p.lstrip("&*") in words.routers for p in types)
    value = values["value"]
    if value[0] == "c":
        return _is_called_name(value[3], words) or name in words.routers or name in words.called
    is_constant = value[0] == "s" and (value[1][:1] == "/" or name.isupper())
    return is_constant or name in words.called


def _is_called_name(name: str, words: _NamesOfInterest) -> bool:
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
