"""Tenants that hooks report as changed: a hook creates an empty file named like the tenant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

FOLDER: Final = "hooked"
"""Folder below the installation's own folder; each file in it has the name of a tenant."""


def hooked_folder(local: Path) -> Path:
    """Return the folder in which hooks create their files.

    Args:
        local: the installation's own folder.
    """
    return local / FOLDER


class HookedTenants:
    """Reads and removes the files that hooks have created.

    Args:
        local: the installation's own folder.
    """

    def __init__(self, local: Path) -> None:
        self._folder = hooked_folder(local)

    def take(self) -> frozenset[str]:
        """Return the tenants that hooks have reported since the last call.

        Raises:
            OSError: the folder cannot be read or changed.
        """
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 - names are all that is needed
        except FileNotFoundError:
            return frozenset()
        for name in names:
            # The files are removed before the result is used, so that hooks that run later are seen
            # at the next call.
            (self._folder / name).unlink(missing_ok=True)
        return frozenset(names)
