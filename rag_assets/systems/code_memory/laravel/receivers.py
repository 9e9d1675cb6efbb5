"""The classes of objects that several files determine: results of helpers, relations and queries.

If functions and methods declare no return type, their classes are found in rounds. Each round uses
the results of the previous one, so the result does not depend on the order of files.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Final, Literal, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.origins import (
    CALL_STEP,
    ELEMENT_STEP,
    SIGNED_IN_USER,
    STEP_SEPARATOR,
)
from rag_assets.systems.code_memory.languages.php.source import BUILT_IN_TYPES, UNION_SEPARATOR
from rag_assets.systems.code_memory.laravel.classes import Inheritance
from rag_assets.systems.code_memory.laravel.models import EloquentModel, EloquentRelation
from rag_assets.systems.code_memory.laravel.policies import Policies
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.names import (
    ABILITY,
    find_policy_method,
    get_method_of_ability,
)

Form: TypeAlias = Literal["one", "query", "many"]
"""Whether a value is one object of a class, a query for its records, or several objects."""


@cache
def _load_methods_by_form() -> Mapping[str, frozenset[str]]:
    text = files(__package__).joinpath("eloquent.toml").read_text("utf-8")
    return {form: frozenset(names) for form, names in tomllib.loads(text).items()}


def find_result_form(form: Form, name: str) -> Form | None:
    """Return the form of an Eloquent method's result; None if the result is not about models."""
    name, methods = name.lower(), _load_methods_by_form()
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


_MAX_ROUNDS: Final = 6
"""Maximum number of rounds, which limits chains of functions that return each other's results."""

_MAX_VALUES: Final = 6
_SCOPE: Final = "scope"
_SINGLE_RELATIONS: Final = frozenset({"belongsTo", "hasOne", "hasOneThrough", "morphOne"})
_AUTH_USER: Final = "Illuminate\\Foundation\\Auth\\User"
_USUAL_USERS: Final = ("App\\Models\\User", "App\\User")


@dataclass(frozen=True, slots=True)
class Receiver:
    """A possible value of an expression.

    Attributes:
        form: an object of the class, a query for objects, or several objects.
        is_aside: whether a method is mainly about other objects: this one comes from the signed-in
            user, from a property, from a function, or from a class that is not a model.
    """

    owner: str
    form: Form = "one"
    is_aside: bool = False


CalledMethod: TypeAlias = tuple[Receiver, str]
"""A receiver, and the qualified name of a method called on it; "" for a framework method."""


