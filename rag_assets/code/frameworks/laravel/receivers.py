"""The classes of objects that several files tell together: of helpers, of relations, of queries.

What functions and methods return that declare no class is worked out in rounds, each from the
one before: in whatever order files come, the same is known after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rag_assets.code.frameworks.laravel.inheritance import Inheritance
from rag_assets.code.frameworks.laravel.models import Model, Relation
from rag_assets.code.frameworks.laravel.record_methods import Form, form_after
from rag_assets.code.languages.php.classes import OR
from rag_assets.code.languages.php.names import NO_CLASSES
from rag_assets.code.languages.php.origins import CALLED, ELEMENT, SIGNED_IN, THEN
from rag_assets.code.model import Fact, FileFacts

_ROUNDS: Final = 6
"""Functions that return what another one returns, one after the other."""

_MOST_KINDS: Final = 6
_SCOPE: Final = "scope"
_TO_ONE: Final = frozenset({"belongsTo", "hasOne", "hasOneThrough", "morphOne"})
_AUTH_USER: Final = "Illuminate\\Foundation\\Auth\\User"
_USUAL_USERS: Final = ("App\\Models\\User", "App\\User")


@dataclass(frozen=True, slots=True)
class Kind:
    """What an expression may hold.

    Attributes:
        owner: the class.
        form: an object of it, a query for some, or several.
        aside: whether it is whoever is signed in or comes from them, was read as a property, or is
            what a function or another class that is no model gave: such a model is none that a
            method is about.
    """

    owner: str
    form: Form = "one"
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Called:
    """A method that a chain of calls leads to.

    Attributes:
        on: what it is called on.
        method: its qualified name; "" of one that is the framework's.
    """

    on: Kind
    method: str


class Receivers:
    """What origins lead to.

    Args:
        files: of the repository.
        models: of it.
        inheritance: of its classes.
    """

    def __init__(
        self, files: Iterable[FileFacts], models: Mapping[str, Model], inheritance: Inheritance
    ) -> None:
        self._models = models
        self._inheritance = inheritance
        self._relations = {
            name: {one.name.lower(): one for one in reversed(model.relations)}
            for name, model in models.items()
        }
        self._functions: dict[str, str] = {}
        gives: dict[str, list[str]] = {}
        for one in files:
            for fact in one.facts:
                if fact.kind == "gives":
                    gives.setdefault(fact.symbol, [*fact.values["of"]])
                elif fact.kind == "declares" and fact.values.get("role") == "function":
                    returns = str(fact.values.get("returns", ""))
                    self._functions.setdefault(fact.symbol, returns)
        self._user = self._signed_in()
        self._given: Mapping[str, frozenset[Kind]] = {}
        for _ in range(_ROUNDS):
            found = {name: self._all_of(name, origins) for name, origins in gives.items()}
            if found == self._given:
                break
            self._given = found

    def is_model(self, name: str) -> bool:
        """Whether a class is a model."""
        return name in self._models

    def classes(self, origins: Iterable[str]) -> list[str]:
        """The classes of the objects that origins lead to, but not of whoever is signed in."""
        others = (one for one in origins if one != SIGNED_IN)
        kinds = [kind for one in others for kind in self._followed(one, "")[0]]
        return sorted({one.owner for one in kinds if one.form == "one"})

    def calls(self, origins: Iterable[str], own: str) -> Iterator[Called]:
        """The methods on the way of chains of calls, in order.

        Args:
            origins: of the chains.
            own: the class that they stand in.
        """
        for origin in origins:
            yield from self._followed(origin, own)[1]

    def _all_of(self, name: str, origins: Sequence[str]) -> frozenset[Kind]:
        """What a function or method gives, if each of its origins leads somewhere."""
        own = name.rpartition("::")[0]
        found = [self._followed(one, own)[0] for one in origins]
        return _few(frozenset().union(*found)) if all(found) else frozenset()

    def _followed(self, origin: str, own: str) -> tuple[frozenset[Kind], list[Called]]:
        begun, *steps = origin.split(THEN)
        called: list[Called] = []
        kinds = self._begun(begun, own, called)
        for step in steps:
            kinds = _few(
                frozenset(
                    given
                    for one in sorted(kinds, key=lambda kind: (kind.owner, kind.form))
                    for given in self._after(one, step, own, called)
                )
            )
        return kinds, called

    def _begun(self, begun: str, own: str, called: list[Called]) -> frozenset[Kind]:
        if begun == SIGNED_IN:
            return frozenset({Kind(self._user, aside=True)} if self._user else ())
        owner, separator, method = begun.partition("::")
        if separator:
            return self._after(Kind(owner), method, own, called)
        if begun.endswith(CALLED):
            name = begun.removesuffix(CALLED)
            returns = self._functions.get(name)
            if returns is None:
                return frozenset()
            given = self._given.get(name) or _kinds_of(returns, Kind(""))
            return frozenset(replace(one, aside=True) for one in given)
        return frozenset({Kind(begun)})

    def _after(self, on: Kind, step: str, own: str, called: list[Called]) -> frozenset[Kind]:
        """What a step from something leads to; methods on the way are added to those called."""
        if step == ELEMENT:
            return frozenset({replace(on, form="one")} if on.form != "one" else ())
        if not step.endswith(CALLED):
            return self._of_property(on, step)
        name = step.removesuffix(CALLED)
        if on.form != "many":
            method = self._inheritance.method(on.owner, name) if on.form == "one" else None
            if method is not None:
                called.append(Called(on, method.symbol))
                given = self._of_method(on, name, method)
                is_other = on.owner not in self._models and on.owner != own
                return frozenset(replace(one, aside=True) for one in given) if is_other else given
            if on.owner not in self._models:
                return frozenset()
            scope = self._inheritance.method(on.owner, _SCOPE + name)
            called.append(Called(on, scope.symbol if scope is not None else ""))
            if scope is not None:
                return frozenset({replace(on, form="query")})
        form = form_after(on.form, name)
        return frozenset({replace(on, form=form)} if form is not None else ())

    def _of_property(self, on: Kind, name: str) -> frozenset[Kind]:
        relation = self._relation(on, name)
        if relation is None or on.form != "one":
            return frozenset()
        form: Form = "one" if relation.kind in _TO_ONE else "many"
        return frozenset({Kind(relation.related, form, aside=True)})

    def _of_method(self, on: Kind, name: str, method: Fact) -> frozenset[Kind]:
        """What an own method gives: a relation's query, what it declares, or what it returns."""
        relation = self._relation(on, name)
        if relation is not None:
            return frozenset({Kind(relation.related, "query")})
        owner = method.symbol.rpartition("::")[0]
        declared = _kinds_of(str(method.values["returns"]), on)
        given = declared or self._given.get(method.symbol, frozenset())
        # What is of the class or trait that has the method is of the class that has it from there.
        return frozenset(
            Kind(on.owner if one.owner == owner else one.owner, one.form, one.aside or on.aside)
            for one in given
        )

    def _relation(self, on: Kind, name: str) -> Relation | None:
        found = self._relations.get(on.owner, {}).get(name.lower())
        return found if found is not None and found.related else None

    def _signed_in(self) -> str:
        """The class of whoever is signed in: the only one, or the usual one, that may be."""
        able = {name for name in self._models if _AUTH_USER in {*self._inheritance.ancestors(name)}}
        usual = [name for name in _USUAL_USERS if name in able]
        return usual[0] if usual else able.pop() if len(able) == 1 else ""


def _kinds_of(returns: str, on: Kind) -> frozenset[Kind]:
    """The objects that a declared type stands for; none of the framework's, which hold others."""
    if returns in {"self", "static"}:
        return frozenset({Kind(on.owner)})
    named = (one for one in returns.split(OR) if one and one not in NO_CLASSES)
    return frozenset(Kind(one) for one in named if not one.startswith("Illuminate\\"))


def _few(kinds: frozenset[Kind]) -> frozenset[Kind]:
    return kinds if len(kinds) <= _MOST_KINDS else frozenset()
