"""Globs as shells have them: `*`, `?` and `[…]` within a folder, `**` across folders, `~`.

Hidden files match, case counts, and no link is followed out of the folder that a pattern begins in.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from rag_assets.common.errors import ConfigurationError

MAX_ENTRIES: Final = 200_000
"""Entries of folders that the patterns of one agent may visit."""

_MAX_DEPTH: Final = 64
_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that a pattern matches.

    Attributes:
        file: where it is.
        path: below the base, or absolute where it is elsewhere; with slashes.
        size, mtime_ns: of the file.
    """

    file: Path
    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Matches:
    """What patterns match.

    Attributes:
        files: each once, in the order of the patterns and sorted within each.
        empty: patterns that match no file.
    """

    files: tuple[FoundFile, ...]
    empty: tuple[str, ...]


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
    walk = _Walk()
    for pattern in patterns:
        root, parts = _rooted(pattern, base, home or Path.home())
        within = base if root.is_relative_to(base) else root
        matched = sorted(walk.files(root, parts, within), key=lambda one: one.as_posix())
        for file in matched:
            path = _shown(file, base)
            if path not in found:
                status = file.stat()
                found[path] = FoundFile(file, path, status.st_size, status.st_mtime_ns)
        if not matched:
            empty.append(pattern)
    return Matches(tuple(found.values()), tuple(empty))


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


def _shown(file: Path, base: Path) -> str:
    return (file.relative_to(base) if file.is_relative_to(base) else file).as_posix()


class _Walk:
    """Walks folders; counts what it visits, over all patterns of an agent."""

    def __init__(self) -> None:
        self._visited = 0

    def files(self, root: Path, parts: Sequence[str], within: Path) -> set[Path]:
        """The regular files that parts of a pattern match below a folder.

        Args:
            root: the folder.
            parts: of the pattern.
            within: the folder that no link leads out of.
        """
        return set(self._matches(root, tuple(parts), Path(os.path.realpath(within)), 0))

    def _matches(
        self, folder: Path, parts: tuple[str, ...], within: Path, depth: int
    ) -> Iterator[Path]:
        if not parts or depth > _MAX_DEPTH:
            return
        first, rest = parts[0], parts[1:]
        if first == "**":
            yield from self._across(folder, rest or ("*",), within, depth)
            return
        names = [first] if not _MAGIC.search(first) else self._named(folder, first)
        for name in names:
            path = folder / name
            if rest and _is_folder(path, within):
                yield from self._matches(path, rest, within, depth + 1)
            elif not rest and _is_file(path, within):
                yield path

    def _across(
        self, folder: Path, rest: tuple[str, ...], within: Path, depth: int
    ) -> Iterator[Path]:
        """What matches the rest of a pattern in a folder and all below it, which no link begins."""
        todo = [(folder, depth)]
        while todo:
            here, level = todo.pop()
            yield from self._matches(here, rest, within, level)
            if level < _MAX_DEPTH:
                todo += [(one, level + 1) for one in self._folders(here)]

    def _named(self, folder: Path, pattern: str) -> list[str]:
        matches = _compiled(pattern).match
        return sorted(entry.name for entry in self._entries(folder) if matches(entry.name))

    def _folders(self, folder: Path) -> list[Path]:
        return [
            Path(entry.path)
            for entry in self._entries(folder)
            if entry.is_dir(follow_symlinks=False)
        ]

    def _entries(self, folder: Path) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as scanned:
                entries = []
                for entry in scanned:
                    self._visited += 1
                    if self._visited > MAX_ENTRIES:
                        raise ConfigurationError(
                            f"the patterns of its sources visit over {MAX_ENTRIES:,} files",
                            hint="begin them at a folder nearer to the documentation",
                        )
                    entries.append(entry)
                return entries
        except OSError:
            return []


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Shells know both signs of a negated class.
    return re.compile(fnmatch.translate(pattern.replace("[^", "[!")))


def _is_folder(path: Path, within: Path) -> bool:
    return path.is_dir() and _stays(path, within)


def _is_file(path: Path, within: Path) -> bool:
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False
    return regular and _stays(path, within)


def _stays(path: Path, within: Path) -> bool:
    """Whether a path, links followed, stays below the folder that its pattern begins in."""
    return Path(os.path.realpath(path)).is_relative_to(within)
