"""Errors of team guidelines, each with the kind of problem that the API returns."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.common.errors import NotOptedIn, ProblemKind, RagAssetsError


class GuidelinesOff(NotOptedIn):
    """Guidelines are switched off for the organization."""

    problem_kind = ProblemKind(
        403,
        "feature-off",
        "The organization has its guidelines switched off",
        detail="an admin of the organization can switch them on",
    )

    @classmethod
    def from_organization(cls, organization: str | None) -> GuidelinesOff:
        """Return the error for a project of an organization."""
        return GuidelinesOff(
            f"organization {organization!r} has its guidelines switched off",
            hint=f"`rag-assets organizations put {organization} --guidelines` to switch them on",
        )


class TextRefused(RagAssetsError):
    """A plain text cannot be stored."""

    problem_kind = ProblemKind(422, "text-refused", "The text cannot be stored")

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(
            f"the text cannot be stored: {'; '.join(problems)}",
            hint="correct the text, then set it again",
        )
        self.problems = tuple(problems)


class VersionMissing(RagAssetsError):
    """A request replaces a text without stating the text's version."""

    problem_kind = ProblemKind(428, "version-missing", "The version to replace is not named")
