"""Which method of which policy answers when something is authorized, as Laravel finds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rag_assets.code.model import Fact, FileFacts

_GUESSED: Final[Mapping[str, str]] = {
    "index": "viewAny",
    "show": "view",
    "create": "create",
    "store": "create",
    "edit": "update",
    "update": "update",
    "destroy": "delete",
}
"""Abilities by the methods of a controller that ask without telling one."""

OF_RESOURCES: Final = _GUESSED
"""What `authorizeResource` asks of the methods of a controller."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A place that asks a policy which the map of policies names.

    Attributes:
        source: the definition that asks.
        target: the policy's method.
        path: of the file that asks.
        fact: that says so.
    """

    source: str
    target: str
    path: str
    fact: Fact


def policies_by_name(model: str) -> Iterator[str]:
    r"""The classes among which Laravel looks for a model's policy, those it prefers first.

    Args:
        model: qualified, `App\Models\Billing\Invoice`.
    """
    namespace, _, short = model.rpartition("\\")
    parts = namespace.split("\\") if namespace else []
    if "\\Models\\" in namespace:
        for place in ("\\Models\\Policies\\", "\\Policies\\"):
            yield namespace.replace("\\Models\\", place) + f"\\{short}Policy"
    for count in range(len(parts), 0, -1):
        yield "\\".join([*parts[:count], "Policies", f"{short}Policy"])


def asker_of(fact: Fact) -> str:
    """The definition that asks: what a fact stands in, or the method that it is about."""
    method = fact.values.get("method")
    return f"{fact.symbol.partition('::')[0]}::{method}" if method else fact.symbol


def method_of(fact: Fact) -> str:
    """The method that answers; "" where nothing tells.

    Args:
        fact: `authorizes`.
    """
    ability = str(fact.values.get("ability", ""))
    if not ability:
        method = fact.symbol.partition("::")[2]
        return _GUESSED.get(method, method)
    first, *others = ability.replace("_", "-").split("-") if "-" in ability else [ability]
    return first + "".join(one[:1].upper() + one[1:] for one in others)


def asked_of_mapped(files: Sequence[FileFacts]) -> dict[str, list[Asked]]:
    """Who asks the policies that a map names and the names of classes do not tell, by model.

    Args:
        files: of one repository.
    """
    mapped = {
        str(fact.values["model"]): str(fact.values["policy"])
        for one in files
        for fact in one.facts
        if fact.kind == "policy_of"
    }
    mapped = {
        model: policy for model, policy in mapped.items() if policy not in policies_by_name(model)
    }
    found: dict[str, list[Asked]] = {}
    for one in files if mapped else ():
        for fact in one.facts:
            model = str(fact.values.get("model", "")) if fact.kind == "authorizes" else ""
            method = method_of(fact) if model in mapped else ""
            if method:
                target = f"{mapped[model]}::{method}"
                found.setdefault(model, []).append(Asked(asker_of(fact), target, one.path, fact))
    return found
