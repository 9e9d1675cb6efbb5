"""Roots of sources: the folders that may be read, and the identity of a root's folder."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from rag_assets.common.errors import ConfigurationError, ListingFailed
from rag_assets.ingest.sources.safe_files import open_root

MOST_MOUNTS: Final = 1_000
"""Maximum number of mount points below a root that are remembered; snapshots may exceed it."""


@dataclass(frozen=True, slots=True)
class FolderIdentity:
    """Identifies a folder, to distinguish it from any other folder at the same path.

    The device number is not part of the identity, since it may change whenever the machine starts.

    Attributes:
        inode: number of the folder in its file system; 0 to match any folder of the file
            system.
        file_system: the id of the file system (f_fsid of statvfs); 0 if unknown.
    """

    inode: int
    file_system: int

    @classmethod
    def of(cls, descriptor: int) -> FolderIdentity:
        """Return the identity of an open folder."""
        return cls(os.fstat(descriptor).st_ino, os.fstatvfs(descriptor).f_fsid)

    @classmethod
    def at(cls, place: Path) -> FolderIdentity | None:
        """Return the identity of the folder at a path without links; None if it is missing."""
        try:
            descriptor = open_root(place)
        except OSError:
            return None
        try:
            return cls.of(descriptor)
        finally:
            os.close(descriptor)

    def is_same(self, other: FolderIdentity) -> bool:
        """Return whether both may be the same folder; unknown parts (0) are not compared."""
        inodes = {self.inode, other.inode} - {0}
        file_systems = {self.file_system, other.file_system} - {0}
        return len(inodes) <= 1 and len(file_systems) <= 1

    def as_file_system(self) -> FolderIdentity:
        """Return the identity of the file system alone or, if its id is unknown, of the folder."""
        return replace(self, inode=0) if self.file_system else self


def folders_as_json(folders: Mapping[str, FolderIdentity]) -> list[list[Any]]:
    """Convert identities by path to JSON; a path may contain bytes that are not UTF-8."""
    return [
        [quote_from_bytes(os.fsencode(path)), folder.inode, folder.file_system]
        for path, folder in sorted(folders.items())
    ]


def folders_from_json(folders: Iterable[Sequence[Any]]) -> dict[str, FolderIdentity]:
    """Convert JSON back to identities by path; see folders_as_json."""
    return {os.fsdecode(unquote_to_bytes(path)): FolderIdentity(*at) for path, *at in folders}


@dataclass(frozen=True, slots=True)
class Roots:
    """The folders that may contain roots of sources, and folders that roots must not touch.

    Attributes:
        allowed: folders that must contain or be a root; empty: any folder.
        forbidden: folders with the project's own state; no root may lie in, be or contain any
            of them.
    """

    allowed: tuple[Path, ...] = ()
    forbidden: tuple[Path, ...] = ()

    def locate(self, source: str, root: Path, *, follow_link: bool) -> Path:
        """Return the folder that a root stands for; its path keeps the links that are not followed.

        Links are followed for sources that request it, and between allowed roots. The code that
        opens the folder does not follow links, so a link that is created later is refused as well.

        Args:
            source: the source's given name.
            root: absolute path of the root.
            follow_link: whether the source requests it.

        Raises:
            ConfigurationError: the root must not be used.
        """
        real = Path(os.path.realpath(root))
        self.require(source, real)
        return real if follow_link or self.allowed else without_system_link(root)

    def require(self, source: str, root: Path) -> None:
        """Refuse a root that must not be read.

        Args:
            source: the source's given name.
            root: absolute and resolved path of the root.

        Raises:
            ConfigurationError: the root must not be used.
        """
        allowed = [folder.resolve() for folder in self.allowed]
        if allowed and not any(root.is_relative_to(folder) for folder in allowed):
            raise ConfigurationError(
                f"source {source}: the root {root} lies in none of the allowed roots",
                hint="move the documents into an allowed root, or add a folder that contains them"
                " to RAG_ASSETS_ALLOWED_ROOTS",
            )
        for state in (folder.resolve() for folder in self.forbidden):
            if root.is_relative_to(state) or state.is_relative_to(root):
                raise ConfigurationError(
                    f"source {source}: the root {root} overlaps the project's own state in {state}",
                    hint="choose a folder outside of this state that contains only documents",
                )


def without_system_link(root: Path) -> Path:
    """Resolve a link in `/`, such as /tmp or /home: only the superuser can create one.

    A root that is itself such a link is returned unchanged.
    """
    normal = Path(os.path.normpath(root))
    top = Path(*normal.parts[:2])
    below = normal.parts[2:]
    return Path(os.path.realpath(top), *below) if below and top.is_symlink() else normal


def is_reached_by_link(root: Path) -> bool:
    """Return whether a root from Roots.locate, or a folder above that root, is a link."""
    return os.path.realpath(root) != str(root)


def require_no_link(root: Path) -> None:
    """Raise an error if a root is reached by a link; see is_reached_by_link.

    Raises:
        ListingFailed: the root is reached by a link.
    """
    if is_reached_by_link(root):
        real = os.path.realpath(root)
        raise ListingFailed(
            f"the root {str(root)!r} is a link, or lies below a link, and leads to {real!r}",
            hint="to read that folder, set it as the root in tenants.yaml, or set"
            " `follow_root_link: true` for the source",
        )


def home_of_owner() -> Path:
    """Return the home folder of the owner of this process, as the user database states it.

    The variable HOME is not used, since it may differ between a shell and a service.

    Raises:
        ConfigurationError: the user is not in the user database.
    """
    try:
        return Path(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
    except KeyError:
        raise ConfigurationError(
            f"'~' cannot be resolved: user {os.getuid()} is not in the user database",
            hint="set the absolute path of the folder instead",
        ) from None
