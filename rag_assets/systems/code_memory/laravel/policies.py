"""Policies that depend on other files: named by a policy map, or found by their location."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.policy_names import (
    asker_of,
    method_of,
    tried_policies,
    usual_policies,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A check against a policy that the checking file alone does not determine.

    Attributes:
        source: the definition that checks.
        target: the policy's method.
        path: the path of the file with the check.
        fact: its evidence.
        mapped: whether a policy map names the policy; otherwise its location determines it.
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
        mapped: policies that policy maps name, by model.
        declared: names of all classes in the repository.
    """

    mapped: Mapping[str, str]
    declared: frozenset[str]

    @classmethod
    def of(cls, files: Sequence[FileFacts]) -> Policies:
        """Return the policies in these files."""
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
        """Return a model's policy: from a map, else the first existing candidate, else ""."""
        tried = (name for name in tried_policies(model) if name in self.declared)
        return self.mapped.get(model) or next(tried, "")

    def is_mapped(self, model: str) -> bool:
        """Return whether a map names the policy of a model."""
        return model in self.mapped


def asked_elsewhere(files: Sequence[FileFacts]) -> dict[str, list[Asked]]:
    """Return the checks, by model, against policies that a single file does not determine.

    These are policies that a policy map names, and policies in locations that Laravel tries last.

    Args:
        files: the files of one repository.
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
    """Return those policies of models that are not among the usual candidates."""
    facts = [fact for one in files for fact in one.facts]
    asked = {str(fact.values.get("model", "")) for fact in facts if fact.kind == "authorizes"}
    found = {}
    for model in sorted(asked - {""}):
        policy = policies.of_model(model)
        if policy and policy not in usual_policies(model):
            found[model] = policy
    return found
