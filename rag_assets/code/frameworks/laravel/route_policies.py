"""The policies that routes ask: `can` in their middleware, about a class or a bound model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rag_assets.code.frameworks.laravel.inflection import snake
from rag_assets.code.frameworks.laravel.policies import Policies
from rag_assets.code.frameworks.laravel.routes.model import Route
from rag_assets.code.model import FileFacts
from rag_assets.code.policy_names import method_of_ability

_CAN: Final = "can"
_AUTHORIZE: Final = "Illuminate\\Auth\\Middleware\\Authorize"
_INVOKED: Final = "__invoke"
_MOST_PARENTS: Final = 20


@dataclass(frozen=True, slots=True)
class AskedPolicy:
    """A policy that a route asks.

    Attributes:
        policy: its class.
        method: that answers, qualified.
        mapped: whether a map names the policy; else its place does.
    """

    policy: str
    method: str
    mapped: bool


class RoutePolicies:
    """What policies the middleware of routes asks.

    Args:
        files: of one repository.
        guards: classes of middleware by their other names.
    """

    def __init__(self, files: Sequence[FileFacts], guards: Mapping[str, Sequence[str]]) -> None:
        self._policies = Policies.of(files)
        named = guards.get(_CAN, ())
        self._names = {_AUTHORIZE, *([_CAN] if not named or _AUTHORIZE in named else [])}
        self._parameters: dict[str, Sequence[Mapping[str, Any]]] = {}
        self._parents: dict[str, str] = {}
        for one in files:
            for fact in one.facts:
                if fact.kind == "declares":
                    self._parameters.setdefault(fact.symbol, fact.values.get("parameters", ()))
                elif fact.kind == "extends":
                    self._parents.setdefault(fact.symbol, str(fact.values["name"]))

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
        if not ability or not about:
            return None
        model = about[0].lstrip("\\") if "\\" in about[0] else self._bound(route, about[0])
        policy = self._policies.of_model(model) if model else ""
        if not policy:
            return None
        method = f"{policy}::{method_of_ability(ability)}"
        return AskedPolicy(policy, method, self._policies.is_mapped(model))

    def _bound(self, route: Route, parameter: str) -> str:
        """The class that a parameter of a route is bound to, by the type that its action takes."""
        if route.kind != "controller" or parameter not in {one.name for one in route.parameters}:
            return ""
        owner, _, method = route.action.partition("@")
        for _ in range(_MOST_PARENTS):
            taken = self._parameters.get(f"{owner}::{method or _INVOKED}")
            if taken is not None:
                return next((str(p["type"]) for p in taken if _is_called(p, parameter)), "")
            owner = self._parents.get(owner, "")
        return ""


def _is_called(taken: Mapping[str, Any], parameter: str) -> bool:
    """Whether a parameter of a method is the one of a route, as Laravel matches their names."""
    name = str(taken["name"])
    return parameter in {name, snake(name)}
