"""Glob patterns as in a shell, and the source type `globs`: the files that match patterns.

`*`, `?` and `[…]` match within a folder, `**` matches across folders, `~` is the home folder.
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
from typing import Final, Literal, NamedTuple

from pydantic import Field, field_validator

from rag_assets.common.errors import ConfigurationError, DocumentVanished, ListingFailed
from rag_assets.ingest.parsing.media_types import PLAIN, find_media_type
from rag_assets.ingest.sources.disk import (
    MAX_MOUNTS,
    FolderIdentity,
    Roots,
    find_owner_home,
    is_reached_by_link,
    require_no_link,
    resolve_system_link,
    stream_file,
)
from rag_assets.ingest.sources.files import DEFAULT_MAX_BYTES, clamp_time
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.model import ListedDocument, build_uri, compute_document_id
from rag_assets.systems.agent_docs.stores import build_passage_id_prefix

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
        unreadable: folders that could not be listed, and files in folders that cannot be entered.
        mounts: identity of each visited mount point, by its path.
    """

    files: tuple[MatchedFile, ...]
    empty: tuple[str, ...]
    unreadable: tuple[str, ...] = ()
    mounts: Mapping[str, FolderIdentity] = field(default_factory=dict)


class GlobRoot(NamedTuple):
    """The folders that limit the matches of a pattern.

    Attributes:
        folder: the deepest folder that contains all matches.
        boundary: the folder that links must not lead out of.
    """

    folder: Path
    boundary: Path


def expand_patterns(patterns: Sequence[str], base: Path, home: Path | None = None) -> Matches:
    """Find the files that match patterns.

    Raises:
        ConfigurationError: the patterns visit too many entries.
    """
    files: dict[str, MatchedFile] = {}
    empty: list[str] = []
    prefix = os.path.join(os.path.normpath(base), "")  # noqa: PTH118 - strings: this is called often
    walker = _GlobWalker()
    for pattern in patterns:
        root, parts = _split_pattern(pattern, base, home)
        matched = walker.find(root, parts)
        for location in sorted(matched):
            if location not in files:
                status = matched[location]
                path = escape_path(location.removeprefix(prefix))
                facts = status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
                files[location] = MatchedFile(location, path, *facts)
        if not matched:
            empty.append(pattern)
    return Matches(tuple(files.values()), tuple(empty), tuple(walker.unreadable), walker.mounts)


def find_roots(patterns: Sequence[str], base: Path, home: Path | None = None) -> list[GlobRoot]:
    """Return the root of each pattern; see expand_patterns."""
    return [_split_pattern(pattern, base, home)[0] for pattern in patterns]


