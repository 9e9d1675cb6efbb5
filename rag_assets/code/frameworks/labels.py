"""What the definitions of a repository are, by all frameworks that its files speak of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_assets.code.model import FileFacts
from rag_assets.code.source_types import SourceType


def kinds_of(files: Sequence[FileFacts]) -> Mapping[tuple[str, str], SourceType]:
    """The source type of each definition that has another one than its place tells.

    Args:
        files: of one repository.

    Returns:
        types by path and qualified name.
    """
    return {}
