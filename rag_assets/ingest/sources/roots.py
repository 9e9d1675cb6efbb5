"""Which folders sources may read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rag_assets.common.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Roots:
    """The folders that roots of sources may lie in, and those that they may not touch.

    Attributes:
        allowed: folders that a root must lie in or be; none: any folder will do.
        forbidden: the project's own state; no root may lie in, be or contain any of it.
    """

    allowed: tuple[Path, ...] = ()
    forbidden: tuple[Path, ...] = ()

    def require(self, source: str, root: Path) -> None:
        """Refuse a root that may not be read.

        Args:
            source: the source's given name.
            root: absolute and resolved.

        Raises:
            ConfigurationError: the root may not be used.
        """
        allowed = [folder.resolve() for folder in self.allowed]
        if allowed and not any(root.is_relative_to(folder) for folder in allowed):
            raise ConfigurationError(
                f"source {source}: {root} lies in none of the allowed roots",
                hint="move the documents, or add a folder above them to RAG_ASSETS_ALLOWED_ROOTS",
            )
        for state in (folder.resolve() for folder in self.forbidden):
            if root.is_relative_to(state) or state.is_relative_to(root):
                raise ConfigurationError(
                    f"source {source}: {root} overlaps the project's own state in {state}",
                    hint="name a folder that holds documents only, such as one beside it",
                )
