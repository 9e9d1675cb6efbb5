"""Names of Laravel's policies, and which of their methods decides about an ability.

Laravel derives a policy's name from the model. A single file is therefore enough to name the
policies that it checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rag_assets.ingest.chunking.model import Fact

_GUESSED: Final[Mapping[str, str]] = {
    "index": "viewAny",
    "show": "view",
    "create": "create",
    "store": "create",
    "edit": "update",
    "update": "update",
    "destroy": "delete",
}
"""The checked ability for each controller method that authorizes without naming an ability."""

_MODELS: Final = "Models"
_POLICIES: Final = "Policies"

OF_RESOURCES: Final = _GUESSED
"""The ability that `authorizeResource` checks for each controller method."""


def usual_policies(model: str) -> Iterator[str]:
    r"""Yield the usual policy classes of a model; Laravel tries these and others.

    Args:
        model: the qualified name, `App\Models\Billing\Invoice`.
    """
    *places, short = model.split("\\")
    if _MODELS not in places:
        yield from tried_policies(model)
        return
    at = places.index(_MODELS)
    root, inner = places[:at], places[at + 1 :]
    for place in dict.fromkeys((tuple(inner), ())):
        yield "\\".join((*root, _POLICIES, *place, f"{short}Policy"))


def tried_policies(model: str) -> Iterator[str]:
    """Return the classes that Laravel tries as a model's policy, in its order."""
    namespace, _, short = model.rpartition("\\")
    parts = namespace.split("\\") if namespace else []
    if f"\\{_MODELS}\\" in namespace:
        for place in (f"\\{_MODELS}\\{_POLICIES}\\", f"\\{_POLICIES}\\"):
            yield namespace.replace(f"\\{_MODELS}\\", place) + f"\\{short}Policy"
    for count in range(len(parts), 0, -1):
        yield "\\".join([*parts[:count], _POLICIES, f"{short}Policy"])


def get_authorizing_method(fact: Fact) -> str:
    """Return the definition that authorizes: the method that the fact names, else its symbol."""
    method = fact.values.get("method")
    return f"{fact.symbol.partition('::')[0]}::{method}" if method else fact.symbol


def find_policy_method(fact: Fact) -> str:
    """Return the policy method that decides; "" if it is unknown.

    Args:
        fact: a fact of the kind `authorizes`.
    """
    ability = str(fact.values.get("ability", ""))
    if ability:
        return method_of_ability(ability)
    method = fact.symbol.partition("::")[2]
    return _GUESSED.get(method, method)


def method_of_ability(ability: str) -> str:
    """Return the policy method that decides about an ability: `force-delete` to forceDelete."""
    first, *others = ability.replace("_", "-").split("-") if "-" in ability else [ability]
    return first + "".join(one[:1].upper() + one[1:] for one in others)
