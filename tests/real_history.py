"""Real commits of a repository, followed one by one in a clone that shares its objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import pygit2

REF: Final = "refs/heads/followed"
RENAMED, DELETED, MERGED = "renamed", "deleted", "merged"
_EACH: Final = 3
"""So many commits of each kind are followed, also where they are older than the others."""


@dataclass(frozen=True, slots=True)
class Step:
    """A commit and its effect on the relevant files.

    Attributes:
        commit: its id.
        subject: the first line of its message.
        kinds: a subset of `merged`, `renamed` and `deleted`.
    """

    commit: str
    subject: str
    kinds: frozenset[str]


class RealHistory:
    """The commits of a clone, along first parents.

    Args:
        origin: a folder in the repository.
        folder: of the new clone.
        under: prefixes of the relevant paths; by default all paths are relevant.
    """

    def __init__(self, origin: Path, folder: Path, under: Sequence[str] = ("",)) -> None:
        self._under = tuple(under)
        with _whoever_owns_it():
            held = pygit2.Repository(str(origin))
            self._head = held.head.target
            # Packs and loose objects are linked or copied, because our reader does not support
            # alternates.
            self._git = pygit2.clone_repository(str(origin), str(folder), bare=True)

    def steps(self, count: int) -> list[Step]:
        """Return the latest commits that changed relevant files, oldest first.

        Args:
            count: number of commits. The latest three of each kind, and the commit before each, are
                included however old they are.
        """
        found = list(self._steps())
        chosen: set[int] = set()
        for kind in (RENAMED, DELETED, MERGED):
            of_kind = (at for at, one in enumerate(found) if kind in one.kinds)
            chosen |= {at + before for at in islice(of_kind, _EACH) for before in (0, 1)}
        others = (at for at in range(len(found)) if at not in chosen)
        chosen |= set(islice(others, max(0, count - len(chosen))))
        return [found[at] for at in sorted(chosen, reverse=True) if at < len(found)]

    def follow(self, step: Step) -> None:
        """Move the branch `followed` to this commit."""
        self._git.references.create(REF, pygit2.Oid(hex=step.commit), force=True)

    def _steps(self) -> Iterator[Step]:
        walk = self._git.walk(self._head, pygit2.enums.SortMode.TOPOLOGICAL)
        walk.simplify_first_parent()
        for commit in walk:
            if not commit.parents:
                return
            kinds = self._kinds(commit)
            if kinds is not None:
                yield Step(str(commit.id), commit.message.partition("\n")[0], kinds)

    def _kinds(self, commit: pygit2.Commit) -> frozenset[str] | None:
        """Return the kinds of a commit; None if it changed no relevant file."""
        diff = self._git.diff(commit.parents[0], commit)
        if {pygit2.enums.DeltaStatus.ADDED, pygit2.enums.DeltaStatus.DELETED} <= {
            delta.status for delta in diff.deltas
        }:
            diff.find_similar()
        done = {
            delta.status
            for delta in diff.deltas
            if delta.old_file.path.startswith(self._under)
            or delta.new_file.path.startswith(self._under)
        }
        if not done:
            return None
        named = {RENAMED: pygit2.enums.DeltaStatus.RENAMED}
        named |= {DELETED: pygit2.enums.DeltaStatus.DELETED}
        merged = {MERGED} if len(commit.parents) > 1 else set()
        return frozenset({kind for kind, status in named.items() if status in done} | merged)


def root_of(path: Path) -> Path | None:
    """Return the clone, with full history, in which a file is committed; None if there is none."""
    with _whoever_owns_it():
        found = pygit2.discover_repository(str(path.parent))
        git = None if found is None else pygit2.Repository(found)
        if git is None or git.is_shallow or git.head_is_unborn:
            return None
        root = Path(git.workdir)
        commit = git[git.head.target].peel(pygit2.Commit)
        return root if str(path.relative_to(root)) in commit.tree else None


@contextmanager
def _whoever_owns_it() -> Iterator[None]:
    """Allow repositories that belong to other accounts; no code of theirs is executed."""
    checked = pygit2.settings.owner_validation
    pygit2.settings.owner_validation = False
    try:
        yield
    finally:
        pygit2.settings.owner_validation = checked
