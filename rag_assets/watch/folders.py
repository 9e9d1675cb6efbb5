"""The folders to watch, and the tenants that read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from rag_assets.common.errors import ConfigurationError
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.tenants.model import Tenant


def watched_folders(records: Iterable[TenantRecord], base: Path) -> dict[Path, frozenset[str]]:
    """The folders of all active tenants' sources that exist, with the tenants of each.

    Args:
        records: the tenants; one whose configuration cannot be read has none.
        base: what relative paths are relative to.
    """
    found: dict[Path, set[str]] = {}
    for record in records:
        if record.state == "ACTIVE":
            for folder in _folders_of(record, base):
                found.setdefault(folder, set()).add(record.id)
    return {folder: frozenset(tenants) for folder, tenants in found.items() if folder.is_dir()}


def _folders_of(record: TenantRecord, base: Path) -> list[Path]:
    try:
        tenant = Tenant.from_config(record.config)
    except ConfigurationError:
        return []
    folders = [tenant.source_kind(source).folder_of(source) for source in tenant.sources]
    return [(base / folder.expanduser()).resolve() for folder in folders if folder is not None]


def tenants_of(paths: Iterable[str], folders: Mapping[Path, frozenset[str]]) -> set[str]:
    """The tenants that read any of the paths.

    Args:
        paths: absolute.
        folders: see watched_folders.
    """
    parents = {Path(path).parent for path in paths} | {Path(path) for path in paths}
    known = {ancestor for parent in parents for ancestor in (parent, *parent.parents)}
    return {tenant for folder in known & folders.keys() for tenant in folders[folder]}


def outermost(folders: Iterable[Path]) -> list[Path]:
    """The folders without those that lie in another: watching is recursive."""
    kept: list[Path] = []
    for folder in sorted(folders):
        if not any(folder.is_relative_to(other) for other in kept):
            kept.append(folder)
    return kept