def find_outside_patterns(
    patterns: Sequence[str], base: Path, allowed: Sequence[Path], home: Path | None = None
) -> dict[str, bool]:
    """Return the patterns with a root outside a base, after links are resolved.

    The value of each pattern states whether its root is inside an allowed path.
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
    """Return whether a path, with links resolved, is one of these folders or inside one."""
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


class _GlobWalker:
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
            for subfolder, level in self._iter_subfolders(folder, depth):
                yield from self._match(subfolder, rest or ("*",), boundary, level)
        elif not _WILDCARD.search(first):
            yield from self._match_path(f"{folder.rstrip('/')}/{first}", rest, boundary, depth)
        else:
            matches = _compile_pattern(first).match
            for entry in self._list_entries(folder):
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

    def _iter_subfolders(self, folder: str, depth: int) -> Iterator[tuple[str, int]]:
        """Yield a folder and all its subfolders with their depths, without following links."""
        pending = [(folder, depth)]
        while pending:
            current, level = pending.pop()
            yield current, level
            if level < _MAX_DEPTH:
                pending += [
                    (entry.path, level + 1)
                    for entry in self._list_entries(current)
                    if entry.is_dir(follow_symlinks=False)
                ]

    def _list_entries(self, folder: str) -> list[os.DirEntry[str]]:
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
        if parent is not None and parent != status.st_dev and len(self.mounts) < MAX_MOUNTS:
            self.mounts[folder] = FolderIdentity(status.st_ino, os.statvfs(folder).f_fsid)


@lru_cache(maxsize=256)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    # Shells accept both `!` and `^` for a negated class.
    return re.compile(fnmatch.translate(pattern.replace("[^", "[!")))


def _resolves_inside(path: str, folder: str) -> bool:
    """Return whether a path, with links resolved, is a folder or inside it."""
    return _is_lexically_inside(os.path.realpath(path), folder)


class GlobsConfig(SourceConfig):
    """Files that match patterns as in a shell: case-sensitive, including hidden files.

    Attributes:
        name: the source's name; part of every document's identity.
        base: the folder of relative patterns; only operators can set it. Links that lead out of it,
            or out of the start folder of any other pattern, are not followed. None of these folders
            may be reached through a link; see the root of `files`.
        follow_root_link: allow such a link, even if it leads to another folder later.
        within: folders that must contain all patterns after links are resolved; empty allows any
            folder. For tenants made from agents, these are the agent's base, and the folders that
            the user's own file allows.
        patterns: `*`, `?` and `[…]` within a folder, `**` across folders, `~`, absolute paths.
        agent: the agent's id, which starts the ids of passages; by default the source's name.
        max_bytes: a larger file is listed but not read.
        scope: the access scope of its documents; by default the tenant's.
    """

    type: Literal["globs"] = "globs"
    base: Path
    follow_root_link: bool = False
    within: tuple[Path, ...] = ()
    patterns: tuple[str, ...] = Field(min_length=1)
    agent: str | None = Field(default=None, min_length=1, max_length=200)
    max_bytes: int = Field(default=DEFAULT_MAX_BYTES, gt=0)

    @field_validator("patterns")
    @classmethod
    def _validate_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        if not all(pattern.strip() and "\0" not in pattern for pattern in patterns):
            raise ValueError("a pattern must not be blank or contain NUL")
        return patterns


class GlobsSource:
    """Lists and reads the files that match patterns.

    Args:
        roots: the folders in which patterns may start.

    Raises:
        ConfigurationError: a pattern starts in a forbidden folder.
    """

    def __init__(self, config: GlobsConfig, roots: Roots) -> None:
        self._config = config
        self._base = Path(os.path.normpath(config.base))
        self._home = _find_home(config)
        self._forbidden = tuple(os.path.realpath(folder) for folder in roots.forbidden)
        self._roots = find_roots(config.patterns, self._base, self._home)
        self._follows_links = config.follow_root_link or bool(roots.allowed)
        self._folders: Mapping[str, FolderIdentity] = {}
        for root in self._roots:
            _require_allowed_folder(config, root.folder, roots)

    @property
    def name(self) -> str:
        """Return the source's name."""
        return self._config.name

    @property
    def max_bytes(self) -> int:
        """Return the maximum size of a file that is read."""
        return self._config.max_bytes

    @property
    def folders(self) -> Mapping[str, FolderIdentity]:
        """Return the start folders of patterns, and mount points inside them; see FolderSource."""
        return self._folders

    def locate_folder(self, folder: str) -> Path:
        """Return the path of one of `folders`, with links resolved."""
        return Path(os.path.realpath(self._base / folder))

    def list(self) -> Iterator[ListedDocument]:
        """List the matching files, each once, except files of this installation's own state.

        Raises:
            ListingFailed: a folder cannot be listed, or the patterns visit too many files.
        """
        if not os.path.isdir(self._base):  # noqa: PTH112 - Path's raises if access is denied
            raise ListingFailed(
                f"source {self.name}: the base {str(self._base)!r} is missing",
                hint="create the folder, or mount its file system",
            )
        before = self._read_identities()
        try:
            matches = expand_patterns(self._config.patterns, self._base, self._home)
        except ConfigurationError as error:
            raise ListingFailed(f"source {self.name}: {error.message}", hint=error.hint) from None
        if matches.unreadable:
            raise ListingFailed(
                f"source {self.name}: {matches.unreadable[0]!r} cannot be listed",
                hint="let the service's user read the folder, or start the patterns in a"
                " different folder",
            )
        if self._read_identities() != before:
            raise ListingFailed(f"source {self.name}: a root was replaced while it was listed")
        for file in matches.files:
            if not self._is_forbidden(os.path.realpath(file.location)):
                yield self._build_listed_document(file)
        mounts = {
            self._get_source_path(path): identity for path, identity in matches.mounts.items()
        }
        self._folders = {**mounts, **before}

    def read(self, document_path: str, *, max_bytes: int) -> bytes:
        """Return the content of a file; see DocumentSource.read."""
        return b"".join(self.stream(document_path, max_bytes=max_bytes))

    def stream(self, document_path: str, *, max_bytes: int) -> Iterator[bytes]:
        """Yield the content of a file in pieces; see DocumentSource.stream."""
        path = self._base / document_path
        real = os.path.realpath(path)
        if self._is_forbidden(real) or not self._is_readable(path, real):
            raise DocumentVanished(f"no pattern matches the file any more: {document_path!r}")
        # The path contains no links now, and stream_file refuses links that replace its folders
        # later.
        yield from stream_file(Path("/"), real.removeprefix("/"), max_bytes=max_bytes)

    def _read_identities(self) -> dict[str, FolderIdentity]:
        """Return the identity of each existing folder that links must not lead out of."""
        identities = {}
        for folder in {root.boundary for root in self._roots}:
            if not self._follows_links:
                try:
                    require_no_link(resolve_system_link(folder))
                except ListingFailed as error:
                    message = f"source {self.name}: {error.message}"
                    raise ListingFailed(message, hint=error.hint) from None
            identity = FolderIdentity.from_path(Path(os.path.realpath(folder)))
            if identity is not None:
                path = "" if folder == self._base else self._get_source_path(str(folder))
                follows_link = self._config.follow_root_link
                identities[path] = identity.as_file_system() if follows_link else identity
        return identities

    def _get_source_path(self, path: str) -> str:
        """Return a path relative to the base; absolute if it is outside."""
        return path.removeprefix(os.path.join(self._base, ""))  # noqa: PTH118 - called often

    def _build_listed_document(self, file: MatchedFile) -> ListedDocument:
        path = self._get_source_path(file.location)
        return ListedDocument(
            source=self.name,
            path=path,
            document_id=compute_document_id(self.name, path),
            uri=build_uri(self.name, path),
            media_type=find_media_type(path) or PLAIN,
            size=file.size,
            mtime_ns=clamp_time(file.mtime_ns),
            ctime_ns=clamp_time(file.ctime_ns),
            inode=file.inode,
        )

    def _is_readable(self, path: Path, real: str) -> bool:
        """Return whether a path is inside a pattern's folder after links are resolved too."""
        return any(
            _is_lexically_inside(os.path.normpath(path), root.folder)
            and _is_lexically_inside(real, os.path.realpath(root.boundary))
            and (self._follows_links or not is_reached_by_link(resolve_system_link(root.boundary)))
            for root in self._roots
        )

    def _is_forbidden(self, real: str) -> bool:
        return any(_is_lexically_inside(real, folder) for folder in self._forbidden)


