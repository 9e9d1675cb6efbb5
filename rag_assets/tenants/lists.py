"""Lists of tenants beside tenants.yaml: what tells them, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rag_assets.common.errors import RagAssetsError


@dataclass(frozen=True, slots=True)
class ListedTenants:
    """What a list says by now.

    Attributes:
        configs: configuration of each tenant by id, valid and with absolute paths.
        places: where each is declared, for people.
        problems: what is wrong; tenants that one concerns are not in `configs`.
        kept: ids of tenants that one concerns, which stay as they are.
        complete: whether everything could be read: only then is a tenant that is missing gone.
    """

    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[RagAssetsError, ...] = ()
    kept: frozenset[str] = frozenset()
    complete: bool = True


class TenantList(Protocol):
    """Reads the tenants that a key of tenants.yaml names."""

    def __call__(self, written: Any, folder: Path, cache: Path | None) -> ListedTenants:
        """The tenants.

        Args:
            written: the value of the key.
            folder: of tenants.yaml, which relative paths begin in.
            cache: folder that keeps what was parsed.

        Raises:
            ConfigurationError: the value is not usable.
        """
        ...
