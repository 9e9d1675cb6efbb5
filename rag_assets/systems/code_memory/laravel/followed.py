"""Calls and checks in route actions on objects whose classes several files determine together.

They are inferred for the action, and for the methods of its class, parents and traits that the
action calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.laravel.inheritance import Inheritance
from rag_assets.systems.code_memory.laravel.policies import Policies
from rag_assets.systems.code_memory.laravel.receivers import Called, Receivers
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.names import ABILITY
from rag_assets.systems.code_memory.symbols.policy_names import method_of, method_of_ability

_MOST_METHODS: Final = 60
"""Maximum number of own methods, called directly or indirectly, that are read for an action."""

_KINDS: Final = frozenset({"goes_through", "authorizes_of", "dispatches_of"})


@dataclass(frozen=True, slots=True)
class Inferred:
    """A relation that is inferred from several files.

    Attributes:
        kind: the kind of the relation.
        source: the method that states it.
        target: the target of the relation.
        path: the path of the file with that method.
        fact: the statement.
    """

    kind: str
    source: str
    target: str
    path: str
    fact: Fact


class Followed:
    """Statements in methods about objects whose classes other files determine.

    Args:
        files: the files of the repository.
        receivers: resolves origins.
    """

    def __init__(
        self, files: Sequence[FileFacts], inheritance: Inheritance, receivers: Receivers
    ) -> None:
        self._inheritance = inheritance
        self._receivers = receivers
        self._policies = Policies.of(files)
        self._facts: dict[str, list[tuple[str, Fact]]] = {}
        self._constants: dict[str, str] = {}
        for one in files:
            for fact in one.facts:
                if fact.kind == "constant":
                    name = f"{fact.symbol}::{fact.values['name']}"
                    self._constants.setdefault(name, str(fact.values["value"]))
                elif fact.kind in _KINDS:
                    self._facts.setdefault(fact.symbol, []).append((one.path, fact))
        self._known: dict[str, tuple[Inferred, ...]] = {}

    def of_action(self, action: str) -> Iterator[Inferred]:
        """Yield the relations of a route's action, and of the own methods that it calls.

        Args:
            action: qualified name of a method.
        """
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
            for called in self._inheritance.called(todo.pop()):
                of, _, name = called.rpartition("::")
                method = self._inheritance.method(owner, name) if of in above else None
                if method is not None and method.symbol not in found:
                    found[method.symbol] = None
                    todo.append(method.symbol)
        return [*found]

    def _of_method(self, method: str) -> Iterator[Inferred]:
        stated = {*self._inheritance.called(method)}
        for path, fact in self._facts.get(method, ()):
            if fact.kind == "authorizes_of":
                found = self._asked(fact)
            elif fact.kind == "dispatches_of":
                found = self._dispatched(fact)
            else:
                own = method.rpartition("::")[0]
                calls = self._receivers.calls(fact.values["of"], own)
                found = self._called(calls, own, stated)
            for kind, target in found:
                yield Inferred(kind, method, target, path, fact)

    def _called(
        self, calls: Iterable[Called], own: str, stated: set[str]
    ) -> Iterator[tuple[str, str]]:
        # Relations that the file shows by itself are not repeated.
        told = {own, *(one.rpartition("::")[0] for one in stated)}
        for one in calls:
            if one.method and one.method not in stated:
                yield "calls", one.method
            is_used = one.on.owner not in told and not one.on.aside
            if is_used and self._receivers.is_model(one.on.owner):
                yield "touches", one.on.owner

    def _dispatched(self, fact: Fact) -> Iterator[tuple[str, str]]:
        """Yield dispatched jobs and events: classes of the repository that are not models."""
        for name in self._receivers.classes(fact.values["of"]):
            if self._inheritance.is_declared(name) and not self._receivers.is_model(name):
                yield "dispatches", name

    def _asked(self, fact: Fact) -> Iterator[tuple[str, str]]:
        """Yield the checked models with their policies' methods, or else the checked ability."""
        constant = str(fact.values.get("constant", ""))
        ability = self._constants.get(constant, "") if constant else str(fact.values["ability"])
        if constant and not ability:
            return
        if constant and not fact.values["of"]:
            yield "authorizes", ABILITY + ability
        for model in self._receivers.classes(fact.values["of"]):
            yield "authorizes", model
            policy = self._policies.of_model(model)
            name = method_of_ability(ability) if ability else method_of(fact)
            found = self._inheritance.method(policy, name) if policy and name else None
            if found is not None:
                yield "authorizes", found.symbol
