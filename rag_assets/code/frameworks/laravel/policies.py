"""Policies that are asked, where other files tell which: a map of policies, or their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_assets.code.model import Fact, FileFacts
from rag_assets.code.policy_names import asker_of, method_of, tried_policies, usual_policies


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


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of a repository.

    Attributes:
        mapped: those that maps name, by model.
        declared: all classes that there are.
    """

    mapped: Mapping[str, str]
    declared: frozenset[str]

    @classmethod
    def of(cls, files: Sequence[FileFacts]) -> Policies:
        """The policies of files."""
        facts = [fact for one in files for fact in one.facts]
        return cls(
            {
                str(fact.values["model"]): str(fact.values["policy"])
                for fact in facts
                if fact.kind == "policy_of"
            },
            frozenset(fact.symbol for fact in facts if fact.kind == "declares"),
        )

    def of_model(self, model: str) -> str:
        """The policy of a model: a map's, else the first there is among its places; "" for none."""
        tried = (name for name in tried_policies(model) if name in self.declared)
        return self.mapped.get(model) or next(tried, "")

    def is_mapped(self, model: str) -> bool:
        """Whether a map names the policy of a model."""
        return model in self.mapped


def asked_elsewhere(files: Sequence[FileFacts]) -> dict[str, list[Asked]]:
    """Who asks the policies that each file alone does not tell, by model.

    Those are the policies that a map names, and those in places that Laravel tries last.

    Args:
        files: of one repository.
    """
    held = Policies.of(files)
    mapped = held.mapped
    policies = _unusual(files, held)
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


def _unusual(files: Sequence[FileFacts], policies: Policies) -> dict[str, str]:
    """The policies of models that are none of their usual ones."""
    facts = [fact for one in files for fact in one.facts]
    asked = {str(fact.values.get("model", "")) for fact in facts if fact.kind == "authorizes"}
    found = {}
    for model in sorted(asked - {""}):
        policy = policies.of_model(model)
        if policy and policy not in usual_policies(model):
            found[model] = policy
    return found
