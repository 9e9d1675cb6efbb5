"""Walk a folder to which other processes may write at the same time.

The walk does not follow links and never recurses. It keeps a bounded number of descriptors open,
and the names of one folder in memory. If anything cannot be listed, the walk ends with
ListingFailed. It never writes, so a folder may be read-only.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.sources.disk import (
    MAX_MOUNTS,
    FolderIdentity,
    open_regular,
    open_root,
    open_subfolder,
    require_no_link,
)
from rag_assets.ingest.sources.globs import (
    MAX_GITIGNORE_BYTES,
    GlobRules,
    compile_gitignore,
    compile_globs,
)

GITIGNORE = ".gitignore"
_ALWAYS_SKIPPED = frozenset({".git"})
_MAX_OPEN_FOLDERS = (
    64  # number of open descriptors; deeper folders are opened again on the way back
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Rules that select the files of a folder.

    Attributes:
        include: rules for wanted files; a file is wanted if they match it, or a folder above
            it.
        ignored: rules with a lower priority than every .gitignore.
        repositories: whether sub-folders that are separate repositories are entered.
    """

    include: GlobRules
    exclude: GlobRules
    gitignore: bool
    ignored: GlobRules | None = None
    repositories: bool = True

    @classmethod
    def from_globs(
        cls, include: Sequence[str], exclude: Sequence[str], *, gitignore: bool
    ) -> Selection:
        """Build a selection from globs, which ignore the case of ASCII letters."""
        return cls(
            compile_globs(include, ignore_case=True),
            compile_globs(exclude, ignore_case=True),
            gitignore,
        )


@dataclass(frozen=True, slots=True)
class _GitignoreRules:
    """The rules of one .gitignore, and a link to the rules from the folders above.

    Attributes:
        base: length in bytes of the path of the .gitignore's folder, including the final slash.
    """

    rules: GlobRules
    base: int
    above: _GitignoreRules | None

    def is_ignored(self, folder: bytes, name: bytes, *, is_folder: bool) -> bool:
        """Return whether the deepest .gitignore with a rule for the entry ignores it."""
        scope: _GitignoreRules | None = self
        while scope is not None:
            verdict = scope.rules.decide(folder[scope.base :], name, is_folder=is_folder)
            if verdict is not None:
                return verdict
            scope = scope.above
        return False


