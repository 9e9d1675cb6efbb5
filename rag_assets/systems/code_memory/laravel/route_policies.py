"""The policies that routes check: `can` in their middleware, for a class or a bound model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rag_assets.systems.code_memory.laravel.inflection import snake
from rag_assets.systems.code_memory.laravel.inheritance import Inheritance
from rag_assets.systems.code_memory.laravel.policies import Policies
from rag_assets.systems.code_memory.laravel.routes.model import Route
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.names import ABILITY
from rag_assets.systems.code_memory.symbols.policy_names import method_of_ability

_CAN: Final = "can"
_AUTHORIZE: Final = "Illuminate\\Auth\\Middleware\\Authorize"
_INVOKED: Final = "__invoke"


@dataclass(frozen=True, slots=True)
class AskedPolicy:
    """A policy that a route checks, or an ability that a gate defines.

    Attributes:
        policy: the class of the policy; "" for an ability.
        method: the qualified method that decides; for an ability, the ability's node.
        mapped: whether a policy map names the policy; otherwise its location determines it.
    """

    policy: str
    method: str
    mapped: bool


class RoutePolicies:
    """The policies that the middleware of routes checks.

    Args:
        files: the files of one repository.
        guards: middleware classes by their aliases.
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
        """Return the policy that one middleware of a route checks; None if it is unknown.

        Args:
            route: the route with this middleware.
            middleware: the middleware as the route states it: `can:send,invoice`.
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
        """Return the class that a route parameter is bound to: its type in the action's method."""
        if route.kind != "controller" or parameter not in {one.name for one in route.parameters}:
            return ""
        owner, _, method = route.action.partition("@")
        action = self._inheritance.method(owner, method or _INVOKED)
        taken = action.values.get("parameters", ()) if action is not None else ()
        return next((str(p["type"]) for p in taken if _is_called(p, parameter)), "")


def _is_called(taken: Mapping[str, Any], parameter: str) -> bool:
    """Return whether a method's parameter belongs to a route parameter, by Laravel's rules."""
    name = str(taken["name"])
    return parameter in {name, snake(name)}
