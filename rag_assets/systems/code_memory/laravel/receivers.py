"""The classes of objects that several files determine: results of helpers, relations and queries.

The classes that functions and methods return without declaring them are found in rounds. Each round
uses the results of the previous one, so the result does not depend on the order of files.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Final, Literal, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.origins import CALLED, ELEMENT, SIGNED_IN, THEN
from rag_assets.systems.code_memory.languages.php.source import NO_CLASSES, OR
from rag_assets.systems.code_memory.laravel.classes import Inheritance
from rag_assets.systems.code_memory.laravel.models import Model, Relation
from rag_assets.systems.code_memory.laravel.policies import Policies
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.names import (
    ABILITY,
    find_policy_method,
    method_of_ability,
)

Form: TypeAlias = Literal["one", "query", "many"]
"""Whether a value is one object of a class, a query for its records, or several objects."""


@cache
def _methods_by_form() -> Mapping[str, frozenset[str]]:
    """Return Eloquent's methods, by the form of their results."""
    text = files(__package__).joinpath("eloquent.toml").read_text("utf-8")
    return {form: frozenset(names) for form, names in tomllib.loads(text).items()}


def form_after(form: Form, name: str) -> Form | None:
    """Return the form of the result of an Eloquent method; None if the result is anything else."""
    name, methods = name.lower(), _methods_by_form()
    if form == "many":
        is_same = name in methods["some_of_several"]
        return "one" if name in methods["one_of_several"] else "many" if is_same else None
    if name in methods["one"] or (form == "one" and name in methods["same_record"]):
        return "one"
    if name in methods["many"]:
        return "many"
    if name in methods["other"]:
        return None
    # Any other method of a query returns a query, since most are conditions.
    is_begun = name in methods["query"] or name.startswith(("where", "orwhere"))
    return "query" if form == "query" or is_begun else None


_ROUNDS: Final = 6
"""Maximum number of rounds: functions that return each other's results, one after another."""

_MOST_KINDS: Final = 6
_SCOPE: Final = "scope"
_TO_ONE: Final = frozenset({"belongsTo", "hasOne", "hasOneThrough", "morphOne"})
_AUTH_USER: Final = "Illuminate\\Foundation\\Auth\\User"
_USUAL_USERS: Final = ("App\\Models\\User", "App\\User")


@dataclass(frozen=True, slots=True)
class Kind:
    """A possible value of an expression.

    Attributes:
        form: an object of the class, a query for objects, or several objects.
        aside: whether the value is or comes from the signed-in user, was read as a property, or was
            returned by a function or by a class that is not a model. Such a value is not the model
            that a method is about.
    """

    owner: str
    form: Form = "one"
    aside: bool = False


@dataclass(frozen=True, slots=True)
class CalledMethod:
    """A method in a chain of calls.

    Attributes:
        method: its qualified name; "" for a framework method.
    """

    on: Kind
    method: str


