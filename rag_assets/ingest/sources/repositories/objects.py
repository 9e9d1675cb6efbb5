"""The objects of a repository: commits, trees and blobs, by id.

libgit2's database of objects is given folders one by one, as opposed to a repository: it then
reads packs and loose objects, verifies each by its id, and neither configuration nor alternates.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.sources.repositories.folders import RepositoryFolders, read_small

if TYPE_CHECKING:
    from pygit2 import Odb

ObjectKind: TypeAlias = Literal["commit", "tree", "blob", "tag"]

_KINDS: Final[dict[int, ObjectKind]] = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_MAX_META_BYTES = 64 << 20
_MAX_ALTERNATES_BYTES = 64 * 1024
_MAX_TAGS = 10
_HINT = "`git fsck` in the repository says what is damaged; `git fetch --refetch` gets it again"


class Objects:
    """The objects that a repository holds.

    Args:
        folders: of the repository.

    Raises:
        ListingFailed: they are partly elsewhere, or reached by links.
    """

    def __init__(self, folders: RepositoryFolders) -> None:
        self._folder = folders.common / "objects"
        self._database: Odb | None = None
        self._require_own(folders.common)

    def size(self, oid: str, kind: ObjectKind) -> int:
        """Bytes of an object, without unpacking it.

        Raises:
            ListingFailed: it is missing, damaged or of another kind.
        """
        try:
            found, size = self._odb().read_header(oid)
        except Exception as error:
            raise self._damaged(oid, kind, error) from error
        if _KINDS.get(int(found)) != kind:
            raise ListingFailed(f"the object {oid} is no {kind}", hint=_HINT)
        return int(size)

    def read(self, oid: str, kind: ObjectKind) -> bytes:
        """The content of an object, verified by its id.

        Raises:
            ListingFailed: it is missing, damaged, of another kind, or too large for its kind.
        """
        size = self.size(oid, kind)
        if kind != "blob" and size > _MAX_META_BYTES:
            raise ListingFailed(f"the {kind} {oid} is larger than {_MAX_META_BYTES} bytes")
        try:
            return self._odb().read(oid)[1]
        except Exception as error:
            raise self._damaged(oid, kind, error) from error

    def commit(self, oid: str) -> str:
        """The id of the commit that an id names: its own, or that of the tag's.

        Raises:
            ListingFailed: it names no commit.
        """
        for _ in range(_MAX_TAGS):
            kind = self._kind(oid)
            if kind == "commit":
                return oid
            if kind != "tag":
                break
            oid = _header(self.read(oid, "tag"), b"object")
        raise ListingFailed(f"{oid} is no commit", hint="name a branch, a tag or a commit")

    def tree(self, commit: str) -> str:
        """The id of a commit's tree."""
        return _header(self.read(commit, "commit"), b"tree")

    def expanded(self, prefix: str) -> str | None:
        """The id that begins so; None if there is none, or more than one."""
        for backend in self._odb().backends:
            try:
                return str(backend.exists_prefix(prefix))
            except (KeyError, ValueError, OSError):
                continue
        return None

    def _kind(self, oid: str) -> ObjectKind | None:
        try:
            return _KINDS.get(int(self._odb().read_header(oid)[0]))
        except Exception as error:
            raise self._damaged(oid, "commit", error) from error

    def _odb(self) -> Odb:
        if self._database is None:
            import pygit2

            database = pygit2.Odb()
            path = str(self._folder)
            database.add_backend(pygit2.OdbBackendPack(path), 1)
            database.add_backend(pygit2.OdbBackendLoose(path, 0, False), 2)
            self._database = database
        return self._database

    def _damaged(self, oid: str, kind: ObjectKind, error: Exception) -> ListingFailed:
        reason = "missing" if isinstance(error, KeyError) else "damaged"
        return ListingFailed(f"the {kind} {oid} is {reason}", hint=_HINT)

    def _require_own(self, common: Path) -> None:
        """Refuse objects elsewhere: those of another repository, which others may read."""
        if read_small(common, ["objects", "info", "alternates"], _MAX_ALTERNATES_BYTES):
            raise ListingFailed(
                f"the repository in {str(common)!r} borrows objects of another one (alternates)",
                hint="`git repack -a -d`, then remove objects/info/alternates",
            )
        if _holds_links(self._folder):
            raise ListingFailed(
                f"a link is among the objects in {str(self._folder)!r}",
                hint="copy what it leads to in its place",
            )


def _holds_links(folder: Path) -> bool:
    """Whether a folder of objects is, or holds, a link."""
    waiting = [os.fspath(folder)]
    if folder.is_symlink():
        return True
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except FileNotFoundError:
            continue  # `git gc` removed it meanwhile.
        except OSError as error:
            raise ListingFailed(f"{str(folder)!r} cannot be listed: {error.strerror}") from error
    return False


def _header(content: bytes, name: bytes) -> str:
    """The id in a header of a commit or tag."""
    for line in content.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == name:
            return value.decode("ascii", "replace")
        if not line:
            break
    raise ListingFailed(f"a commit or tag has no {name.decode()}", hint=_HINT)
