"""Globs as shells have them: `*`, `?` and `[…]` within a folder, `**` across folders, `~`.

Hidden files match, case counts, and no link is followed out of the folder that a pattern begins in.
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
from rag_assets.ingest.sources.roots import MOST_MOUNTS, FolderIdentity

MAX_ENTRIES: Final = 200_000
"""Entries of folders that the patterns of one agent may visit."""

_MAX_DEPTH: Final = 64
_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that a pattern matches.

    Attributes:
        place: where it is.
        path: below the base, or absolute where it is elsewhere; with slashes. Bytes that are no
            UTF-8 are escaped by backslashes.
        size, mtime_ns, ctime_ns, inode: of the file.
    """

    place: str
    path: str
    size: int
    mtime_ns: int
    ctime_ns: int = 0
    inode: int = 0

    @property
    def file(self) -> Path:
        """Where it is."""
        return Path(self.place)


@dataclass(frozen=True, slots=True)
class Matches:
    """What patterns match.

    Attributes:
        files: each once, in the order of the patterns and sorted within each.
        empty: patterns that match no file.
        unreadable: folders that are there and could not be listed, and what lies in closed ones.
        mounts: identities of the mount points that were walked, by their places.
    """

    files: tuple[FoundFile, ...]
    empty: tuple[str, ...]
    unreadable: tuple[str, ...] = ()
    mounts: Mapping[str, FolderIdentity] = field(default_factory=dict)


def expand(patterns: Sequence[str], base: Path, home: Path | None = None) -> Matches:
    """Find the files that patterns match.

    Args:
        patterns: relative ones begin at the base.
        base: a folder.
        home: of `~`; by default the user's.

    Raises:
        ConfigurationError: they visit too many entries.
    """
    found: dict[str, FoundFile] = {}
    empty: list[str] = []
    below = os.path.join(os.path.normpath(base), "")  # noqa: PTH118 - strings: this is asked often
    walk = _Walk()
    for pattern in patterns:
        root, parts = _rooted(pattern, base, home or Path.home())
        matched = walk.files(str(root), tuple(parts), _within(root, base))
        for place in sorted(matched):
            if place not in found:
                status = matched[place]
                path = place.removeprefix(below).encode("utf-8", "backslashreplace").decode()
                facts = status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
                found[place] = FoundFile(place, path, *facts)
        if not matched:
            empty.append(pattern)
    return Matches(tuple(found.values()), tuple(empty), tuple(walk.unreadable), walk.mounts)


@dataclass(frozen=True, slots=True)
class GlobRoot:
    """Where a pattern begins.

    Attributes:
        folder: that all of its matches lie below.
        within: the folder that no link leads out of.
    """

    folder: Path
    within: Path


def roots_of(patterns: Sequence[str], base: Path, home: Path | None = None) -> list[GlobRoot]:
    """Where patterns begin; see expand."""
    roots = [_rooted(pattern, base, home or Path.home())[0] for pattern in patterns]
    return [GlobRoot(root, _within(root, base)) for root in roots]


def patterns_outside(
    patterns: Sequence[str], base: Path, allowed: Sequence[Path], home: Path | None = None
) -> dict[str, bool]:
    """Return the patterns that begin beyond a base, links resolved, and whether each is allowed.

    Args:
        patterns: relative ones begin at the base.
        base: a folder.
        allowed: folders and files beyond it.
        home: of `~`; by default the user's.
    """
    found: dict[str, bool] = {}
    for pattern in patterns:
        root, parts = _rooted(pattern, base, home or Path.home())
        is_file = len(parts) == 1 and not _MAGIC.search(parts[0])
        place = root / parts[0] if is_file else root
        # Where links are followed from is decided by the written path: both must lie below.
        if not (root.is_relative_to(os.path.normpath(base)) and lies_below(place, [base])):
            found[pattern] = lies_below(place, allowed)
    return found


def lies_below(place: Path, folders: Sequence[Path]) -> bool:
    """Return whether a path lies in one of some folders or is one, links resolved."""
    return any(_stays(str(place), os.path.realpath(folder)) for folder in folders)


def _within(root: Path, base: Path) -> Path:
    return base if root.is_relative_to(base) else root


def _rooted(pattern: str, base: Path, home: Path) -> tuple[Path, list[str]]:
    """The folder that a pattern begins in, and its parts below it."""
    if pattern == "~" or pattern.startswith("~/"):
        root, rest = home, pattern[2:]
    elif pattern.startswith("/"):
        root, rest = Path("/"), pattern
    else:
        root, rest = base, pattern
    parts = [part for part in rest.split("/") if part not in {"", "."}]
    literal = 0
    while literal < len(parts) - 1 and not _MAGIC.search(parts[literal]):
        literal += 1
    return Path(os.path.normpath(root.joinpath(*parts[:literal]))), parts[literal:]


