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

_MODELS: Final = "Models"
_POLICIES: Final = "Policies"

OF_RESOURCES: Final = _GUESSED
"""What `authorizeResource` asks of the methods of a controller."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A place that asks a policy which its own file does not tell.

    Attributes:
        source: the definition that asks.
        target: the policy's method.
        path: of the file that asks.
        fact: that says so.
        mapped: whether a map names the policy; else its place does.
    """

    source: str
    target: str
    path: str
    fact: Fact
    mapped: bool


def usual_policies(model: str) -> Iterator[str]:
    r"""The classes that are a model's policy by their place, of those among which Laravel looks.

    Args:
        model: qualified, `App\Models\Billing\Invoice`.
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
    """The classes among which Laravel looks for a model's policy, those it prefers first."""
    namespace, _, short = model.rpartition("\\")
    parts = namespace.split("\\") if namespace else []
    if f"\\{_MODELS}\\" in namespace:
        for place in (f"\\{_MODELS}\\{_POLICIES}\\", f"\\{_POLICIES}\\"):
            yield namespace.replace(f"\\{_MODELS}\\", place) + f"\\{short}Policy"
    for count in range(len(parts), 0, -1):
        yield "\\".join([*parts[:count], _POLICIES, f"{short}Policy"])


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


def asked_elsewhere(files: Sequence[FileFacts]) -> dict[str, list[Asked]]:
    """Who asks the policies that each file alone does not tell, by model.

    Those are the policies that a map names, and those in places that Laravel tries last.

    Args:
        files: of one repository.
    """
    mapped = _mapped(files)
    policies = _policies(files, mapped)
    found: dict[str, list[Asked]] = {}
    for one in files if policies else ():
        for fact in one.facts:
            model = str(fact.values.get("model", "")) if fact.kind == "authorizes" else ""
            method = method_of(fact) if model in policies else ""
            if method:
                target = f"{policies[model]}::{method}"
                asked = Asked(asker_of(fact), target, one.path, fact, model in mapped)
                found.setdefault(model, []).append(asked)
    return found


def _mapped(files: Sequence[FileFacts]) -> dict[str, str]:
    return {
        str(fact.values["model"]): str(fact.values["policy"])
        for one in files
        for fact in one.facts
        if fact.kind == "policy_of"
    }


def _policies(files: Sequence[FileFacts], mapped: Mapping[str, str]) -> dict[str, str]:
    """The policies of models that are none of their usual ones."""
    facts = [fact for one in files for fact in one.facts]
    declared = {fact.symbol for fact in facts if fact.kind == "declares"}
    asked = {str(fact.values.get("model", "")) for fact in facts if fact.kind == "authorizes"}
    found = {}
    for model in sorted(asked - {""}):
        tried = (name for name in tried_policies(model) if name in declared)
        policy = mapped.get(model) or next(tried, "")
        if policy and policy not in usual_policies(model):
            found[model] = policy
    return found