class Receivers:
    """A resolver of origins to the classes of the objects that they lead to."""

    def __init__(
        self,
        files: Iterable[FileFacts],
        models: Mapping[str, EloquentModel],
        inheritance: Inheritance,
    ) -> None:
        self._models = models
        self._inheritance = inheritance
        self._relations = {
            name: {relation.name.lower(): relation for relation in reversed(model.relations)}
            for name, model in models.items()
        }
        self._functions: dict[str, str] = {}
        origins_of: dict[str, list[str]] = {}
        for file in files:
            for fact in file.facts:
                if fact.kind == "gives":
                    origins_of.setdefault(fact.symbol, [*fact.values["of"]])
                elif fact.kind == "declares" and fact.values.get("role") == "function":
                    returns = str(fact.values.get("returns", ""))
                    self._functions.setdefault(fact.symbol, returns)
        self._user = self._find_signed_in_class()
        self._results: Mapping[str, frozenset[Receiver]] = {}
        for _ in range(_MAX_ROUNDS):
            results = {name: self._resolve_all(name, listed) for name, listed in origins_of.items()}
            if results == self._results:
                break
            self._results = results

    def is_model(self, name: str) -> bool:
        """Return whether a class is a model."""
        return name in self._models

    def list_classes(self, origins: Iterable[str]) -> list[str]:
        """Return the classes of the objects that origins lead to, except the signed-in user."""
        others = (origin for origin in origins if origin != SIGNED_IN_USER)
        values = [value for other in others for value in self._follow(other, "")[0]]
        return sorted({value.owner for value in values if value.form == "one"})

    def iter_called_methods(self, origins: Iterable[str], own: str) -> Iterator[CalledMethod]:
        """Yield the methods that chains of calls in the class `own` call, in order."""
        for origin in origins:
            yield from self._follow(origin, own)[1]

    def _resolve_all(self, name: str, origins: Sequence[str]) -> frozenset[Receiver]:
        """Return the values that a function returns; empty if any of its origins is unresolved."""
        own = name.rpartition("::")[0]
        value_sets = [self._follow(origin, own)[0] for origin in origins]
        return _limit_values(frozenset().union(*value_sets)) if all(value_sets) else frozenset()

    def _follow(self, origin: str, own: str) -> tuple[frozenset[Receiver], list[CalledMethod]]:
        start, *steps = origin.split(STEP_SEPARATOR)
        methods: list[CalledMethod] = []
        values = self._list_start_values(start, own, methods)
        for step in steps:
            values = _limit_values(
                frozenset(
                    following
                    for value in sorted(values, key=lambda value: (value.owner, value.form))
                    for following in self._list_values_after_step(value, step, own, methods)
                )
            )
        return values, methods

    def _list_start_values(
        self, start: str, own: str, methods: list[CalledMethod]
    ) -> frozenset[Receiver]:
        if start == SIGNED_IN_USER:
            return frozenset({Receiver(self._user, is_aside=True)} if self._user else ())
        owner, separator, method = start.partition("::")
        if separator:
            return self._list_values_after_step(Receiver(owner), method, own, methods)
        if start.endswith(CALL_STEP):
            name = start.removesuffix(CALL_STEP)
            returns = self._functions.get(name)
            if returns is None:
                return frozenset()
            results = self._results.get(name) or _list_declared_values(returns, Receiver(""))
            return _mark_aside(results)
        return frozenset({Receiver(start)})

    def _list_values_after_step(
        self, receiver: Receiver, step: str, own: str, methods: list[CalledMethod]
    ) -> frozenset[Receiver]:
        """Return the values after a step of an origin; append the called method to `methods`."""
        if step == ELEMENT_STEP:
            return frozenset({replace(receiver, form="one")} if receiver.form != "one" else ())
        if not step.endswith(CALL_STEP):
            return self._list_values_of_property(receiver, step)
        name = step.removesuffix(CALL_STEP)
        if receiver.form != "many":
            is_one = receiver.form == "one"
            method = self._inheritance.find_method(receiver.owner, name) if is_one else None
            if method is not None:
                methods.append((receiver, method.symbol))
                results = self._list_results(receiver, name, method)
                is_other = receiver.owner not in self._models and receiver.owner != own
                return _mark_aside(results) if is_other else results
            if receiver.owner not in self._models:
                return frozenset()
            scope = self._inheritance.find_method(receiver.owner, _SCOPE + name)
            methods.append((receiver, scope.symbol if scope is not None else ""))
            if scope is not None:
                return frozenset({replace(receiver, form="query")})
        form = find_result_form(receiver.form, name)
        return frozenset({replace(receiver, form=form)} if form is not None else ())

    def _list_values_of_property(self, receiver: Receiver, name: str) -> frozenset[Receiver]:
        relation = self._find_relation(receiver, name)
        if relation is None or receiver.form != "one":
            return frozenset()
        form: Form = "one" if relation.kind in _SINGLE_RELATIONS else "many"
        return frozenset({Receiver(relation.related, form, is_aside=True)})

    def _list_results(self, receiver: Receiver, name: str, method: Fact) -> frozenset[Receiver]:
        """Return the results of a method of the repository: a relation's query, or objects."""
        relation = self._find_relation(receiver, name)
        if relation is not None:
            return frozenset({Receiver(relation.related, "query")})
        owner = method.symbol.rpartition("::")[0]
        declared_values = _list_declared_values(str(method.values["returns"]), receiver)
        results = declared_values or self._results.get(method.symbol, frozenset())
        # A method that returns the class or trait defining it returns the inheriting class here.
        return frozenset(
            Receiver(
                receiver.owner if value.owner == owner else value.owner,
                value.form,
                value.is_aside or receiver.is_aside,
            )
            for value in results
        )

    def _find_relation(self, receiver: Receiver, name: str) -> EloquentRelation | None:
        relation = self._relations.get(receiver.owner, {}).get(name.lower())
        return relation if relation is not None and relation.related else None

    def _find_signed_in_class(self) -> str:
        """Return the class of the signed-in user: the conventional one, or the only candidate.

        "" if there are several candidates or none.
        """
        able = {
            name for name in self._models if _AUTH_USER in {*self._inheritance.iter_ancestors(name)}
        }
        usual = [name for name in _USUAL_USERS if name in able]
        return usual[0] if usual else able.pop() if len(able) == 1 else ""


def _list_declared_values(returns: str, receiver: Receiver) -> frozenset[Receiver]:
    """Return objects of the classes in a return type, except classes of the framework."""
    if returns in {"self", "static"}:
        return frozenset({Receiver(receiver.owner)})
    names = (name for name in returns.split(UNION_SEPARATOR) if name and name not in BUILT_IN_TYPES)
    return frozenset(Receiver(name) for name in names if not name.startswith("Illuminate\\"))