class Receivers:
    """Resolves origins to classes."""

    def __init__(
        self, files: Iterable[FileFacts], models: Mapping[str, Model], inheritance: Inheritance
    ) -> None:
        self._models = models
        self._inheritance = inheritance
        self._relations = {
            name: {relation.name.lower(): relation for relation in reversed(model.relations)}
            for name, model in models.items()
        }
        self._functions: dict[str, str] = {}
        gives: dict[str, list[str]] = {}
        for file in files:
            for fact in file.facts:
                if fact.kind == "gives":
                    gives.setdefault(fact.symbol, [*fact.values["of"]])
                elif fact.kind == "declares" and fact.values.get("role") == "function":
                    returns = str(fact.values.get("returns", ""))
                    self._functions.setdefault(fact.symbol, returns)
        self._user = self._signed_in_class()
        self._given: Mapping[str, frozenset[Kind]] = {}
        for _ in range(_ROUNDS):
            found = {name: self._resolve_all(name, origins) for name, origins in gives.items()}
            if found == self._given:
                break
            self._given = found

    def is_model(self, name: str) -> bool:
        """Return whether a class is a model."""
        return name in self._models

    def classes(self, origins: Iterable[str]) -> list[str]:
        """Return the classes of the objects that origins lead to, without the signed-in user."""
        others = (origin for origin in origins if origin != SIGNED_IN)
        kinds = [kind for other in others for kind in self._follow_origin(other, "")[0]]
        return sorted({one.owner for one in kinds if one.form == "one"})

    def calls(self, origins: Iterable[str], own: str) -> Iterator[CalledMethod]:
        """Yield the methods that are called in chains of calls, in order."""
        for origin in origins:
            yield from self._follow_origin(origin, own)[1]

    def _resolve_all(self, name: str, origins: Sequence[str]) -> frozenset[Kind]:
        """Return the values of a function or method; empty unless each origin can be resolved."""
        own = name.rpartition("::")[0]
        found = [self._follow_origin(origin, own)[0] for origin in origins]
        return _limit_kinds(frozenset().union(*found)) if all(found) else frozenset()

    def _follow_origin(self, origin: str, own: str) -> tuple[frozenset[Kind], list[CalledMethod]]:
        start, *steps = origin.split(THEN)
        called: list[CalledMethod] = []
        kinds = self._start_values(start, own, called)
        for step in steps:
            kinds = _limit_kinds(
                frozenset(
                    given
                    for one in sorted(kinds, key=lambda kind: (kind.owner, kind.form))
                    for given in self._values_after_step(one, step, own, called)
                )
            )
        return kinds, called

    def _start_values(self, start: str, own: str, called: list[CalledMethod]) -> frozenset[Kind]:
        if start == SIGNED_IN:
            return frozenset({Kind(self._user, aside=True)} if self._user else ())
        owner, separator, method = start.partition("::")
        if separator:
            return self._values_after_step(Kind(owner), method, own, called)
        if start.endswith(CALLED):
            name = start.removesuffix(CALLED)
            returns = self._functions.get(name)
            if returns is None:
                return frozenset()
            given = self._given.get(name) or _list_kinds(returns, Kind(""))
            return frozenset(replace(one, aside=True) for one in given)
        return frozenset({Kind(start)})

    def _values_after_step(
        self, on: Kind, step: str, own: str, called: list[CalledMethod]
    ) -> frozenset[Kind]:
        """Return the values after a step; methods that are called are added to `called`."""
        if step == ELEMENT:
            return frozenset({replace(on, form="one")} if on.form != "one" else ())
        if not step.endswith(CALLED):
            return self._list_values_of_property(on, step)
        name = step.removesuffix(CALLED)
        if on.form != "many":
            method = self._inheritance.method(on.owner, name) if on.form == "one" else None
            if method is not None:
                called.append(CalledMethod(on, method.symbol))
                given = self._of_method(on, name, method)
                is_other = on.owner not in self._models and on.owner != own
                return frozenset(replace(one, aside=True) for one in given) if is_other else given
            if on.owner not in self._models:
                return frozenset()
            scope = self._inheritance.method(on.owner, _SCOPE + name)
            called.append(CalledMethod(on, scope.symbol if scope is not None else ""))
            if scope is not None:
                return frozenset({replace(on, form="query")})
        form = form_after(on.form, name)
        return frozenset({replace(on, form=form)} if form is not None else ())

    def _list_values_of_property(self, on: Kind, name: str) -> frozenset[Kind]:
        relation = self._find_relation(on, name)
        if relation is None or on.form != "one":
            return frozenset()
        form: Form = "one" if relation.kind in _TO_ONE else "many"
        return frozenset({Kind(relation.related, form, aside=True)})

    def _of_method(self, on: Kind, name: str, method: Fact) -> frozenset[Kind]:
        """Return the results of a class's own method: a relation's query, else its return type."""
        relation = self._find_relation(on, name)
        if relation is not None:
            return frozenset({Kind(relation.related, "query")})
        owner = method.symbol.rpartition("::")[0]
        declared = _list_kinds(str(method.values["returns"]), on)
        given = declared or self._given.get(method.symbol, frozenset())
        # A method that returns the class or trait defining it returns the inheriting class here.
        return frozenset(
            Kind(on.owner if one.owner == owner else one.owner, one.form, one.aside or on.aside)
            for one in given
        )

    def _find_relation(self, on: Kind, name: str) -> Relation | None:
        found = self._relations.get(on.owner, {}).get(name.lower())
        return found if found is not None and found.related else None

    def _signed_in_class(self) -> str:
        """Return the signed-in user's class: the only candidate, or the conventional one."""
        able = {name for name in self._models if _AUTH_USER in {*self._inheritance.ancestors(name)}}
        usual = [name for name in _USUAL_USERS if name in able]
        return usual[0] if usual else able.pop() if len(able) == 1 else ""


def _list_kinds(returns: str, on: Kind) -> frozenset[Kind]:
    """Return the classes of a declared type, without framework types such as collections."""
    if returns in {"self", "static"}:
        return frozenset({Kind(on.owner)})
    named = (one for one in returns.split(OR) if one and one not in NO_CLASSES)
    return frozenset(Kind(one) for one in named if not one.startswith("Illuminate\\"))


