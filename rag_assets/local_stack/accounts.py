"""The system account for Postgres, which refuses to run as root."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
from pathlib import Path

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.local_stack.private_files import let_group_pass
from rag_assets.local_stack.processes import Account

_PREFERRED = ("postgres", "pgserver")
_LAST_RESORT = "nobody"


def server_account(data: Path) -> Account | None:
    """Return the account for a server over ``data``; None, for our own, unless we are root.

    For existing data, it is the owner of the data. Otherwise it is an account for Postgres, which
    is created if the machine lacks one, or ``nobody`` if none can be created.

    Raises:
        ServiceUnavailable: the data belongs to another user and we are not root.
    """
    owner = data.stat() if data.exists() else None
    if os.geteuid() != 0:
        if owner is not None and owner.st_uid != os.geteuid():
            raise ServiceUnavailable(
                f"Postgres can't use {data}: it belongs to user {owner.st_uid}",
                hint="run rag-assets as that user, which can be root",
            )
        return None
    if owner is not None and owner.st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    entry = _entry(_PREFERRED) or _create(_PREFERRED[-1]) or _entry((_LAST_RESORT,))
    if entry is None:
        raise ServiceUnavailable(
            "Postgres refuses to run as root, and no other account is available for it",
            hint="run rag-assets as a different user, or set RAG_ASSETS_DATABASE_URL",
        )
    return Account(entry.pw_uid, entry.pw_gid)


def _entry(names: tuple[str, ...]) -> pwd.struct_passwd | None:
    return next((entry for entry in pwd.getpwall() if entry.pw_name in names), None)


def _create(name: str) -> pwd.struct_passwd | None:
    useradd = shutil.which("useradd")
    if useradd is None:
        return None
    command = [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", name]
    subprocess.run(command, check=False, capture_output=True)  # noqa: S603  (fixed arguments)
    return _entry((name,))


def open_path_to(path: Path, account: Account) -> None:
    """Let an account traverse the folders above ``path``, without listing or reading them.

    Without this, a project under /root would be unreachable for the account. The function runs only
    as root, and adds only missing permissions. A private folder stays private: only the account's
    group may traverse it. If the path contains symbolic links, the folders that contain the links
    are opened as well.
    """
    for folder in dict.fromkeys((*path.absolute().parents, *path.resolve().parents)):
        found = folder.stat()
        if found.st_mode & stat.S_IXOTH:
            continue
        if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO) == 0:
            let_group_pass(folder, account.gid)
        elif found.st_gid != account.gid or not found.st_mode & stat.S_IXGRP:
            folder.chmod(stat.S_IMODE(found.st_mode) | stat.S_IXOTH)


def open_programs(folder: Path, account: Account) -> None:
    """Let other accounts read and run files in ``folder``, which root's strict umask prevents."""
    open_path_to(folder, account)
    for path in (folder, *folder.rglob("*")):
        if path.is_symlink():
            continue
        mode = path.stat().st_mode
        wanted = mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
        if wanted != mode:
            path.chmod(wanted)
