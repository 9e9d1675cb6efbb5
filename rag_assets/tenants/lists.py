"""Lists of further tenants that tenants.yaml refers to: protocol and content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rag_assets.common.errors import RagAssetsError


@dataclass(frozen=True, slots=True)
class ListedTenants:
    """The current content of a tenant list.

    Attributes:
        configs: configuration of each tenant by id, valid and with absolute paths.
        places: where each tenant is declared, for people.
        problems: errors in the list; tenants with an error are not in `configs`.
        kept: ids of tenants with an error, which stay as they are.
        complete: whether everything could be read; only then does a tenant that is not in the list
            count as removed.
    """

    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[RagAssetsError, ...] = ()
    kept: frozenset[str] = frozenset()
    complete: bool = True


class TenantList(Protocol):
    """Loads the tenants that a key of tenants.yaml names."""

    def __call__(self, written: Any, folder: Path, cache: Path | None) -> ListedTenants:
        """Return the tenants of the list.

        Args:
            written: the value of the key.
            folder: the folder of tenants.yaml, to which relative paths refer.
            cache: folder that caches parsed content.

        Raises:
            ConfigurationError: the value is not usable.
        """
        ...
