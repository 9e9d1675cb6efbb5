"""Branches and tags of a repository, and the resolution of names to commits."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rag_assets.common.errors import ListingFailed
from rag_assets.systems.code_memory.sources.repositories.folders import (
    RepositoryFolders,
    read_small,
)
from rag_assets.systems.code_memory.sources.repositories.objects import Objects

_ID: Final = re.compile(r"[0-9a-f]{40}")
_ABBREVIATED: Final = re.compile(r"[0-9a-f]{7,39}")
_MAX_REF_BYTES = 4_096
_MAX_PACKED_BYTES = 256 << 20
_MAX_DEPTH = 5
_MAX_NAMES = 20_000
_WHERE: Final = ("", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/")
"""Prefixes that git tries for a name, in its order; the first that exists is used."""


@dataclass(frozen=True, slots=True)
class Head:
    """The checked-out head.

    Attributes:
        commit: id of the commit; None if the branch has no commit yet.
        branch: full name of the ref; None if no branch is checked out.
    """

    commit: str | None
    branch: str | None


class Refs:
    """The refs of a repository; they are read again on every request.

    Args:
        folders: folders of the repository.
    """

    def __init__(self, folders: RepositoryFolders) -> None:
        self._folders = folders

    def head(self) -> Head:
        """Return the checked-out head.

        Raises:
            ListingFailed: HEAD is missing or damaged.
        """
        content = read_small(self._folders.own, ["HEAD"], _MAX_REF_BYTES)
        if content is None:
            raise ListingFailed(
                f"the file HEAD is missing in {str(self._folders.own)!r}",
                hint="run `git symbolic-ref HEAD refs/heads/BRANCH`",
            )
        oid, target = _parse_ref("HEAD", content)
        return Head(oid if target is None else self._follow(target), target)

    def resolve(self, name: str, objects: Objects) -> str:
        """Return the commit that a name resolves to.

        Args:
            name: name of a branch or tag, or a whole or abbreviated id of a commit.

        Raises:
            ListingFailed: the name does not exist; the hint lists similar names.
        """
        if _ID.fullmatch(name):
            return objects.commit(name)
        if is_name(name):
            for prefix in _WHERE:
                if not prefix and not name.startswith("refs/"):
                    continue
                oid = self._follow(prefix + name)
                if oid is not None:
                    return objects.commit(oid)
        oid = objects.expand_id(name) if _ABBREVIATED.fullmatch(name) else None
        if oid is not None:
            return objects.commit(oid)
        raise ListingFailed(f"no branch, tag or commit {name!r}", hint=self._suggest_names(name))

    def names(self) -> list[str]:
        """Return the short names of all branches and tags, sorted."""
        full = {*self._read_packed_refs(), *self._list_loose_refs()}
        return sorted(
            name.removeprefix(prefix)
            for name in full
            for prefix in _WHERE[2:]
            if name.startswith(prefix)
        )

    def _suggest_names(self, name: str) -> str:
        names = self.names()[:_MAX_NAMES]
        near = difflib.get_close_matches(name[:200], names, n=5, cutoff=0.5) or names[:5]
        listed = ", ".join(near)
        return f"choose an existing one, such as {listed}" if near else "create a branch first"

    def _follow(self, name: str) -> str | None:
        for _ in range(_MAX_DEPTH):
            oid, target = self._read(name)
            if target is None:
                return oid
            name = target
        raise ListingFailed(
            f"the symbolic ref {name!r} leads back to itself, or over more than {_MAX_DEPTH} refs",
            hint="run `git symbolic-ref` to point it to a branch",
        )

    def _read(self, name: str) -> tuple[str | None, str | None]:
        """Return the id that a ref holds, or else the ref that it points to; None if missing."""
        if not is_name(name):
            raise ListingFailed(f"{name!r} is not a valid name of a ref")
        content = read_small(self._folders.common, name.split("/"), _MAX_REF_BYTES)
        if content is not None:
            return _parse_ref(name, content)
        return self._read_packed_refs().get(name), None

    def _read_packed_refs(self) -> dict[str, str]:
        """Return the refs in the file packed-refs, by full name."""
        content = read_small(self._folders.common, ["packed-refs"], _MAX_PACKED_BYTES)
        found = {}
        for line in (content or b"").split(b"\n"):
            if not line or line[:1] in b"#^":
                continue
            oid, _, name = line.decode("utf-8", "surrogateescape").partition(" ")
            if not _ID.fullmatch(oid) or not name:
                raise ListingFailed(
                    "the file packed-refs of the repository is damaged",
                    hint="run `git pack-refs --all` to write it again",
                )
            found[name] = oid
        return found

    def _list_loose_refs(self) -> Iterator[str]:
        """Yield the full names of the refs that are stored in separate files."""
        waiting = [self._folders.common / "refs"]
        count = 0
        while waiting and count < _MAX_NAMES:
            folder = waiting.pop()
            for entry in _list_entries(folder):
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(folder / entry.name)
                elif entry.is_file(follow_symlinks=False):
                    yield (folder / entry.name).relative_to(self._folders.common).as_posix()


def is_name(name: str) -> bool:
    """Return whether a name is a valid ref, and thus a safe path below the repository's folder."""
    parts = name.split("/")
    return not any(
        part in ("", ".", "..") or part.endswith(".lock") or "\0" in part for part in parts
    )


def _list_entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _parse_ref(name: str, content: bytes) -> tuple[str | None, str | None]:
    text = content.decode("utf-8", "surrogateescape").strip()
    if text.startswith("ref:"):
        return None, text.removeprefix("ref:").strip()
    if _ID.fullmatch(text):
        return text, None
    raise ListingFailed(f"the ref {name!r} is damaged", hint="set it with `git update-ref`")
