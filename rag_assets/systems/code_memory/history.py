"""History: the commits that changed a file or some of its lines, read from Git on demand.

History is not indexed, because a repository has many more commits than files, and few are ever
requested. As in `git log -- PATH` and `git log -L`, if a merge has the same file as one of its
parents, only that parent is followed. Renames are not followed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import heappop, heappush
from time import thread_time
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from rag_assets.common.errors import ListingFailed, RagAssetsError
from rag_assets.common.formatting import format_count
from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.kinds import SourceContext
from rag_assets.ingest.sources.model import parse_path
from rag_assets.privacy.masker import get_masker
from rag_assets.systems.code_memory.sources.git import GitSource
from rag_assets.systems.code_memory.sources.repositories.repository import Repository
from rag_assets.tenants.model import Tenant

if TYPE_CHECKING:
    from pygit2 import DiffHunk

Lines: TypeAlias = tuple[int, int]
"""The first and the last line of a definition, counted from 1."""

_SECONDS: Final = 3.0
"""Processor time after which a walk ends, in seconds."""
_MAX_LISTED_COMMITS: Final = 20
"""Maximum number of commits listed for one file or definition."""
_MAX_COMMITS: Final = 50_000
_MAX_PARENTS: Final = 100
"""Maximum parents of a merge that are read, because time is checked only between commits."""
_MAX_COMPARED_BYTES: Final = 2 << 20
"""Maximum size of files that are compared line by line; larger ones are compared as a whole."""
_MAX_SUBJECT_CHARACTERS: Final = 200
_SIGNATURE: Final = re.compile(r"(.*?) ?<[^>]*> (-?\d{1,12})")


class Commit(NamedTuple):
    """A commit, with the time of the commit in seconds of Unix time."""

    id: str
    tree: str
    parents: tuple[str, ...]
    author: str
    time: int
    subject: str

    @property
    def date(self) -> str:
        """Return the day of the commit, in UTC."""
        try:
            return datetime.fromtimestamp(self.time, UTC).strftime("%Y-%m-%d")
        except (OverflowError, ValueError, OSError):
            return "unknown day"


@dataclass(frozen=True, slots=True)
class History:
    """The latest commits that changed a file, or some of its lines.

    Attributes:
        looked_at: number of commits that the walk compared with their parents.
        incomplete: why earlier changes may be missing; "" if all are listed.
    """

    changes: Sequence[Commit]
    looked_at: int
    incomplete: str


def describe_history(
    tenant: Tenant, settings: Settings, uri: str, label: str, lines: Lines | None
) -> Iterator[str]:
    """Yield lines about the commits that changed a file, newest first, and about gaps.

    Args:
        label: the file's path, or the name of a definition with its location.
        lines: the lines of the definition; None for the whole file.
    """
    yield f"{label}:"
    path = parse_path(uri)
    try:
        source = _find_source(tenant, settings, uri.partition("/")[0])
        if source is None:
            yield "  its source is not a Git repository"
            return
        repository, commit = source.open_commit()
        history = History((), 0, "nothing is committed yet")
        if commit is not None:
            history = HistoryWalk(repository, path).follow(commit, lines)
        differs = repository.describe(commit, [path]).differing
    except (RagAssetsError, OSError):  # The error message contains folders of this machine.
        yield f"  the repository cannot be read here: git log -- {shlex.quote(path)}"
        return
    masker = get_masker(settings.local)
    for change in history.changes:
        shown_subject = masker.text(f"{change.subject}  ({change.author})")
        yield f"  {change.date}  {change.id[:9]}  {shown_subject}"
    looked_at = format_count(history.looked_at, "commit")
    yield f"  {looked_at} looked at, {history.incomplete or 'back to the first with this path'}"
    if differs:
        yield "  the file has changes that are not committed: its lines may have moved"


def _find_source(tenant: Tenant, settings: Settings, name: str) -> GitSource | None:
    config = next((source for source in tenant.sources if source.name == name), None)
    kind = None if config is None else tenant.source_kind(config)
    context = SourceContext(base=settings.home, allowed_roots=tuple(settings.allowed_roots))
    built = None if kind is None else kind.build(config, context)
    return built if isinstance(built, GitSource) else None


class HistoryWalk:
    """A walk from a commit back to its ancestors, newest first, that reads changes of a file."""

    def __init__(self, repository: Repository, path: str) -> None:
        self._repository, self._path = repository, path
        self._waiting: list[tuple[int, int, Commit, str, Lines | None]] = []
        self._seen: set[str] = set()
        self._cut_off = ""

    def follow(
        self, commit: str, lines: Lines | None = None, most: int = _MAX_LISTED_COMMITS
    ) -> History:
        """Return the latest `most` commits that changed the file.

        Args:
            commit: id of the commit at which to start.
            lines: lines of the file in that commit; commits that did not change them are skipped.

        Raises:
            ListingFailed: the commit, or the file in it, cannot be read.
        """
        changes: list[Commit] = []
        looked_at = 0
        last = thread_time() + _SECONDS
        self._queue_commit(self._read_commit(commit), lines)
        while self._waiting:
            if len(changes) == most:
                return History(changes, looked_at, f"only the last {most} are listed")
            if thread_time() > last or looked_at == _MAX_COMMITS:
                oldest = self._waiting[0][2].date
                return History(changes, looked_at, f"commits before {oldest} were not looked at")
            _, _, current, blob, wanted_lines = heappop(self._waiting)
            looked_at += 1
            if self._has_changed(current, blob, wanted_lines):
                changes.append(current)
        return History(changes, looked_at, self._cut_off)

    def _has_changed(self, commit: Commit, blob: str, lines: Lines | None) -> bool:
        """Return whether a commit changed the lines; also queue the parents to follow."""
        earlier: list[tuple[Commit, Lines | None]] = []
        is_changed = True
        for parent in self._iter_parents(commit):
            former = self._find_blob(parent)
            if former == blob:
                self._queue_commit(parent, lines)
                return False
            if former is None:
                continue
            wanted = lines
            if lines is not None and (compared := self._compare_versions(former, blob)) is not None:
                wanted, is_touched = _map_lines_back(compared, lines)
                is_changed = is_changed and is_touched
                if wanted is None:
                    continue
            earlier.append((parent, wanted))
        for parent, wanted in earlier:
            self._queue_commit(parent, wanted)
        return is_changed

    def _queue_commit(self, commit: Commit, lines: Lines | None) -> None:
        blob = self._find_blob(commit)
        if commit.id not in self._seen and blob is not None:
            self._seen.add(commit.id)
            heappush(self._waiting, (-commit.time, len(self._seen), commit, blob, lines))

    def _iter_parents(self, commit: Commit) -> Iterator[Commit]:
        if len(commit.parents) > _MAX_PARENTS:
            self._cut_off = f"{commit.id[:9]} has more than {_MAX_PARENTS} parents"
        for id_ in commit.parents[:_MAX_PARENTS]:
            try:
                yield self._read_commit(id_)
            except ListingFailed:  # The history of a shallow clone ends here.
                self._cut_off = f"the repository has no commits before {commit.id[:9]}"

    def _read_commit(self, id_: str) -> Commit:
        return _parse_commit(id_, self._repository.objects.read(id_, "commit"))

    def _find_blob(self, commit: Commit) -> str | None:
        tree_file = self._repository.find_tree_file(commit.tree, self._path)
        return None if tree_file is None else tree_file.oid

    def _compare_versions(self, former: str, blob: str) -> list[DiffHunk] | None:
        """Return the differences between two versions; None if one is too large to compare."""
        import pygit2

        objects = self._repository.objects
        if any(objects.read_size(oid, "blob") > _MAX_COMPARED_BYTES for oid in (former, blob)):
            return None
        old, new = objects.read(former, "blob"), objects.read(blob, "blob")
        heuristic = pygit2.enums.DiffOption.INDENT_HEURISTIC
        patch = pygit2.Patch.create_from(old, new, flag=heuristic, context_lines=0)
        return list(patch.hunks)


def _map_lines_back(hunks: Sequence[DiffHunk], lines: Lines) -> tuple[Lines | None, bool]:
    """Return the range of lines before a change, if any, and whether the change touched them.

    In a hunk, the start of an empty range is the line before the range.
    """
    first, last = lines
    shift_first = shift_last = 0
    is_touched = False
    for hunk in hunks:
        # A removal lies between two lines; for other changes, start and end are the first and last
        # new line.
        start = hunk.new_start if hunk.new_lines else hunk.new_start + 1
        end = hunk.new_start + hunk.new_lines - 1 if hunk.new_lines else hunk.new_start
        moved = hunk.old_lines - hunk.new_lines
        if end < first and start <= first:
            shift_first += moved
            shift_last += moved
        elif start <= last:
            is_touched = True
            old_start = hunk.old_start if hunk.old_lines else hunk.old_start + 1
            if start <= first:
                shift_first = old_start - first
            shift_last = (
                old_start + hunk.old_lines - 1 - last if end >= last else shift_last + moved
            )
    former = first + shift_first, last + shift_last
    return (former if former[0] <= former[1] else None), is_touched


def _parse_commit(id_: str, content: bytes) -> Commit:
    header, _, message = content.partition(b"\n\n")
    values: dict[bytes, list[bytes]] = {}
    for line in header.split(b"\n"):
        key, _, value = line.partition(b" ")
        values.setdefault(key, []).append(value)
    encoding = values.get(b"encoding", [b"utf-8"])[0].decode("ascii", "replace")
    author = _SIGNATURE.match(_decode_text(values.get(b"author", [b""])[0], encoding))
    committer = _SIGNATURE.match(_decode_text(values.get(b"committer", [b""])[0], encoding))
    subject = next(iter(_decode_text(message, encoding).strip().splitlines()), "")
    return Commit(
        id_,
        _decode_text(values.get(b"tree", [b""])[0], "ascii"),
        tuple(_decode_text(parent, "ascii") for parent in values.get(b"parent", ())),
        author[1] if author else "unknown",
        int(committer[2]) if committer else 0,
        subject[:_MAX_SUBJECT_CHARACTERS],
    )


def _decode_text(value: bytes, encoding: str) -> str:
    try:
        return value.decode(encoding, "replace")
    except LookupError:
        return value.decode("utf-8", "replace")
