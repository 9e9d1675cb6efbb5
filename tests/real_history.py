"""Real commits of a repository, to be followed one by one; its objects are linked, not changed."""

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
    """A commit and what it did to the files that count.

    Attributes:
        commit: its id.
        subject: the first line of its message.
        kinds: `merged`, `renamed` and `deleted`, where it is or did so.
    """

    commit: str
    subject: str
    kinds: frozenset[str]


class RealHistory:
    """The commits of a clone, along the first parents of what is checked out.

    Args:
        origin: a folder in the repository.
        folder: that the clone is made in.
        under: what the paths that count begin with; by default all count.
    """

    def __init__(self, origin: Path, folder: Path, under: Sequence[str] = ("",)) -> None:
        self._under = tuple(under)
        with _whoever_owns_it():
            held = pygit2.Repository(str(origin))
            self._head = held.head.target
            # Packs and loose objects are linked or copied; our reader knows no alternates.
            self._git = pygit2.clone_repository(str(origin), str(folder), bare=True)

    def steps(self, count: int) -> list[Step]:
        """The latest commits that changed files that count, oldest first.

        Args:
            count: of them; the latest three of each kind are among them, however old, each after
                the one before it.
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
        """Have the branch `followed` be at this commit."""
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
        """What a commit did to files that count; None for nothing."""
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
    """The clone that a file is committed in, with the whole history; None for none."""
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
    """Opens repositories of other accounts too: nothing of them is run."""
    checked = pygit2.settings.owner_validation
    pygit2.settings.owner_validation = False
    try:
        yield
    finally:
        pygit2.settings.owner_validation = checked