def _mark_aside(values: frozenset[Receiver]) -> frozenset[Receiver]:
    return frozenset(replace(value, is_aside=True) for value in values)


def _limit_values(values: frozenset[Receiver]) -> frozenset[Receiver]:
    return values if len(values) <= _MAX_VALUES else frozenset()


_MAX_METHODS: Final = 60
"""Maximum number of own methods, called directly or indirectly, that are read for an action."""

_READ_KINDS: Final = frozenset({"goes_through", "authorizes_of", "dispatches_of"})


@dataclass(frozen=True, slots=True)
class InferredRelation:
    """A relation that follows only from several files together."""

    kind: str
    source: str
    target: str
    path: str
    fact: Fact


class FollowedStatements:
    """A reader of the statements in methods about objects whose classes other files determine."""

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
                elif fact.kind in _READ_KINDS:
                    self._facts.setdefault(fact.symbol, []).append((file.path, fact))
        self._known: dict[str, tuple[InferredRelation, ...]] = {}

    def iter_relations(self, action: str) -> Iterator[InferredRelation]:
        """Yield the relations of a route's action, and of methods that it calls on its class."""
        for method in self.list_own_methods(action):
            if method not in self._known:
                self._known[method] = tuple(dict.fromkeys(self._iter_relations_of_method(method)))
            yield from self._known[method]

    def list_own_methods(self, action: str) -> list[str]:
        """Return an action and the methods of its class that it calls, directly or indirectly."""
        owner = action.rpartition("::")[0]
        ancestors = {*self._inheritance.iter_ancestors(owner)}
        methods, pending = {action: None}, [action]
        while pending and len(methods) < _MAX_METHODS:
            for call in self._inheritance.iter_called_methods(pending.pop()):
                call_owner, _, name = call.rpartition("::")
                is_own = call_owner in ancestors
                method = self._inheritance.find_method(owner, name) if is_own else None
                if method is not None and method.symbol not in methods:
                    methods[method.symbol] = None
                    pending.append(method.symbol)
        return [*methods]

    def _iter_relations_of_method(self, method: str) -> Iterator[InferredRelation]:
        known_calls = {*self._inheritance.iter_called_methods(method)}
        for path, fact in self._facts.get(method, ()):
            if fact.kind == "authorizes_of":
                relations = self._iter_checked_relations(fact)
            elif fact.kind == "dispatches_of":
                relations = self._iter_dispatched_relations(fact)
            else:
                own = method.rpartition("::")[0]
                calls = self._receivers.iter_called_methods(fact.values["of"], own)
                relations = self._iter_called_relations(calls, own, known_calls)
            for kind, target in relations:
                yield InferredRelation(kind, method, target, path, fact)

    def _iter_called_relations(
        self, calls: Iterable[CalledMethod], own: str, known_calls: set[str]
    ) -> Iterator[tuple[str, str]]:
        # Relations that the file shows by itself are not repeated.
        known_classes = {own, *(known_call.rpartition("::")[0] for known_call in known_calls)}
        for receiver, method in calls:
            if method and method not in known_calls:
                yield "calls", method
            is_used = receiver.owner not in known_classes and not receiver.is_aside
            if is_used and self._receivers.is_model(receiver.owner):
                yield "touches", receiver.owner

    def _iter_dispatched_relations(self, fact: Fact) -> Iterator[tuple[str, str]]:
        """Yield a relation to each dispatched job or event of the repository."""
        for name in self._receivers.list_classes(fact.values["of"]):
            if self._inheritance.is_declared(name) and not self._receivers.is_model(name):
                yield "dispatches", name

    def _iter_checked_relations(self, fact: Fact) -> Iterator[tuple[str, str]]:
        """Yield relations to the models that a statement checks and to their policies' methods.

        If the subject is unknown, the relation leads to the checked ability.
        """
        constant = str(fact.values.get("constant", ""))
        ability = self._constants.get(constant, "") if constant else str(fact.values["ability"])
        if constant and not ability:
            return
        if constant and not fact.values["of"]:
            yield "authorizes", ABILITY + ability
        for model in self._receivers.list_classes(fact.values["of"]):
            yield "authorizes", model
            policy = self._policies.find_policy(model)
            name = get_method_of_ability(ability) if ability else find_policy_method(fact)
            declaration = self._inheritance.find_method(policy, name) if policy and name else None
            if declaration is not None:
                yield "authorizes", declaration.symbol
