"""Errors of experience, each with the kind of problem that the API returns."""

from __future__ import annotations

from rag_assets.common.errors import ProblemKind, RagAssetsError


class NotVerified(RagAssetsError):
    """An entry has no verified solution; no part of it is stored."""

    problem_kind = ProblemKind(422, "not-verified", "The entry has no verified solution")


class EntryDiffers(RagAssetsError):
    """A different entry was captured with the same external id."""

    problem_kind = ProblemKind(409, "entry-differs", "Another entry has this external id")


class ProblemsDiffer(RagAssetsError):
    """Two patterns solve different problems, and their merge was not confirmed."""

    problem_kind = ProblemKind(409, "problems-differ", "The patterns solve different problems")


class UnknownExperience(RagAssetsError):
    """The tenant has no entry, pattern, question or checkpoint with this id."""

    problem_kind = ProblemKind(
        404, "unknown-experience", "No entry, pattern, question or checkpoint has this id"
    )


class NoExperience(RagAssetsError):
    """The tenant does not store experience, because it has a different profile."""

    problem_kind = ProblemKind(409, "no-experience", "The tenant does not store experience")