@dataclass(slots=True)
class _Folder:
    """A folder on the path from the root to the current folder."""

    name: str
    descriptor: int
    device: int
    is_included: bool
    ignores: _GitignoreRules | None
    pending: list[str] = field(default_factory=list)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def walk_root(
    root: Path, selection: Selection, folders: dict[str, FolderIdentity] | None = None
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the wanted regular files below a folder, with POSIX paths, in a stable order.

    Links are not followed; files that vanish during the walk are skipped.

    Args:
        folders: receives, by path, the identities of the root (path "") and of the mount points
            below it.

    Raises:
        ListingFailed: something could not be listed, or was replaced during the walk.
    """
    descriptor = _open_root(root)
    walk = _Walk(descriptor, selection, {} if folders is None else folders)
    try:
        identity = os.fstat(descriptor)
        yield from walk.run()
        reopened = _open_root(root)
        try:
            if not os.path.samestat(identity, os.fstat(reopened)):
                raise ListingFailed("the root was replaced while it was listed")
        finally:
            os.close(reopened)
    finally:
        walk.close()


class _Walk:
    """The state of one walk: the stack of folders from the root to the current folder."""

    def __init__(self, root: int, selection: Selection, folders: dict[str, FolderIdentity]) -> None:
        self._selection = selection
        self._folders = folders
        ignores = None if selection.ignored is None else _GitignoreRules(selection.ignored, 0, None)
        device = os.fstat(root).st_dev
        folders[""] = FolderIdentity.from_descriptor(root)
        self._stack = [_Folder("", root, device, is_included=False, ignores=ignores)]

    def close(self) -> None:
        while self._stack:
            self._stack.pop().close()

    def run(self) -> Iterator[tuple[str, os.stat_result]]:
        yield from self._iter_files()
        while self._stack:
            if not self._stack[-1].pending:
                self._stack.pop().close()
            elif self._descend(self._stack[-1].pending.pop()):
                yield from self._iter_files()

    def _join_path(self) -> str:
        """Return the path of the current folder below the root, empty or ending in a slash."""
        return "".join(f"{folder.name}/" for folder in self._stack[1:])

    def _descend(self, name: str) -> bool:
        """Make a sub-folder the current folder; return False if it no longer exists."""
        parent = self._stack[-1]
        path = self._join_path()
        try:
            if parent.descriptor < 0:
                names = [folder.name for folder in self._stack[_MAX_OPEN_FOLDERS:]]
                anchor = self._stack[_MAX_OPEN_FOLDERS - 1].descriptor
                parent.descriptor = open_subfolder(anchor, names)
            descriptor = open_subfolder(parent.descriptor, [name])
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _build_failure(f"the folder {path + name!r}", error) from error
        if len(self._stack) > _MAX_OPEN_FOLDERS:
            parent.close()
        if not self._selection.repositories and _is_repository(descriptor):
            os.close(descriptor)
            return False
        verdict = self._selection.include.decide(
            _encode_name(path), _encode_name(name), is_folder=True
        )
        included = parent.is_included if verdict is None else verdict
        device = os.fstat(descriptor).st_dev
        if device != parent.device and len(self._folders) <= MAX_MOUNTS:
            self._folders[path + name] = FolderIdentity.from_descriptor(descriptor)
        self._stack.append(_Folder(name, descriptor, device, included, parent.ignores))
        return True

    def _iter_files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Read the current folder: queue its wanted sub-folders, and yield its wanted files."""
        folder = self._stack[-1]
        path = self._join_path()
        try:
            if self._selection.gitignore:
                folder.ignores = _read_gitignore(folder, path)
            names = self._scan(folder, _encode_name(path))
        except FileNotFoundError:  # an open folder was deleted
            return
        except OSError as error:
            raise _build_failure(f"the folder {path or '.'!r}", error) from error
        names.sort(reverse=True)
        folder.pending.sort(reverse=True)
        while names:
            name = names.pop()
            try:
                facts = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _build_failure(repr(path + name), error) from error
            if stat.S_ISREG(facts.st_mode):
                yield path + name, facts

    def _scan(self, folder: _Folder, path: bytes) -> list[str]:
        """Return the names of a folder's wanted files, and queue its wanted sub-folders."""
        names = []
        with os.scandir(folder.descriptor) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not self._is_skipped(folder, path, entry.name, is_folder=True):
                        folder.pending.append(entry.name)
                elif entry.is_file(follow_symlinks=False) and self._is_wanted(
                    folder, path, entry.name
                ):
                    names.append(entry.name)
        return names

    def _is_wanted(self, folder: _Folder, path: bytes, name: str) -> bool:
        included = self._selection.include.decide(path, _encode_name(name), is_folder=False)
        if included is None:
            included = folder.is_included
        return included and not self._is_skipped(folder, path, name, is_folder=False)

    def _is_skipped(self, folder: _Folder, path: bytes, name: str, *, is_folder: bool) -> bool:
        raw = _encode_name(name)
        return (
            name in _ALWAYS_SKIPPED
            or self._selection.exclude.decide(path, raw, is_folder=is_folder) is True
            or (
                folder.ignores is not None
                and folder.ignores.is_ignored(path, raw, is_folder=is_folder)
            )
        )


def _is_repository(folder: int) -> bool:
    try:
        os.stat(".git", dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _read_gitignore(folder: _Folder, path: str) -> _GitignoreRules | None:
    """Return the rules that apply in a folder: its own .gitignore, then the rules from above."""
    try:
        descriptor = open_regular(GITIGNORE, folder.descriptor)
    except FileNotFoundError:
        return folder.ignores
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link or a socket, which git does not read
            return folder.ignores
        raise
    if descriptor is None:
        return folder.ignores
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(MAX_GITIGNORE_BYTES + 1)
    try:
        rules = compile_gitignore(content)
    except ValueError as error:
        raise ListingFailed(
            f"{path + GITIGNORE!r} cannot be used: {error}",
            hint="shorten the file, or set gitignore: false for the source",
        ) from error
    return _GitignoreRules(rules, len(_encode_name(path)), folder.ignores)


def _open_root(root: Path) -> int:
    try:
        return open_root(root)
    except OSError as error:
        require_no_link(root)
        raise _build_failure(f"the root {str(root)!r}", error) from error


def _build_failure(subject: str, error: OSError) -> ListingFailed:
    """Return the ListingFailed for an error of the operating system about a file or folder."""
    if isinstance(error, FileNotFoundError):
        return ListingFailed(f"{subject} is missing", hint="create it, or mount its disk or share")
    if isinstance(error, PermissionError):
        return ListingFailed(
            f"no permission to list {subject}",
            hint="give the user of this service read access, or exclude it",
        )
    if isinstance(error, NotADirectoryError) or error.errno == errno.ELOOP:
        return ListingFailed(
            f"{subject} is not a folder, or was replaced while it was listed",
            hint="if it is a link, use the folder that the link leads to",
        )
    return ListingFailed(f"{subject} cannot be listed: {error.strerror}")


def _encode_name(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
