"""Tenants whose repositories a hook of git tells of: it makes an empty file, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

FOLDER: Final = "hooked"
"""Below the installation's own folder; each file is named as a tenant."""


def hooked_folder(local: Path) -> Path:
    """Where hooks make their files.

    Args:
        local: the installation's own folder.
    """
    return local / FOLDER


class HookedTenants:
    """Takes the files that hooks have made.

    Args:
        local: the installation's own folder.
    """

    def __init__(self, local: Path) -> None:
        self._folder = hooked_folder(local)

    def take(self) -> frozenset[str]:
        """The tenants that hooks have told of since it was called last.

        Raises:
            OSError: the folder cannot be read or changed.
        """
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 - names are all that is needed
        except FileNotFoundError:
            return frozenset()
        for name in names:
            # First, so that a hook that runs from now on is seen the next time.
            (self._folder / name).unlink(missing_ok=True)
        return frozenset(names)
