"""The source type `globs`: the files that match glob patterns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from rag_assets.common.errors import ConfigurationError, DocumentVanished, ListingFailed
from rag_assets.ingest.parsing.media_types import PLAIN, media_type_of
from rag_assets.ingest.sources.disk import (
    FolderIdentity,
    Roots,
    home_of_owner,
    is_reached_by_link,
    require_no_link,
    stream_file,
    without_system_link,
)
from rag_assets.ingest.sources.files import DEFAULT_MAX_BYTES, storable_time
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.model import ListedDocument, document_id, uri_of
from rag_assets.systems.agent_docs.globs import MatchedFile, expand, find_roots, is_inside
from rag_assets.systems.agent_docs.stores import passage_id_prefix


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
        config: the configuration, with an absolute base.
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
            _require_allowed(config, root.folder, roots)

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
        """Return the start folders of patterns, and mount points inside them; see ReadsFolders."""
        return self._folders

    def place_of(self, folder: str) -> Path:
        """Return the real path of one of `folders`."""
        return Path(os.path.realpath(self._base / folder))

    def list(self) -> Iterator[ListedDocument]:
        """List the matching files, each once, except those in the project's own state.

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
            matches = expand(self._config.patterns, self._base, self._home)
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
                yield self._describe(file)
        mounts = {self._source_path(path): identity for path, identity in matches.mounts.items()}
        self._folders = {**mounts, **before}

    def read(self, document_path: str, *, max_bytes: int) -> bytes:
        """Return the content of a file; see DocumentSource.read."""
        return b"".join(self.stream(document_path, max_bytes=max_bytes))

    def stream(self, document_path: str, *, max_bytes: int) -> Iterator[bytes]:
        """Yield the content of a file in pieces; see DocumentSource.stream."""
        path = self._base / document_path
        real = os.path.realpath(path)
        if self._is_forbidden(real) or not self._is_readable(path, real):
            raise DocumentVanished(f"no pattern matches it any more: {document_path!r}")
        # The path contains no links now, and stream_file refuses links that replace its folders
        # later.
        yield from stream_file(Path("/"), real.removeprefix("/"), max_bytes=max_bytes)

    def _read_identities(self) -> dict[str, FolderIdentity]:
        """Return the identity of each existing folder that links must not lead out of.

        Raises:
            ListingFailed: a folder is reached through a link.
        """
        identities = {}
        for folder in {root.boundary for root in self._roots}:
            if not self._follows_links:
                try:
                    require_no_link(without_system_link(folder))
                except ListingFailed as error:
                    what = f"source {self.name}: {error.message}"
                    raise ListingFailed(what, hint=error.hint) from None
            identity = FolderIdentity.at(Path(os.path.realpath(folder)))
            if identity is not None:
                path = "" if folder == self._base else self._source_path(str(folder))
                follows_link = self._config.follow_root_link
                identities[path] = identity.as_file_system() if follows_link else identity
        return identities

    def _source_path(self, path: str) -> str:
        """Return a path relative to the base; absolute if it is outside."""
        return path.removeprefix(os.path.join(self._base, ""))  # noqa: PTH118 - called often

    def _describe(self, file: MatchedFile) -> ListedDocument:
        path = self._source_path(file.location)
        return ListedDocument(
            source=self.name,
            path=path,
            document_id=document_id(self.name, path),
            uri=uri_of(self.name, path),
            media_type=media_type_of(path) or PLAIN,
            size=file.size,
            mtime_ns=storable_time(file.mtime_ns),
            ctime_ns=storable_time(file.ctime_ns),
            inode=file.inode,
        )

    def _is_readable(self, path: Path, real: str) -> bool:
        """Return whether a path, as written and resolved, is inside a pattern's folder."""
        return any(
            _has_prefix(os.path.normpath(path), root.folder)
            and _has_prefix(real, os.path.realpath(root.boundary))
            and (self._follows_links or not is_reached_by_link(without_system_link(root.boundary)))
            for root in self._roots
        )

    def _is_forbidden(self, real: str) -> bool:
        return any(_has_prefix(real, folder) for folder in self._forbidden)


def _require_allowed(config: GlobsConfig, folder: Path, roots: Roots) -> None:
    """Refuse a folder outside the allowed folders, or in the project's own state.

    A folder that contains the project's state is allowed; files in that state are left out.
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


def _has_prefix(path: str, folder: str | Path) -> bool:
    """Return whether a path, as written, is a folder or inside it."""
    return path == str(folder) or path.startswith(os.path.join(folder, ""))  # noqa: PTH118


def _find_home(config: GlobsConfig) -> Path:
    """Return the folder for `~`; without a home, any folder unless a pattern needs it."""
    try:
        return home_of_owner()
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


def _create(config: GlobsConfig, context: SourceContext) -> GlobsSource:
    roots = Roots(context.allowed_roots, context.forbidden_roots)
    absolute = config.model_copy(update={"base": context.base / config.base})
    return GlobsSource(absolute, roots)


def display_path(path: str) -> str:
    """Return a path as agents see it: bytes that are not UTF-8 are escaped by backslashes."""
    return path.encode("utf-8", "backslashreplace").decode()


def _passage_source(config: GlobsConfig, path: str) -> str:
    return passage_id_prefix(config.agent or config.name, display_path(path))


GLOBS = SourceKind(
    "globs",
    GlobsConfig,
    _create,
    path_fields=("base",),
    folders=_find_watched_folders,
    source_types=("file",),
    passage_source=_passage_source,
)
