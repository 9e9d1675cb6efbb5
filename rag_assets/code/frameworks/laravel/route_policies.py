"""The policies that routes ask: `can` in their middleware, about a class or a bound model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rag_assets.code.frameworks.laravel.inflection import snake
from rag_assets.code.frameworks.laravel.inheritance import Inheritance
from rag_assets.code.frameworks.laravel.policies import Policies
from rag_assets.code.frameworks.laravel.routes.model import Route
from rag_assets.code.model import FileFacts
from rag_assets.code.nodes import ABILITY
from rag_assets.code.policy_names import method_of_ability

_CAN: Final = "can"
_AUTHORIZE: Final = "Illuminate\\Auth\\Middleware\\Authorize"
_INVOKED: Final = "__invoke"


@dataclass(frozen=True, slots=True)
class AskedPolicy:
    """A policy that a route asks, or an ability that a gate defines.

    Attributes:
        policy: its class; "" of an ability.
        method: that answers, qualified; the node of an ability.
        mapped: whether a file names it; else its place does.
    """

    policy: str
    method: str
    mapped: bool


class RoutePolicies:
    """What policies the middleware of routes asks.

    Args:
        files: of one repository.
        guards: classes of middleware by their other names.
        inheritance: of its classes.
    """

    def __init__(
        self,
        files: Sequence[FileFacts],
        guards: Mapping[str, Sequence[str]],
        inheritance: Inheritance,
    ) -> None:
        self._policies = Policies.of(files)
        self._inheritance = inheritance
        named = guards.get(_CAN, ())
        self._names = {_AUTHORIZE, *([_CAN] if not named or _AUTHORIZE in named else [])}
        facts = (fact for one in files for fact in one.facts if fact.kind == "defines_ability")
        self._abilities = {str(fact.values["ability"]) for fact in facts}

    def asked(self, route: Route, middleware: str) -> AskedPolicy | None:
        """The policy that one middleware of a route asks; None where nothing tells which.

        Args:
            route: that has it.
            middleware: as the route states it: `can:send,invoice`.
        """
        name, _, given = middleware.partition(":")
        if name not in self._names:
            return None
        ability, *about = (part.strip() for part in given.split(","))
        model = self._model(route, about[0]) if about else ""
        policy = self._policies.of_model(model) if model else ""
        answers = method_of_ability(ability)
        defined = ability in self._abilities
        if policy and (not defined or self._inheritance.method(policy, answers)):
            mapped = self._policies.is_mapped(model)
            return AskedPolicy(policy, f"{policy}::{answers}", mapped)
        return AskedPolicy("", ABILITY + ability, mapped=True) if defined else None

    def _model(self, route: Route, about: str) -> str:
        return about.lstrip("\\") if "\\" in about else self._bound(route, about)

    def _bound(self, route: Route, parameter: str) -> str:
        """The class that a parameter of a route is bound to, by the type that its action takes."""
        if route.kind != "controller" or parameter not in {one.name for one in route.parameters}:
            return ""
        owner, _, method = route.action.partition("@")
        action = self._inheritance.method(owner, method or _INVOKED)
        taken = action.values.get("parameters", ()) if action is not None else ()
        return next((str(p["type"]) for p in taken if _is_called(p, parameter)), "")


def _is_called(taken: Mapping[str, Any], parameter: str) -> bool:
    """Whether a parameter of a method is the one of a route, as Laravel matches their names."""
    name = str(taken["name"])
    return parameter in {name, snake(name)}