class _Walk:
    """Walks folders; counts what it visits, over all patterns of an agent."""

    def __init__(self) -> None:
        self.unreadable: list[str] = []
        self.mounts: dict[str, FolderIdentity] = {}
        self._devices: dict[str, int] = {}
        self._visited = 0
        self._listed: dict[str, list[os.DirEntry[str]]] = {}

    def files(self, root: str, parts: tuple[str, ...], within: Path) -> dict[str, os.stat_result]:
        """The regular files that parts of a pattern match below a folder, by their places.

        Args:
            root: the folder.
            parts: of the pattern.
            within: the folder that no link leads out of.
        """
        inside = os.path.realpath(within)
        if not _stays(root, inside):
            return {}
        return dict(self._matches(root, parts, inside, 0))

    def _matches(
        self, folder: str, parts: tuple[str, ...], inside: str, depth: int
    ) -> Iterator[tuple[str, os.stat_result]]:
        """What parts of a pattern match in a folder that is known to be inside."""
        if not parts or depth > _MAX_DEPTH:
            return
        first, rest = parts[0], parts[1:]
        if first == "**":
            for here, level in self._below(folder, depth):
                yield from self._matches(here, rest or ("*",), inside, level)
        elif not _MAGIC.search(first):
            yield from self._named(f"{folder.rstrip('/')}/{first}", rest, inside, depth)
        else:
            matches = _compiled(first).match
            for entry in self._entries(folder):
                if matches(entry.name):
                    yield from self._entered(entry, rest, inside, depth)

    def _named(
        self, place: str, rest: tuple[str, ...], inside: str, depth: int
    ) -> Iterator[tuple[str, os.stat_result]]:
        try:
            status = os.stat(place)  # noqa: PTH116 - strings: this is asked often
        except PermissionError:
            self.unreadable.append(place)
            return
        except (OSError, ValueError):
            return
        if not _stays(place, inside):
            return
        if rest and stat.S_ISDIR(status.st_mode):
            yield from self._matches(place, rest, inside, depth + 1)
        elif not rest and stat.S_ISREG(status.st_mode):
            yield place, status

    def _entered(
        self, entry: os.DirEntry[str], rest: tuple[str, ...], inside: str, depth: int
    ) -> Iterator[tuple[str, os.stat_result]]:
        if entry.is_symlink():
            yield from self._named(entry.path, rest, inside, depth)
        elif rest:
            if entry.is_dir(follow_symlinks=False):
                yield from self._matches(entry.path, rest, inside, depth + 1)
        elif entry.is_file(follow_symlinks=False):
            with suppress(OSError):
                yield entry.path, entry.stat(follow_symlinks=False)

    def _below(self, folder: str, depth: int) -> Iterator[tuple[str, int]]:
        """A folder and all below it with their depths; no link is followed."""
        todo = [(folder, depth)]
        while todo:
            here, level = todo.pop()
            yield here, level
            if level < _MAX_DEPTH:
                todo += [
                    (entry.path, level + 1)
                    for entry in self._entries(here)
                    if entry.is_dir(follow_symlinks=False)
                ]

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        if (known := self._listed.get(folder)) is not None:
            return known
        entries: list[os.DirEntry[str]] = []
        try:
            with os.scandir(folder) as scanned:
                for entry in scanned:
                    self._visited += 1
                    if self._visited > MAX_ENTRIES:
                        raise ConfigurationError(
                            f"the patterns of its sources visit over {MAX_ENTRIES:,} files",
                            hint="begin them at a folder nearer to the documentation",
                        )
                    entries.append(entry)
            self._note_device(folder)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            self.unreadable.append(folder)
        self._listed[folder] = entries
        return entries

    def _note_device(self, folder: str) -> None:
        facts = os.stat(folder)  # noqa: PTH116 - strings: this is asked often
        self._devices[folder] = facts.st_dev
        above = self._devices.get(os.path.dirname(folder))  # noqa: PTH120
        if above is not None and above != facts.st_dev and len(self.mounts) < MOST_MOUNTS:
            self.mounts[folder] = FolderIdentity(facts.st_ino, os.statvfs(folder).f_fsid)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Shells know both signs of a negated class.
    return re.compile(fnmatch.translate(pattern.replace("[^", "[!")))


def _stays(place: str, inside: str) -> bool:
    """Whether a path, links followed, stays below the folder that its pattern begins in."""
    real = os.path.realpath(place)
    return real == inside or real.startswith(os.path.join(inside, ""))  # noqa: PTH118