def _limit_kinds(kinds: frozenset[Kind]) -> frozenset[Kind]:
    return kinds if len(kinds) <= _MOST_KINDS else frozenset()


_MOST_METHODS: Final = 60
"""Maximum number of own methods, called directly or indirectly, that are read for an action."""

_KINDS: Final = frozenset({"goes_through", "authorizes_of", "dispatches_of"})


@dataclass(frozen=True, slots=True)
class InferredRelation:
    """A relation that is inferred from several files."""

    kind: str
    source: str
    target: str
    path: str
    fact: Fact


class FollowedStatements:
    """Statements in methods about objects whose classes other files determine."""

    def __init__(
        self,
        files: Sequence[FileFacts],
        inheritance: Inheritance,
        receivers: Receivers,
        policies: Policies,
    ) -> None:
        self._inheritance = inheritance
        self._receivers = receivers
        self._policies = policies
        self._facts: dict[str, list[tuple[str, Fact]]] = {}
        self._constants: dict[str, str] = {}
        for file in files:
            for fact in file.facts:
                if fact.kind == "constant":
                    name = f"{fact.symbol}::{fact.values['name']}"
                    self._constants.setdefault(name, str(fact.values["value"]))
                elif fact.kind in _KINDS:
                    self._facts.setdefault(fact.symbol, []).append((file.path, fact))
        self._known: dict[str, tuple[InferredRelation, ...]] = {}

    def relations_of_action(self, action: str) -> Iterator[InferredRelation]:
        """Yield the relations of a route's action, and of the own methods that it calls."""
        for method in self.own_methods(action):
            if method not in self._known:
                self._known[method] = tuple(dict.fromkeys(self._of_method(method)))
            yield from self._known[method]

    def own_methods(self, action: str) -> list[str]:
        """Return an action and the methods of its class that it calls, directly or indirectly."""
        owner = action.rpartition("::")[0]
        above = {*self._inheritance.ancestors(owner)}
        found, todo = {action: None}, [action]
        while todo and len(found) < _MOST_METHODS:
            for called in self._inheritance.called_methods(todo.pop()):
                of, _, name = called.rpartition("::")
                method = self._inheritance.method(owner, name) if of in above else None
                if method is not None and method.symbol not in found:
                    found[method.symbol] = None
                    todo.append(method.symbol)
        return [*found]

    def _of_method(self, method: str) -> Iterator[InferredRelation]:
        stated = {*self._inheritance.called_methods(method)}
        for path, fact in self._facts.get(method, ()):
            if fact.kind == "authorizes_of":
                found = self._iter_checked_relations(fact)
            elif fact.kind == "dispatches_of":
                found = self._iter_dispatched_relations(fact)
            else:
                own = method.rpartition("::")[0]
                calls = self._receivers.calls(fact.values["of"], own)
                found = self._iter_called_relations(calls, own, stated)
            for kind, target in found:
                yield InferredRelation(kind, method, target, path, fact)

    def _iter_called_relations(
        self, calls: Iterable[CalledMethod], own: str, stated: set[str]
    ) -> Iterator[tuple[str, str]]:
        # Relations that the file shows by itself are not repeated.
        told = {own, *(one.rpartition("::")[0] for one in stated)}
        for call in calls:
            if call.method and call.method not in stated:
                yield "calls", call.method
            is_used = call.on.owner not in told and not call.on.aside
            if is_used and self._receivers.is_model(call.on.owner):
                yield "touches", call.on.owner

    def _iter_dispatched_relations(self, fact: Fact) -> Iterator[tuple[str, str]]:
        """Yield dispatched jobs and events: classes of the repository that are not models."""
        for name in self._receivers.classes(fact.values["of"]):
            if self._inheritance.is_declared(name) and not self._receivers.is_model(name):
                yield "dispatches", name

    def _iter_checked_relations(self, fact: Fact) -> Iterator[tuple[str, str]]:
        """Yield the checked models with their policies' methods, or else the checked ability."""
        constant = str(fact.values.get("constant", ""))
        ability = self._constants.get(constant, "") if constant else str(fact.values["ability"])
        if constant and not ability:
            return
        if constant and not fact.values["of"]:
            yield "authorizes", ABILITY + ability
        for model in self._receivers.classes(fact.values["of"]):
            yield "authorizes", model
            policy = self._policies.policy_of_model(model)
            name = method_of_ability(ability) if ability else find_policy_method(fact)
            found = self._inheritance.method(policy, name) if policy and name else None
            if found is not None:
                yield "authorizes", found.symbol
