"""Mounted file systems, and which of them report every change."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rag_assets.watch.folders import lies_in

_MOUNTS = Path("/proc/self/mountinfo")
_LOCAL = frozenset(
    (
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "bcachefs", "f2fs", "jfs", "reiserfs"),
        *("tmpfs", "ramfs", "overlay", "aufs", "vfat", "exfat", "msdos", "ntfs", "ntfs3"),
        *("nilfs2", "hfsplus", "erofs", "squashfs", "iso9660", "udf"),
    )
)
"""File systems that only this machine changes; others, such as NFS, are changed by other machines
too."""
_ESCAPED = re.compile(r"\\([0-7]{3})")


class Mounts:
    """Mounted file systems.

    Args:
        listed: text in the format of proc_pid_mountinfo(5); by default, the mounts of this process.
    """

    def __init__(self, listed: str | None = None) -> None:
        if listed is None:
            listed = _MOUNTS.read_text(errors="surrogateescape") if _MOUNTS.exists() else ""
        # If several file systems are mounted on one path, the last mount counts.
        self._kinds = dict(_mount(line) for line in listed.splitlines())
        self._others = [at for at, kind in self._kinds.items() if kind not in _LOCAL]

    def tell_of_changes(self, folder: str) -> bool:
        """Return whether this machine's kernel reports every change in a folder.

        This is the case if the file system of the folder, and all file systems mounted below it,
        are local.

        Args:
            folder: absolute path without symbolic links.
        """
        own = folder
        while own not in self._kinds and own != os.sep:
            own = os.path.dirname(own)  # noqa: PTH120
        local = self._kinds.get(own) in _LOCAL
        return local and not any(lies_in(other, folder) for other in self._others)


def _mount(line: str) -> tuple[str, str]:
    """Return the mount point and the kind of a file system."""
    before, _, after = line.partition(" - ")
    point = _ESCAPED.sub(lambda escaped: chr(int(escaped[1], 8)), before.split(" ")[4])
    return point, after.split(" ", 1)[0]
