"""File permissions, which close an installation's files to other users of the machine.

`.local` and each folder in it are closed to all users except their owner, so deeper files cannot be
reached. If root runs the installation, the group of the Postgres account may traverse the two
folders above its data, without listing or reading them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rag_assets.common.errors import ConfigurationError

_OTHER_USERS = 0o077
_TRAVERSE = stat.S_IXGRP
_POSTGRES = "postgres"


def keep_private(local: Path) -> None:
    """Create ``local`` if it is missing, and close it and its entries to other users.

    Raises:
        ConfigurationError: the folder cannot be created, or belongs to another user.
    """
    _require_owner(local.parent, 0)
    try:
        with suppress(FileExistsError):
            local.mkdir()
            local.chmod(stat.S_IRWXU)
    except OSError as error:
        raise ConfigurationError(
            f"{local} cannot be created: {error.strerror}",
            hint="set RAG_ASSETS_HOME to a folder of your own",
        ) from error
    _require_owner(local)
    group = _find_postgres_group(local)
    for path in _iter_entries(local):
        # A file system without permissions cannot close files; `list_exposed` reports them.
        with suppress(OSError):
            _close_to_others(path, group if _is_above_postgres(local, path) else None)


def _require_owner(folder: Path, *others: int) -> None:
    """Refuse a folder that belongs neither to this user nor to one of `others`.

    Root may use any folder.

    Args:
        others: user ids that may also own the folder.
    """
    try:
        owner = folder.stat().st_uid
    except OSError as error:
        raise ConfigurationError(
            f"{folder} cannot be opened: {error.strerror}",
            hint="set RAG_ASSETS_HOME to a folder of your own",
        ) from error
    if os.geteuid() != 0 and owner not in (os.geteuid(), *others):
        raise ConfigurationError(
            f"{folder} belongs to user {owner}, but only its owner may use an installation",
            hint="run as that user, or set RAG_ASSETS_HOME to a folder of your own",
        )


def list_exposed(local: Path) -> list[Path]:
    """Return the paths, ``local`` and its entries, that other users can read, list or traverse."""
    if not os.path.lexists(local):
        return []
    _require_owner(local)
    group = _find_postgres_group(local)
    return [
        path
        for path in _iter_entries(local)
        if _is_exposed(path, group if _is_above_postgres(local, path) else None)
    ]


def let_group_traverse(folder: Path, group: int) -> None:
    """Let a group traverse a folder that is closed to all users except its owner."""
    os.chown(folder, -1, group)
    folder.chmod(stat.S_IMODE(folder.stat().st_mode) | _TRAVERSE)


def _iter_entries(local: Path) -> Iterator[Path]:
    yield local
    for entry in os.scandir(local):
        if not entry.is_symlink():
            yield Path(entry.path)


def _is_above_postgres(local: Path, path: Path) -> bool:
    return path in (local, local / _POSTGRES)


def _find_postgres_group(local: Path) -> int | None:
    """Return the group of the Postgres account; None if Postgres has no account of its own."""
    if os.geteuid() != 0:
        return None
    try:
        data = (local / _POSTGRES / "data").stat()
    except OSError:
        return None
    return data.st_gid if data.st_uid != 0 else None


def _close_to_others(path: Path, group: int | None) -> None:
    if not _is_exposed(path, group):
        return
    path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~_OTHER_USERS)
    if group is not None:
        let_group_traverse(path, group)


def _is_exposed(path: Path, group: int | None) -> bool:
    status = path.lstat()
    others = stat.S_IMODE(status.st_mode) & _OTHER_USERS
    may_pass = group is not None and status.st_gid == group
    return others not in ((_TRAVERSE, 0) if may_pass else (0,))