def _require_allowed_folder(config: GlobsConfig, folder: Path, roots: Roots) -> None:
    """Refuse a folder outside the allowed folders, or within this installation's own state.

    A folder that contains the state is allowed; its files that belong to the state are left out.
    """
    if config.within and not is_inside(folder, config.within):
        raise ConfigurationError(
            f"source {config.name}: {folder.resolve()} is outside {config.within[0]}",
            hint="move the documents there, or allow their folder in the user's own file, as in"
            " `rag: {allow: [~/notes]}` in ~/.config/swebash/agents.yaml",
        )
    real = folder.resolve()
    Roots(roots.allowed, ()).require(config.name, real)
    state = [path for path in roots.forbidden if real.is_relative_to(path.resolve())]
    Roots((), tuple(state)).require(config.name, real)


def _is_lexically_inside(path: str, folder: str | Path) -> bool:
    """Return whether a path is a folder or inside it, judged by the texts of both paths."""
    return path == str(folder) or path.startswith(os.path.join(folder, ""))  # noqa: PTH118


def _find_home(config: GlobsConfig) -> Path:
    """Return the home folder that `~` stands for.

    If it is unknown and no pattern starts with `~`, the result is `/`.

    Raises:
        ConfigurationError: the home folder is unknown, but a pattern starts with `~`.
    """
    try:
        return find_owner_home()
    except ConfigurationError:
        if any(pattern.startswith("~") for pattern in config.patterns):
            raise
        return Path("/")


def _find_watched_folders(config: GlobsConfig) -> tuple[Path, ...]:
    """Return the start folders of patterns; empty if any is too large to be watched."""
    home = _find_home(config)
    roots = find_roots(config.patterns, config.base, home)
    folders = tuple(dict.fromkeys(root.folder for root in roots))
    return () if {Path("/"), home}.intersection(folders) else folders


def _create_source(config: GlobsConfig, context: SourceContext) -> GlobsSource:
    roots = Roots(context.allowed_roots, context.forbidden_roots)
    absolute = config.model_copy(update={"base": context.base / config.base})
    return GlobsSource(absolute, roots)


def escape_path(path: str) -> str:
    """Return a path with bytes that are not UTF-8 escaped by backslashes."""
    return path.encode("utf-8", "backslashreplace").decode()


def _build_id_prefix(config: GlobsConfig, path: str) -> str:
    return build_passage_id_prefix(config.agent or config.name, escape_path(path))


GLOBS = SourceKind(
    "globs",
    GlobsConfig,
    _create_source,
    path_fields=("base",),
    folders=_find_watched_folders,
    source_types=("file",),
    passage_source=_build_id_prefix,
)
