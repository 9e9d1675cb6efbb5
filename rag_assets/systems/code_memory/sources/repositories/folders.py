"""The folders of a repository, and those few settings that affect how its content is read.

Only the repository's own configuration is used, without included files, commands, or user files.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.sources.disk import open_regular, open_subfolder

_SECTION: Final = re.compile(rb'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\]')
_KEY: Final = re.compile(rb"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)")
_TRUE: Final = frozenset({"true", "yes", "on", "1", ""})


def parse_configuration(content: bytes) -> dict[str, str]:
    """Return the settings in a git configuration file, by `section.key` in lower case.

    Named sections (`[remote "origin"]`) and invalid lines are ignored; later values win.
    """
    settings: dict[str, str] = {}
    section: str | None = None
    for raw in content.replace(b"\\\n", b"").split(b"\n"):
        line = raw.strip()
        heading = _SECTION.match(line)
        if heading:
            section = None if heading[2] is not None else heading[1].decode().lower()
            line = line[heading.end() :].strip()
        key = _KEY.match(line)
        if section is None or key is None:
            continue
        value = _parse_value(line[key.end() :]) if key[2] else ""
        settings[f"{section}.{key[1].decode().lower()}"] = value
    return settings


def is_true(settings: dict[str, str], name: str) -> bool:
    """Return whether a boolean setting of git is on; a missing setting is off."""
    return settings.get(name, "false").lower() in _TRUE


def _parse_value(raw: bytes) -> str:
    """Return a value without its comment and quotation marks, and with escapes resolved."""
    out = bytearray()
    quoted = escaped = False
    for byte in raw.strip():
        char = bytes((byte,))
        if escaped:
            out += {b"n": b"\n", b"t": b"\t", b"b": b"\b"}.get(char, char)
            escaped = False
        elif char == b"\\":
            escaped = True
        elif char == b'"':
            quoted = not quoted
        elif char in b"#;" and not quoted:
            break
        else:
            out += char
    return bytes(out).strip().decode("utf-8", "surrogateescape")


GIT = ".git"
_MAX_POINTER_BYTES = 64 * 1024
_MAX_CONFIG_BYTES = 4 << 20
_HINT = "set root to the top folder of a clone, or to a bare repository"


@dataclass(frozen=True, slots=True)
class RepositoryFolders:
    """The folders of a repository; all paths are absolute and resolved.

    Attributes:
        root: the folder that the source names.
        own: contains HEAD and the index of this worktree.
        common: contains what all worktrees share: objects, refs, configuration.
    """

    root: Path
    own: Path
    common: Path
    bare: bool


def locate_repository(root: Path) -> RepositoryFolders:
    """Return the folders of the repository at a root; parent folders are not searched.

    If `.git` is a file, as in a linked worktree, it may only lead out of the root to a repository
    that points back to this root. So nobody can index a repository to which they cannot write.

    Raises:
        ListingFailed: the repository is missing, or must not be used.
    """
    mode = _find_mode(root / GIT)
    if mode is not None and stat.S_ISDIR(mode):
        return _require_parts(root, root / GIT, is_bare=False)
    if mode is not None and stat.S_ISREG(mode):
        return _follow_pointer(root)
    if mode is not None:
        raise ListingFailed(f"{str(root / GIT)!r} is a link or not a regular file", hint=_HINT)
    if _find_mode(root) is None:
        raise ListingFailed(
            f"the root {str(root)!r} does not exist",
            hint="create the folder, or mount the volume that contains it",
        )
    return _require_parts(root, root, is_bare=True)


def open_below(folder: Path, names: Sequence[str]) -> BinaryIO | None:
    """Open a file below a folder without following links; None if it is not a regular file.

    Args:
        folder: the folder, absolute and resolved.
        names: names of the folders below it, and then of the file.
    """
    above = open_subfolder(None, [*folder.parts, *names[:-1]])
    try:
        descriptor = open_regular(names[-1], above)
    finally:
        os.close(above)
    return None if descriptor is None else os.fdopen(descriptor, "rb")


def read_small(folder: Path, names: Sequence[str], limit: int) -> bytes | None:
    """Return the content of a small file; None if it is missing or is not a regular file.

    Raises:
        ListingFailed: it is larger than `limit` bytes, or cannot be read.
    """
    path = "/".join(names)
    try:
        file = open_below(folder, names)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if stat.S_ISLNK(_find_mode(folder.joinpath(*names)) or 0):
            return None
        raise ListingFailed(f"{path!r} cannot be read: {error.strerror}") from error
    if file is None:
        return None
    with file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ListingFailed(
            f"the repository's file {path!r} is larger than the limit of {limit:,} bytes"
        )
    return content


def read_configuration(common: Path) -> dict[str, str]:
    """Return the repository's own settings, by `section.key`; included files are not read."""
    return parse_configuration(read_small(common, ["config"], _MAX_CONFIG_BYTES) or b"")


def _require_parts(root: Path, own: Path, *, is_bare: bool) -> RepositoryFolders:
    """Return the folders of a repository that has HEAD and the objects in the folder `own`."""
    missing = [n for n in ("HEAD", "objects") if _find_mode(own / n) is None]
    if missing:
        raise ListingFailed(
            f"{str(root)!r} is not a Git repository: {missing[0]} is missing", hint=_HINT
        )
    return RepositoryFolders(root, own, own, is_bare)


def _follow_pointer(root: Path) -> RepositoryFolders:
    content = read_small(root, [GIT], _MAX_POINTER_BYTES) or b""
    if not content.startswith(b"gitdir:"):
        raise ListingFailed(f"{str(root / GIT)!r} does not point to a repository", hint=_HINT)
    own = _resolve_pointer(root, content.removeprefix(b"gitdir:"))
    common = own
    pointer = read_small(own, ["commondir"], _MAX_POINTER_BYTES)
    if pointer is not None:
        common = _resolve_pointer(own, pointer)
        if own.parent != common / "worktrees":
            raise _build_pointer_error(root, own)
    if not own.is_relative_to(root) and not _points_back(root, own, is_linked=pointer is not None):
        raise _build_pointer_error(root, own)
    whole = _require_parts(root, common, is_bare=False)
    return RepositoryFolders(root, own, whole.common, bare=False)


def _points_back(root: Path, own: Path, *, is_linked: bool) -> bool:
    """Return whether a repository outside of the root names the root as its worktree."""
    if is_linked:  # The file `gitdir` of a linked worktree names the root.
        back = read_small(own, ["gitdir"], _MAX_POINTER_BYTES)
        return back is not None and _resolve_pointer(own, back) == root / GIT
    worktree = read_configuration(own).get("core.worktree")
    return worktree is not None and _resolve_pointer(own, os.fsencode(worktree)) == root


def _build_pointer_error(root: Path, own: Path) -> ListingFailed:
    return ListingFailed(
        f"{str(root / GIT)!r} points to {str(own)!r}, which does not name this folder as its"
        " worktree",
        hint="run `git worktree repair` in that repository, or set root to a folder that contains"
        " its own .git folder",
    )


def _resolve_pointer(base: Path, pointer: bytes) -> Path:
    try:
        return (base / os.fsdecode(pointer.strip())).resolve()
    except (OSError, ValueError, RuntimeError):
        raise ListingFailed(f"a path stored in {str(base)!r} is not valid", hint=_HINT) from None


def _find_mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ListingFailed(f"{str(path)!r} cannot be read: {error.strerror}") from error
