"""The folders to watch, and the tenants that read them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rag_assets.common.errors import ConfigurationError
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.model import Tenant


@dataclass(frozen=True, slots=True)
class TenantSources:
    """The folders of a tenant's sources.

    Attributes:
        folders: absolute paths, in which symbolic links are not yet resolved.
        told: whether changes in all sources are reported: changes in folders by the kernel, pushes
            and uploads by the catalog. Sources of other kinds must be listed to find changes.
    """

    folders: tuple[str, ...] = ()
    told: bool = False


def find_sources(record: TenantRecord, base: Path) -> TenantSources:
    """Return the sources of a tenant; empty if its configuration cannot be read.

    Args:
        record: the tenant.
        base: folder to which relative paths in the configuration refer.
    """
    try:
        tenant = Tenant.from_config(record.config)
    except ConfigurationError:
        return TenantSources()
    kinds = [(tenant.source_kind(source), source) for source in tenant.sources]
    folders = [folder for kind, source in kinds for folder in kind.watched(source)]
    return TenantSources(
        tuple(str(base / folder) for folder in folders),
        all(kind.tells(source) for kind, source in kinds),
    )


def readers_of_folders(tenants: Mapping[str, TenantSources]) -> dict[str, frozenset[str]]:
    """Return the tenants that read each folder, by path of the folder without symbolic links.

    Args:
        tenants: sources of the tenants, by tenant id.
    """
    found: dict[str, set[str]] = {}
    for tenant_id, sources in tenants.items():
        for folder in sources.folders:
            found.setdefault(os.path.realpath(folder), set()).add(tenant_id)
    return {folder: frozenset(readers) for folder, readers in found.items()}


def find_tenants(paths: Iterable[str], folders: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the tenants that read any of the paths.

    Args:
        paths: absolute paths.
        folders: see readers_of_folders.
    """
    known: set[str] = set()
    for path in paths:
        while path not in known:
            known.add(path)
            path = os.path.dirname(path)  # noqa: PTH120, PLW2901
    return {tenant for folder in known & folders.keys() for tenant in folders[folder]}


def outermost(folders: Iterable[str]) -> list[str]:
    """Return the folders that do not lie in another of them, because watching is recursive."""
    kept: list[str] = []
    for folder in sorted(folders, key=lambda path: Path(path).parts):
        if not kept or not lies_in(folder, kept[-1]):
            kept.append(folder)
    return kept


def lies_in(path: str, folder: str) -> bool:
    """Return whether a path is the folder itself or lies below it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
