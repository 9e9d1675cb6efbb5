"""Files that patterns match, as a source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from rag_assets.common.errors import ConfigurationError, DocumentVanished, ListingFailed
from rag_assets.ingest.parsing.media_types import PLAIN, media_type_of
from rag_assets.ingest.sources.files import DEFAULT_MAX_BYTES, storable_time
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.model import ListedDocument, document_id, uri_of
from rag_assets.ingest.sources.roots import (
    FolderIdentity,
    Roots,
    home_of_owner,
    is_reached_by_link,
    require_no_link,
    without_system_link,
)
from rag_assets.ingest.sources.safe_files import stream_file
from rag_assets.systems.agent_docs.globs import FoundFile, GlobRoot, expand, lies_below, roots_of
from rag_assets.systems.agent_docs.stores import passage_source


class GlobsConfig(SourceConfig):
    """Files that patterns match, as a shell expands them: case counts, hidden files match.

    Attributes:
        name: the source's given name; part of every document's identity.
        base: the folder that relative patterns begin in; operators only. No link is followed out
            of it, or out of the folder that another pattern begins in. Neither of these may be
            reached by a link; see the root of files.
        follow_root_link: follow such a link, also when it leads to another folder later.
        within: folders that all patterns must begin in, links resolved; none: any folder. Tenants
            made from agents have their base, and what the user's own file allows.
        patterns: `*`, `?` and `[…]` within a folder, `**` across folders, `~`, absolute ones.
        agent: the id that the ids of passages begin with; by default the source's name.
        max_bytes: a larger file is listed, but reading it is refused.
        scope: the access scope of its documents, where it is not the tenant's.
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
    def _usable(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        if not all(pattern.strip() and "\0" not in pattern for pattern in patterns):
            raise ValueError("a pattern has a character, and none of them is NUL")
        return patterns


class GlobsSource:
    """Lists and reads the files that patterns match.

    Args:
        config: the patterns; its base is absolute.
        roots: the folders that they may begin in.

    Raises:
        ConfigurationError: a pattern begins where nothing may be read.
    """

    def __init__(self, config: GlobsConfig, roots: Roots) -> None:
        self._config = config
        self._base = Path(os.path.normpath(config.base))
        self._home = _home_of(config)
        self._state = tuple(os.path.realpath(folder) for folder in roots.forbidden)
        self._roots = roots_of(config.patterns, self._base, self._home)
        self._follows_links = config.follow_root_link or bool(roots.allowed)
        self._folders: Mapping[str, FolderIdentity] = {}
        for root in self._roots:
            _require_within(config, root.folder)
            _require_outside(config.name, root.folder.resolve(), roots)

    @property
    def name(self) -> str:
        """The source's given name."""
        return self._config.name

    @property
    def max_bytes(self) -> int:
        """Size in bytes above which reading a file is refused."""
        return self._config.max_bytes

    @property
    def folders(self) -> Mapping[str, FolderIdentity]:
        """The folders that patterns begin in and mount points below them; see ReadsFolders."""
        return self._folders

    def place_of(self, folder: str) -> Path:
        """The place of one of `folders`."""
        return Path(os.path.realpath(self._base / folder))

    def list(self) -> Iterator[ListedDocument]:
        """The matching files, each once; what lies in the project's own state matches nothing.

        Raises:
            ListingFailed: the base or a folder below it cannot be listed, or the patterns visit
                too many files.
        """
        if not os.path.isdir(self._base):  # noqa: PTH112 - Path's raises where it may not look
            raise ListingFailed(
                f"source {self.name}: the base {str(self._base)!r} is missing",
                hint="create it, or mount what belongs there",
            )
        roots = self._identities()
        try:
            found = expand(self._config.patterns, self._base, self._home)
        except ConfigurationError as error:
            raise ListingFailed(f"source {self.name}: {error.message}", hint=error.hint) from None
        if found.unreadable:
            raise ListingFailed(
                f"source {self.name}: {found.unreadable[0]!r} cannot be listed",
                hint="let the service's user read it, or begin the patterns elsewhere",
            )
        if self._identities() != roots:
            raise ListingFailed(f"source {self.name}: a root was replaced while it was listed")
        for file in found.files:
            if not self._is_state(os.path.realpath(file.place)):
                yield self._listed(file)
        mounts = {self._path_of(place): folder for place, folder in found.mounts.items()}
        self._folders = {**mounts, **roots}

    def read(self, document_path: str, *, max_bytes: int) -> bytes:
        """The content of a file; see DocumentSource.read."""
        return b"".join(self.stream(document_path, max_bytes=max_bytes))

    def stream(self, document_path: str, *, max_bytes: int) -> Iterator[bytes]:
        """The content of a file in pieces; see DocumentSource.stream."""
        real = os.path.realpath(self._base / document_path)
        if self._is_state(real) or not self._may_be_read(self._base / document_path, real):
            raise DocumentVanished(f"no pattern matches it any more: {document_path!r}")
        # Links were followed above; whoever replaces a folder by one meanwhile is refused.
        yield from stream_file(Path("/"), real.removeprefix("/"), max_bytes=max_bytes)

    def _identities(self) -> dict[str, FolderIdentity]:
        """The folders that no link leads out of, as far as they are there.

        Raises:
            ListingFailed: one is reached by a link.
        """
        found = {}
        for within in {root.within for root in self._roots}:
            if not self._follows_links:
                self._require_no_link(within)
            identity = FolderIdentity.at(Path(os.path.realpath(within)))
            if identity is not None:
                path = "" if within == self._base else self._path_of(str(within))
                of_link = self._config.follow_root_link
                found[path] = identity.as_file_system() if of_link else identity
        return found

    def _require_no_link(self, within: Path) -> None:
        try:
            require_no_link(without_system_link(within))
        except ListingFailed as error:
            raise ListingFailed(f"source {self.name}: {error.message}", hint=error.hint) from None

    def _path_of(self, place: str) -> str:
        """A path below the base, or an absolute one of what lies elsewhere."""
        return place.removeprefix(os.path.join(self._base, ""))  # noqa: PTH118 - of many files

    def _listed(self, file: FoundFile) -> ListedDocument:
        path = self._path_of(file.place)
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

    def _may_be_read(self, place: Path, real: str) -> bool:
        """Whether a place lies below where a pattern begins, links followed."""
        return any(
            _is_below(os.path.normpath(place), root.folder)
            and _is_below(real, os.path.realpath(root.within))
            and (self._follows_links or not is_reached_by_link(without_system_link(root.within)))
            for root in self._roots
        )

    def _is_state(self, real: str) -> bool:
        return any(_is_below(real, folder) for folder in self._state)


def _require_within(config: GlobsConfig, root: Path) -> None:
    if config.within and not lies_below(root, config.within):
        raise ConfigurationError(
            f"source {config.name}: {root.resolve()} lies beyond {config.within[0]}",
            hint="move the documents there, or allow their folder in the user's own file, as in"
            " `rag: {allow: [~/notes]}` in ~/.config/swebash/agents.yaml",
        )


def _require_outside(name: str, root: Path, roots: Roots) -> None:
    """Refuse a root in the project's own state, or outside the allowed ones.

    One above the project's state may be read: what is in the state is left out.
    """
    Roots(roots.allowed, ()).require(name, root)
    state = [folder for folder in roots.forbidden if root.is_relative_to(folder.resolve())]
    Roots((), tuple(state)).require(name, root)


def _is_below(path: str, folder: str | Path) -> bool:
    return path == str(folder) or path.startswith(os.path.join(folder, ""))  # noqa: PTH118


def _absolute(config: GlobsConfig, base: Path) -> GlobsConfig:
    return config.model_copy(update={"base": base / config.base})


def _build(config: GlobsConfig, context: SourceContext) -> GlobsSource:
    roots = Roots(context.allowed_roots, context.forbidden_roots)
    return GlobsSource(_absolute(config, context.base), roots)


def _home_of(config: GlobsConfig) -> Path:
    """The folder that `~` stands for in patterns; any folder where there is none, nor is needed."""
    try:
        return home_of_owner()
    except ConfigurationError:
        if any(pattern.startswith("~") for pattern in config.patterns):
            raise
        return Path("/")


def _watched(config: GlobsConfig) -> tuple[Path, ...]:
    """The folders that patterns begin in; none if one of them is better listed than watched."""
    roots: list[GlobRoot] = roots_of(config.patterns, config.base, _home_of(config))
    folders = tuple(dict.fromkeys(root.folder for root in roots))
    too_wide = {Path("/"), _home_of(config)}
    return () if too_wide.intersection(folders) else folders


def shown_path(path: str) -> str:
    """A path as agents are told of it: bytes that are no UTF-8 are escaped by backslashes."""
    return path.encode("utf-8", "backslashreplace").decode()


def _passage_source(config: GlobsConfig, path: str) -> str:
    return passage_source(config.agent or config.name, shown_path(path))


GLOBS = SourceKind(
    "globs",
    GlobsConfig,
    _build,
    path_fields=("base",),
    folders=_watched,
    source_types=("file",),
    passage_source=_passage_source,
)
