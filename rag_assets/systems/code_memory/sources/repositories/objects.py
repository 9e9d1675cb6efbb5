"""The objects of a repository: commits, trees and blobs, by id.

libgit2's object database is opened with the folder of packs, not with a repository. It therefore
reads only packs, verifies each object by its id, and ignores configuration and alternates.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from rag_assets.common.errors import ListingFailed
from rag_assets.systems.code_memory.sources.repositories.folders import (
    RepositoryFolders,
    read_small,
)
from rag_assets.systems.code_memory.sources.repositories.loose import LooseObjects, ObjectKind

if TYPE_CHECKING:
    from pygit2 import Odb

_Read = TypeVar("_Read")
_KINDS: Final[dict[int, ObjectKind]] = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_MAX_META_BYTES = 64 << 20
_MAX_ALTERNATES_BYTES = 64 * 1024
_MAX_TAGS = 10
_HINT = "run `git fsck` to list damaged objects, and `git fetch --refetch` to fetch them again"


class Objects:
    """The objects in a repository.

    Args:
        folders: folders of the repository.

    Raises:
        ListingFailed: some objects are outside the repository, or are reached by links.
    """

    def __init__(self, folders: RepositoryFolders) -> None:
        self._folder = folders.common / "objects"
        self._packs: Odb | None = None
        _require_own(folders.common)
        self._loose = LooseObjects(self._folder)

    def size(self, oid: str, kind: ObjectKind) -> int:
        """Return the size of an object in bytes, without unpacking the object.

        Raises:
            ListingFailed: it is missing, damaged or of a different kind.
        """
        found, size = self._header(oid, kind)
        if found != kind:
            raise ListingFailed(f"the object {oid} is not a {kind}", hint=_HINT)
        return size

    def read(self, oid: str, kind: ObjectKind) -> bytes:
        """Return the content of an object, verified by its id.

        Raises:
            ListingFailed: it is missing, damaged, of a different kind, or too large for its kind.
        """
        size = self.size(oid, kind)
        if kind != "blob" and size > _MAX_META_BYTES:
            raise ListingFailed(
                f"the {kind} {oid} is larger than the limit of {_MAX_META_BYTES:,} bytes"
            )
        return self.read_sized(oid, kind)

    def read_sized(self, oid: str, kind: ObjectKind) -> bytes:
        """Return the content of an object whose kind and size `size` has verified; see read."""

        def content() -> bytes:
            if self._loose.holds(oid):
                return self._loose.read(oid).content
            return self._odb().read(oid)[1]

        return self._read_with_retry(oid, kind, content)

    def commit(self, oid: str) -> str:
        """Return the id of the commit that an id refers to, directly or through a tag.

        Raises:
            ListingFailed: it does not refer to a commit.
        """
        for _ in range(_MAX_TAGS):
            kind = self._kind(oid)
            if kind == "commit":
                return oid
            if kind != "tag":
                break
            oid = _read_header_line(self.read(oid, "tag"), b"object")
        raise ListingFailed(
            f"the object {oid} is not a commit", hint="set ref to a branch, a tag or a commit"
        )

    def tree(self, commit: str) -> str:
        """Return the id of a commit's tree."""
        return _read_header_line(self.read(commit, "commit"), b"tree")

    def expand_id(self, prefix: str) -> str | None:
        """Return the id with this prefix; None if no id or more than one id has it."""
        found = set(self._loose.beginning_with(prefix))
        for backend in self._odb().backends:
            try:
                found.add(str(backend.exists_prefix(prefix)))
            except KeyError:
                continue
            except ValueError:
                return None
        return found.pop() if len(found) == 1 else None

    def _kind(self, oid: str) -> ObjectKind | None:
        return self._header(oid, "commit")[0]

    def _header(self, oid: str, kind: ObjectKind) -> tuple[ObjectKind | None, int]:
        """Return an object's kind and size."""

        def header() -> tuple[ObjectKind | None, int]:
            if self._loose.holds(oid):
                loose = self._loose.header(oid)
                return loose.kind, loose.size
            found, size = self._odb().read_header(oid)
            return _KINDS.get(int(found)), int(size)

        return self._read_with_retry(oid, kind, header)

    def _read_with_retry(self, oid: str, kind: ObjectKind, reading: Callable[[], _Read]) -> _Read:
        """Return the result of a read; retry if the object was being written or packed."""
        try:
            return reading()
        except (KeyError, FileNotFoundError):
            self._loose.look_again()
        except Exception as error:
            raise _damage_error(oid, kind, error) from error
        try:
            return reading()
        except Exception as error:
            raise _damage_error(oid, kind, error) from error

    def _odb(self) -> Odb:
        if self._packs is None:
            import pygit2

            packs = pygit2.Odb()
            packs.add_backend(pygit2.OdbBackendPack(str(self._folder)), 1)
            self._packs = packs
        return self._packs


def _damage_error(oid: str, kind: ObjectKind, error: Exception) -> ListingFailed:
    reason = "missing" if isinstance(error, (KeyError, FileNotFoundError)) else "damaged"
    return ListingFailed(f"the {kind} {oid} is {reason}", hint=_HINT)


def _require_own(common: Path) -> None:
    """Refuse alternates: their objects belong to a different repository, with other readers."""
    if read_small(common, ["objects", "info", "alternates"], _MAX_ALTERNATES_BYTES):
        raise ListingFailed(
            f"the repository in {str(common)!r} borrows objects from a different repository"
            " (alternates), which is not supported",
            hint="run `git repack -a -d`, then delete objects/info/alternates",
        )


def _read_header_line(content: bytes, name: bytes) -> str:
    """Return the id in a header line of a commit or tag."""
    for line in content.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == name:
            return value.decode("ascii", "replace")
        if not line:
            break
    raise ListingFailed(f"a commit or tag has no line {name.decode()!r}", hint=_HINT)
