"""Errors of code memory, each with the problem document with which the API answers."""

from __future__ import annotations

from rag_assets.common.errors import ProblemKind, RagAssetsError


class NoCodeMemory(RagAssetsError):
    """The project has no code memory: all its tenants have other profiles."""

    problem_kind = ProblemKind(409, "no-code-memory", "The project has no code memory")
