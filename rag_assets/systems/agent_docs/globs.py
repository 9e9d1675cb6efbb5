"""Glob patterns as in a shell: `*`, `?` and `[…]` within a folder, `**` across folders, `~`.

Hidden files match, and matching is case-sensitive. Links that lead out of a pattern's root folder
are not followed.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.sources.disk import MOST_MOUNTS, FolderIdentity

MAX_ENTRIES: Final = 200_000
"""Folder entries that the patterns of one agent may visit; more raise ConfigurationError."""

_MAX_DEPTH: Final = 64
"""Levels below a pattern's root folder that are visited; deeper folders are skipped."""
_WILDCARD = re.compile(r"[*?\[]")
_File = tuple[str, os.stat_result]


@dataclass(frozen=True, slots=True)
class MatchedFile:
    """A file that matches a pattern.

    Attributes:
        location: absolute path.
        path: relative to the base, or absolute if outside it; bytes that are not UTF-8 are escaped
            by backslashes.
    """

    location: str
    path: str
    size: int
    mtime_ns: int
    ctime_ns: int = 0
    inode: int = 0


@dataclass(frozen=True, slots=True)
class Matches:
    """The result of expanding patterns.

    Attributes:
        files: in the order of the patterns, sorted within each, without repetitions.
        empty: patterns that match no file.
        unreadable: folders that could not be listed, and files in folders that cannot be entered.
        mounts: identity of each visited mount point, by its path.
    """

    files: tuple[MatchedFile, ...]
    empty: tuple[str, ...]
    unreadable: tuple[str, ...] = ()
    mounts: Mapping[str, FolderIdentity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GlobRoot:
    """The folders that limit the matches of a pattern.

    Attributes:
        folder: the deepest folder that contains all matches.
        boundary: the folder that links must not lead out of.
    """

    folder: Path
    boundary: Path


def expand(patterns: Sequence[str], base: Path, home: Path | None = None) -> Matches:
    """Find the files that match patterns.

    Args:
        base: the folder of relative patterns.
        home: the folder for `~`; by default the user's.

    Raises:
        ConfigurationError: the patterns visit too many entries.
    """
    files: dict[str, MatchedFile] = {}
    empty: list[str] = []
    prefix = os.path.join(os.path.normpath(base), "")  # noqa: PTH118 - strings: this is called often
    walker = _Walker()
    for pattern in patterns:
        root, parts = _split_pattern(pattern, base, home)
        matched = walker.find(root, parts)
        for location in sorted(matched):
            if location not in files:
                status = matched[location]
                path = location.removeprefix(prefix).encode("utf-8", "backslashreplace").decode()
                facts = status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
                files[location] = MatchedFile(location, path, *facts)
        if not matched:
            empty.append(pattern)
    return Matches(tuple(files.values()), tuple(empty), tuple(walker.unreadable), walker.mounts)


def find_roots(patterns: Sequence[str], base: Path, home: Path | None = None) -> list[GlobRoot]:
    """Return the root of each pattern; see expand."""
    return [_split_pattern(pattern, base, home)[0] for pattern in patterns]


def find_outside_patterns(
    patterns: Sequence[str], base: Path, allowed: Sequence[Path], home: Path | None = None
) -> dict[str, bool]:
    """Return the patterns with a root outside a base, and whether each is allowed.

    Links are resolved.

    Args:
        base: the folder of relative patterns.
        allowed: permitted folders and files outside the base.
        home: the folder for `~`; by default the user's.
    """
    outside: dict[str, bool] = {}
    for pattern in patterns:
        root, parts = _split_pattern(pattern, base, home)
        is_file = len(parts) == 1 and not _WILDCARD.search(parts[0])
        path = root.folder / parts[0] if is_file else root.folder
        # The boundary is derived from the path as written, so the path as written must also be
        # inside the base.
        is_written_inside = root.folder.is_relative_to(os.path.normpath(base))
        if not (is_written_inside and is_inside(path, [base])):
            outside[pattern] = is_inside(path, allowed)
    return outside


def is_inside(path: Path, folders: Sequence[Path]) -> bool:
    """Return whether a path equals a folder or is inside one of them, after resolving links."""
    return any(_resolves_inside(str(path), os.path.realpath(folder)) for folder in folders)


def _split_pattern(pattern: str, base: Path, home: Path | None) -> tuple[GlobRoot, tuple[str, ...]]:
    """Split a pattern into its root and the parts below the root's folder."""
    if pattern == "~" or pattern.startswith("~/"):
        start, rest = home or Path.home(), pattern[2:]
    elif pattern.startswith("/"):
        start, rest = Path("/"), pattern
    else:
        start, rest = base, pattern
    parts = [part for part in rest.split("/") if part not in {"", "."}]
    literal = 0
    while literal < len(parts) - 1 and not _WILDCARD.search(parts[literal]):
        literal += 1
    folder = Path(os.path.normpath(start.joinpath(*parts[:literal])))
    boundary = base if folder.is_relative_to(base) else folder
    return GlobRoot(folder, boundary), tuple(parts[literal:])


class _Walker:
    """Walks folders for an agent's patterns.

    Raises ConfigurationError after MAX_ENTRIES entries.
    """

    def __init__(self) -> None:
        self.unreadable: list[str] = []
        self.mounts: dict[str, FolderIdentity] = {}
        self._devices: dict[str, int] = {}
        self._visited = 0
        self._listings: dict[str, list[os.DirEntry[str]]] = {}

    def find(self, root: GlobRoot, parts: tuple[str, ...]) -> dict[str, os.stat_result]:
        """Return the regular files below a root that match the parts of a pattern, by path."""
        boundary = os.path.realpath(root.boundary)
        folder = str(root.folder)
        if not _resolves_inside(folder, boundary):
            return {}
        return dict(self._match(folder, parts, boundary, 0))

    def _match(
        self, folder: str, parts: tuple[str, ...], boundary: str, depth: int
    ) -> Iterator[_File]:
        if not parts or depth > _MAX_DEPTH:
            return
        first, rest = parts[0], parts[1:]
        if first == "**":
            for subfolder, level in self._descend(folder, depth):
                yield from self._match(subfolder, rest or ("*",), boundary, level)
        elif not _WILDCARD.search(first):
            yield from self._match_path(f"{folder.rstrip('/')}/{first}", rest, boundary, depth)
        else:
            matches = _compile(first).match
            for entry in self._list(folder):
                if matches(entry.name):
                    yield from self._match_entry(entry, rest, boundary, depth)

    def _match_path(
        self, path: str, rest: tuple[str, ...], boundary: str, depth: int
    ) -> Iterator[_File]:
        try:
            status = os.stat(path)  # noqa: PTH116 - strings: this is called often
        except PermissionError:
            self.unreadable.append(path)
            return
        except (OSError, ValueError):
            return
        if not _resolves_inside(path, boundary):
            return
        if rest and stat.S_ISDIR(status.st_mode):
            yield from self._match(path, rest, boundary, depth + 1)
        elif not rest and stat.S_ISREG(status.st_mode):
            yield path, status

    def _match_entry(
        self, entry: os.DirEntry[str], rest: tuple[str, ...], boundary: str, depth: int
    ) -> Iterator[_File]:
        if entry.is_symlink():
            yield from self._match_path(entry.path, rest, boundary, depth)
        elif rest:
            if entry.is_dir(follow_symlinks=False):
                yield from self._match(entry.path, rest, boundary, depth + 1)
        elif entry.is_file(follow_symlinks=False):
            with suppress(OSError):
                yield entry.path, entry.stat(follow_symlinks=False)

    def _descend(self, folder: str, depth: int) -> Iterator[tuple[str, int]]:
        """Yield a folder and all its subfolders with their depths, without following links."""
        pending = [(folder, depth)]
        while pending:
            current, level = pending.pop()
            yield current, level
            if level < _MAX_DEPTH:
                pending += [
                    (entry.path, level + 1)
                    for entry in self._list(current)
                    if entry.is_dir(follow_symlinks=False)
                ]

    def _list(self, folder: str) -> list[os.DirEntry[str]]:
        if (listing := self._listings.get(folder)) is not None:
            return listing
        entries: list[os.DirEntry[str]] = []
        try:
            with os.scandir(folder) as scan:
                for entry in scan:
                    self._visited += 1
                    if self._visited > MAX_ENTRIES:
                        raise ConfigurationError(
                            f"the patterns in `sources` visit more than {MAX_ENTRIES:,} files",
                            hint="start the patterns in a folder closer to the documentation",
                        )
                    entries.append(entry)
            self._record_mount(folder)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            self.unreadable.append(folder)
        self._listings[folder] = entries
        return entries

    def _record_mount(self, folder: str) -> None:
        status = os.stat(folder)  # noqa: PTH116 - strings: this is called often
        self._devices[folder] = status.st_dev
        parent = self._devices.get(os.path.dirname(folder))  # noqa: PTH120
        if parent is not None and parent != status.st_dev and len(self.mounts) < MOST_MOUNTS:
            self.mounts[folder] = FolderIdentity(status.st_ino, os.statvfs(folder).f_fsid)


@lru_cache(maxsize=256)
def _compile(pattern: str) -> re.Pattern[str]:
    # Shells accept both `!` and `^` for a negated class.
    return re.compile(fnmatch.translate(pattern.replace("[^", "[!")))


def _resolves_inside(path: str, folder: str) -> bool:
    """Return whether a path, with links resolved, is a folder or inside it."""
    real = os.path.realpath(path)
    return real == folder or real.startswith(os.path.join(folder, ""))  # noqa: PTH118
