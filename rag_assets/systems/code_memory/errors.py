"""Errors of code memory, with the problem that the API answers for each."""

from __future__ import annotations

from rag_assets.common.errors import ProblemKind, RagAssetsError


class NoCodeMemory(RagAssetsError):
    """The project lacks a code memory: its tenants have other profiles."""

    problem_kind = ProblemKind(409, "no-code-memory", "The project has no code memory")
