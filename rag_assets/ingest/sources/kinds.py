"""Source kinds: a name, a configuration and a function that opens the source."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Generic, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from rag_assets.ingest.sources.model import DocumentSource, RecordStore, UploadStore

SourceName = Annotated[str, Field(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$", max_length=63)]


class SourceConfig(BaseModel):
    """The base of every source's configuration; each kind adds its own fields.

    Attributes:
        type: the name of the source's kind.
        name: the source's configured name; part of every document's identity.
        scope: the access scope of the source's documents, if it differs from the tenant's.
        deletion_window_hours: number of hours in which documents that leave the source are
            counted together; if too many leave, a person has to allow more deletions. 0: each
            listing is judged alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str
    name: SourceName
    scope: str | None = Field(default=None, min_length=1, max_length=256)
    deletion_window_hours: int = Field(default=24, ge=0, le=720)


@dataclass(frozen=True, slots=True)
class SourceContext:
    """The installation's folders and the tenant's stores, from which a source is built.

    Attributes:
        base: the folder to which relative paths refer (Settings.home).
        typed: whether the tenant's records have types, including the type "file".
        allowed_roots: folders in which roots must lie (Settings.allowed_roots); empty: any
            folder.
        forbidden_roots: folders with the project's own state (Settings.local, and a local lake
            elsewhere).
    """

    base: Path
    records: RecordStore | None = None
    allowed_roots: tuple[Path, ...] = ()
    forbidden_roots: tuple[Path, ...] = ()
    uploads: UploadStore | None = None
    typed: bool = False


@dataclass(frozen=True, slots=True)
class OriginDescription:
    """The repository, commit and changed paths of a source, which are returned with hits.

    Attributes:
        commit: id of the commit that the ref resolves to; None before the first commit.
        differing: the requested paths whose file in the worktree differs from the commit,
            is missing, or was never committed. None in a bare repository.
    """

    repository: str
    commit: str | None
    differing: frozenset[str] | None


DescribeOrigin: TypeAlias = Callable[[Collection[str]], OriginDescription]
"""A function that describes the origin of a source's files, given the paths that are shown."""

_Config = TypeVar("_Config", bound=SourceConfig)


@dataclass(frozen=True, slots=True)
class SourceKind(Generic[_Config]):
    """One kind of source.

    Attributes:
        build: creates the source; raises ConfigurationError if the source cannot be used.
        pushed: whether an application pushes the documents as records over HTTP, with a
            revision for every change; otherwise a listing finds the documents.
        kept: whether a part of this project, and no application, stores the documents as records in
            the catalog.
        implicit: whether tenants have the source because of their profile; such a source is
            never configured.
        path_fields: fields of the configuration that are paths. Relative paths are relative to
            tenants.yaml, and moving their targets does not change any document.
        folder: the field that names the source's folder, which must exist and is watched; None
            without such a field.
        in_folder: whether every change to the source happens in its folder, outside `.git`;
            True by default.
        folders: the watched folders that a source reads, if no single field names its folder;
            empty if some changes happen outside any folder that can be watched.
        source_types: types that documents can have in addition to the types of chunkers; None:
            any type.
        has_files: whether the documents are files of a folder or a repository, from which a
            system may derive other documents (see Profile.sources_beside).
        describe: opens a source and returns the function that describes the origin of its
            files; raises ListingFailed or OSError if the source cannot be read here.
        passage_source: returns the start of the ids of a document's passages, given the
            document's path; by default the tenant and the printable path.
    """

    name: str
    config: type[_Config]
    build: Callable[[_Config, SourceContext], DocumentSource]
    pushed: bool = False
    kept: bool = False
    pulled: bool = False
    uploaded: bool = False
    implicit: bool = False
    path_fields: tuple[str, ...] = ()
    folder: str | None = None
    in_folder: Callable[[_Config], bool] | None = None
    folders: Callable[[_Config], Sequence[Path]] | None = None
    source_types: tuple[str, ...] | None = None
    has_files: bool = False
    describe: Callable[[_Config, SourceContext], DescribeOrigin] | None = None
    passage_source: Callable[[_Config, str], str] | None = None

    @property
    def holds_records(self) -> bool:
        """Return whether the documents are records in the catalog: pushed, pulled or kept."""
        return self.pushed or self.kept or self.pulled

    @property
    def reads_folders(self) -> bool:
        """Return whether the documents are files in folders, which may be unmounted."""
        return self.folder is not None or self.folders is not None

    def get_folder(self, config: _Config) -> Path | None:
        """Return the source's folder from its configuration; None if its kind has no folder."""
        return Path(getattr(config, self.folder)) if self.folder else None

    def get_watched_folders(self, config: _Config) -> tuple[Path, ...]:
        """Return the folders that are watched for changes of a source."""
        if self.folders is not None:
            return tuple(self.folders(config))
        folder = self.get_folder(config)
        return () if folder is None else (folder,)

    def reports_every_change(self, config: _Config) -> bool:
        """Return whether watched folders or the catalog report every change."""
        if self.holds_records or self.uploaded:
            return True
        if self.folders is not None:
            return bool(self.folders(config))
        return self.folder is not None and (self.in_folder is None or self.in_folder(config))
