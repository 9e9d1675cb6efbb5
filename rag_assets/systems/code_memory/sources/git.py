"""A Git repository as a source: the files of a commit or of the worktree."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, field_validator

from rag_assets.common.errors import (
    ConfigurationError,
    DocumentTooLarge,
    DocumentVanished,
    ListingFailed,
)
from rag_assets.common.hashing import compute_key
from rag_assets.ingest.sources.disk import (
    PIECE_BYTES,
    DiskReader,
    FolderIdentity,
    Roots,
    encode_folders,
    format_size,
    require_no_link,
)
from rag_assets.ingest.sources.files import clamp_time
from rag_assets.ingest.sources.globs import compile_globs
from rag_assets.ingest.sources.kinds import (
    OriginDescription,
    SourceConfig,
    SourceContext,
    SourceKind,
)
from rag_assets.ingest.sources.model import (
    FUTURE_NS,
    RACY_NS,
    ListedDocument,
    SourceMetadata,
    build_uri,
    compute_document_id,
)
from rag_assets.systems.code_memory.derived.model import MEDIA_TYPE as DERIVED_TYPE
from rag_assets.systems.code_memory.sources.repositories.attributes import Attributes
from rag_assets.systems.code_memory.sources.repositories.exclusion import Exclusion
from rag_assets.systems.code_memory.sources.repositories.names import find_repository_type
from rag_assets.systems.code_memory.sources.repositories.objects import REGULAR, TreeFile
from rag_assets.systems.code_memory.sources.repositories.repository import WORKTREE, Repository
from rag_assets.systems.code_memory.sources.repositories.worktree import (
    Worktree,
    WorktreeFile,
    get_file_identity,
    read_info_attributes,
    read_unchanged,
)
from rag_assets.systems.code_memory.sources.scip_file import ScipFiles
from rag_assets.systems.code_memory.symbols.source_types import SOURCE_TYPES, get_type_of_path

DEFAULT_MAX_BYTES = 1 << 20
MAX_CONFIGURED_BYTES = 64 << 20
"""Largest allowed max_bytes: memory must hold the whole content of a file several times."""

_MAX_LISTING_ATTEMPTS = 3
"""Maximum number of attempts to list a worktree while checkouts change it."""

UNDATED: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Date of every document. Git dates commits, not contents, and a checkout changes each mtime."""

_PATH: Final = r"^/?[^\x00-\x1f/]+(/[^\x00-\x1f/]+)*$"

_METADATA: Final = SourceMetadata(modified_at=UNDATED)


class GitConfig(SourceConfig):
    """The configuration of a Git repository.

    Files that Git ignores, submodules, links, LFS pointers, and binary, vendored and generated
    files are left out. `linguist-*` attributes take precedence over a decision by file name. Code
    in the repository is never run.

    Attributes:
        name: the source's given name; part of every document's identity.
        root: the top folder of its worktree, or a bare repository; only operators set it. Neither
            this folder nor one above it may be a link; see the root of files.
        follow_root_link: follow such a link, even if it later leads to another repository.
        ref: `worktree`, the files including uncommitted changes; `HEAD`; or the name of a branch, a
            tag or a commit.
        include: globs below the root; later globs override earlier ones, and `!` negates a glob. By
            default all files with a type that is known by name, including source code.
        exclude: globs below the root; matching files are left out.
        max_bytes: larger files are left out.
        scip: paths of SCIP indexes below the root, or absolute paths; only operators set them. An
            `index.scip` in the root or next to a manifest need not be named.
        scope: the access scope of its documents, if it differs from the tenant's.
    """

    type: Literal["git"] = "git"
    root: Path
    follow_root_link: bool = False
    ref: str = Field(default=WORKTREE, min_length=1, max_length=1_000)
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_bytes: int = Field(default=DEFAULT_MAX_BYTES, gt=0, le=MAX_CONFIGURED_BYTES)
    scip: tuple[Annotated[str, Field(pattern=_PATH, max_length=4_096)], ...] = ()

    @field_validator("include", "exclude")
    @classmethod
    def _require_valid_globs(cls, globs: tuple[str, ...]) -> tuple[str, ...]:
        compile_globs(globs, ignore_case=True)
        return globs

    @field_validator("scip")
    @classmethod
    def _require_plain_paths(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        if any(part in {".", ".."} for path in paths for part in path.split("/")):
            raise ValueError("the path must not contain the parts `.` and `..`")
        return paths


_ListedVersion: TypeAlias = tuple[str | None, os.stat_result | None]
"""How a document was listed: as a blob of a commit, or as a worktree file with its metadata."""


class GitSource:
    """The documents of one Git repository below folders that may be read.

    Methods raise ListingFailed if the repository is missing or damaged, or if the ref does not
    exist.

    Attributes:
        max_bytes: size in bytes above which a file is not read.
        disk: limits the time of disk reads; see DiskSource.
        folders: the root and the mount points in the worktree; see FolderSource.

    Raises:
        ConfigurationError: the root is not an allowed folder.
    """

    def __init__(self, config: GitConfig, roots: Roots | None = None) -> None:
        self._config = config
        self.name, self.max_bytes = config.name, config.max_bytes
        self._roots = roots or Roots()
        self.disk = DiskReader(config.name, config.root)
        self._root = self.disk.locate(self._roots, follow_link=config.follow_root_link)
        self._indexes = ScipFiles(self._root, config.scip)
        for path in config.scip:
            self._roots.require(self.name, Path(os.path.realpath(self._root / path)))
        self.folders: Mapping[str, FolderIdentity] = {}
        self._left_out: Counter[str] = Counter()
        self._listed: dict[str, _ListedVersion] = {}

    @property
    def left_out(self) -> Mapping[str, int]:
        """Return the number of files that each exclusion rule left out of the last listing."""
        return dict(self._left_out)

    def locate_folder(self, folder: str) -> Path:
        """Return the path of a folder in `folders`."""
        return self._root / folder

    def list(self) -> Iterator[ListedDocument]:
        """Yield the selected files, sorted by path.

        The ref is resolved to a commit once. A commit made meanwhile belongs to the next listing.
        """
        self._left_out.clear()
        self._listed.clear()
        yield from self.disk.iter_items(self._list())

    def _list(self) -> Iterator[ListedDocument]:
        try:
            repository = self._open()
            if self._config.ref == WORKTREE:
                worktree = _read_worktree(repository)[1]
                folders = self._select_folders(worktree.folders)
                yield from self._iter_worktree_documents(worktree)
            else:
                folders = self._select_folders()
                yield from self._iter_commit_documents(repository)
            self.folders = folders
        except ListingFailed as error:
            raise self._add_source_name(error) from error

    def state(self) -> str:
        """Return a hash of everything that determines the listing."""
        return self.disk.call(self._compute_state)

    def _compute_state(self) -> str:
        try:
            repository = self._open()
            info = (read_info_attributes(repository.folders) or b"").hex()
            if self._config.ref != WORKTREE:
                tree = repository.resolve_tree(self._config.ref)
                indexes = _list_index_state(self._indexes.find())
                return compute_key(
                    "git", tree, info, encode_folders(self._select_folders()), *indexes
                )
            tree, worktree = _read_worktree(repository)
        except ListingFailed as error:
            raise self._add_source_name(error) from error
        file_states = [_get_file_state(file) for file in worktree.files.values()]
        folders = encode_folders(self._select_folders(worktree.folders))
        attributes = worktree.attributes.compute_state(worktree.files)
        indexes = _list_index_state(self._indexes.find(worktree.files))
        state = tree, info, repository.autocrlf, file_states, attributes, folders
        return compute_key("git", *state, *indexes)

    def read(self, document_path: str, *, max_bytes: int) -> bytes:
        """Return the content of one file; see DocumentSource.read."""
        return b"".join(self.stream(document_path, max_bytes=max_bytes))

    def stream(self, document_path: str, *, max_bytes: int) -> Iterator[bytes]:
        """Yield the content of one file in blocks of bytes; see DocumentSource.stream."""
        return self.disk.iter_content(self._read_pieces(document_path, max_bytes), document_path)

    def _read_pieces(self, document_path: str, max_bytes: int) -> Iterator[bytes]:
        if document_path in self._indexes:
            yield self._indexes.read(document_path).encode()
            return
        try:
            content, reason = self._read_content(document_path, max_bytes), None
        except ListingFailed as error:
            content, reason = None, error
        if content is None:
            raise DocumentVanished(f"deleted since it was listed: {document_path!r}") from reason
        if len(content) > max_bytes:
            raise _build_too_large_error(document_path, max_bytes)
        for start in range(0, len(content), PIECE_BYTES):
            yield content[start : start + PIECE_BYTES]

    def describe(self, paths: Collection[str] = ()) -> OriginDescription:
        """Describe the repository for hits, and list which of `paths` differ from its commit."""
        return self.open_description()(paths)

    def open_description(self) -> Callable[[Collection[str]], OriginDescription]:
        """Open the repository once, and return a function that works like describe()."""
        repository = self._open()
        return lambda paths: repository.describe(repository.resolve_commit(self._config.ref), paths)

    def open_commit(self) -> tuple[Repository, str | None]:
        """Return the opened repository and the id of the commit that the ref resolves to."""
        repository = self._open()
        return repository, repository.resolve_commit(self._config.ref)

    def _select_folders(
        self, listed: Mapping[str, FolderIdentity] = MappingProxyType({})
    ) -> dict[str, FolderIdentity]:
        """Return the folders to remember: the listed folders, or the root if none are listed."""
        root = listed.get("") or FolderIdentity.from_path(self._root)
        if root is None:
            raise ListingFailed(
                f"the root {str(self._root)!r} does not exist",
                hint="create the folder, or mount the volume that contains it",
            )
        return {**listed, "": root.as_file_system() if self._config.follow_root_link else root}

    def _open(self) -> Repository:
        require_no_link(self._root)
        repository = Repository(self._root)
        common = repository.folders.common
        if not common.is_relative_to(self._root):
            try:
                self._roots.require(self.name, common)
            except ConfigurationError as error:
                raise ListingFailed(error.message, hint=error.hint) from error
        return repository

    def _iter_commit_documents(self, repository: Repository) -> Iterator[ListedDocument]:
        files = repository.list_files(repository.resolve_tree(self._config.ref))
        exclusion = self._build_exclusion(repository.read_attributes(files), files)
        objects = repository.objects
        for path in sorted(files):
            file = files[path]
            if path in self._indexes or self._count_if_excluded(exclusion.find_name_rule(path)):
                continue
            size = objects.read_size(file.oid, "blob")
            if self._count_if_excluded("too-large" if size > self.max_bytes else None):
                continue
            content = objects.read_sized(file.oid, "blob")
            if not self._count_if_excluded(exclusion.find_content_rule(path, content)):
                yield self._build_document(path, (file.oid, None), size)
        yield from self._iter_indexes(exclusion, self._indexes.find())

    def _iter_worktree_documents(self, worktree: Worktree) -> Iterator[ListedDocument]:
        exclusion = self._build_exclusion(worktree.attributes, worktree.files)
        listed_at_ns = time.time_ns()
        for path, file in worktree.files.items():
            if path in self._indexes or self._count_if_excluded(exclusion.find_name_rule(path)):
                continue
            is_too_large = worktree.get_size(file) > self.max_bytes
            if self._count_if_excluded("too-large" if is_too_large else None):
                continue
            stored = worktree.read(file, self.max_bytes)
            if stored is None or self._count_if_excluded(
                exclusion.find_content_rule(path, stored.content)
            ):
                continue
            sure = stored.is_certain or _is_settled(file, listed_at_ns)
            blob = stored.blob if sure else None
            size = len(stored.content) if blob else 0
            yield self._build_document(path, (blob, file.file_stat), size)
        yield from self._iter_indexes(exclusion, self._indexes.find(worktree.files))

    def _iter_indexes(
        self, exclusion: Exclusion, indexes: Mapping[str, os.stat_result | None]
    ) -> Iterator[ListedDocument]:
        """Yield the SCIP indexes, even if Git ignores them, unless the source excludes them."""
        for path, file_stat in indexes.items():
            if not self._count_if_excluded("not-included" if exclusion.is_excluded(path) else None):
                listed_document = self._build_document(path, (None, file_stat), 0)
                yield replace(listed_document, media_type=DERIVED_TYPE, source_type="scip")

    def _build_exclusion(
        self, attributes: Attributes, files: Mapping[str, TreeFile | WorktreeFile]
    ) -> Exclusion:
        modes = {path: file.mode for path, file in files.items()}
        return Exclusion(self._config.include, self._config.exclude, attributes, modes)

    def _count_if_excluded(self, rule: str | None) -> bool:
        if rule is None:
            return False
        self._left_out[rule] += 1
        return True

    def _build_document(
        self, path: str, listed_version: _ListedVersion, size: int
    ) -> ListedDocument:
        self._listed[path] = listed_version
        blob, metadata = listed_version
        file_stat = None if blob else metadata
        return ListedDocument(
            source=self.name,
            path=path,
            document_id=compute_document_id(self.name, path),
            uri=build_uri(self.name, path),
            media_type=find_repository_type(path),
            source_type=get_type_of_path(path),
            size=size if file_stat is None else file_stat.st_size,
            mtime_ns=0 if file_stat is None else clamp_time(file_stat.st_mtime_ns),
            ctime_ns=0 if file_stat is None else clamp_time(file_stat.st_ctime_ns),
            inode=0 if file_stat is None else file_stat.st_ino,
            source_metadata=_METADATA,
            version=blob,
        )

    def _read_content(self, path: str, max_bytes: int) -> bytes | None:
        repository, tree = self._opened
        blob, file_stat = self._listed.get(path, (None, None))
        if blob is None:
            committed = repository.find_tree_file(tree, path)
            if committed is not None and committed.mode not in REGULAR:
                committed = None
            if self._config.ref == WORKTREE:
                content = read_unchanged(self._root, path, file_stat, max_bytes)
                if content is not None:
                    return repository.stored.convert(path, content, committed).content
                if not self._is_skipped(repository, path, max_bytes):
                    return None
            if committed is None:
                return None
            blob = committed.oid
        if repository.objects.read_size(blob, "blob") > max_bytes:
            raise _build_too_large_error(path, max_bytes)
        return repository.objects.read(blob, "blob")

    def _is_skipped(self, repository: Repository, path: str, max_bytes: int) -> bool:
        """Return whether a sparse checkout omits a file; raise an error if it is too large."""
        try:
            size = (self._root / path).lstat().st_size
        except (OSError, ValueError):
            return repository.is_skipped(path)
        if size > max_bytes:
            raise _build_too_large_error(path, max_bytes)
        return False

    @cached_property
    def _opened(self) -> tuple[Repository, str]:
        """Return the repository and the id of the tree from which files are read."""
        repository = self._open()
        return repository, repository.resolve_tree(self._config.ref)

    def _add_source_name(self, error: ListingFailed) -> ListingFailed:
        return ListingFailed(f"source {self.name}: {error.message}", hint=error.hint)


def _build_too_large_error(path: str, max_bytes: int) -> DocumentTooLarge:
    return DocumentTooLarge(
        f"{path!r} is larger than the limit of {format_size(max_bytes)}",
        hint="increase max_bytes of the source, or exclude the file",
    )


def _read_worktree(repository: Repository) -> tuple[str, Worktree]:
    """Return the checked-out tree and the worktree, read again if a checkout changed them."""
    for _ in range(_MAX_LISTING_ATTEMPTS):
        before = repository.read_checkout_state()
        tree = repository.resolve_tree(WORKTREE)
        files = repository.list_files(tree)
        worktree = Worktree(repository.folders, repository.stored, files)
        if repository.read_checkout_state() == before:
            break
    return tree, worktree


def _get_file_state(file: WorktreeFile) -> list[str | int | None]:
    if file.file_stat is None:
        return [file.path, file.mode, None if file.tracked is None else file.tracked.oid]
    return [file.path, *get_file_identity(file.file_stat)]


def _list_index_state(indexes: Mapping[str, os.stat_result | None]) -> list[list[str | int | None]]:
    """Return path and identity of each SCIP index, for comparison with a later state."""
    return [
        [path, *(() if file_stat is None else get_file_identity(file_stat))]
        for path, file_stat in indexes.items()
    ]


def _is_settled(file: WorktreeFile, listed_at_ns: int) -> bool:
    """Return whether any later change of the file is certain to change its mtime."""
    if file.file_stat is None:
        return True
    written_at_ns = file.file_stat.st_mtime_ns
    return written_at_ns + RACY_NS <= listed_at_ns or written_at_ns > listed_at_ns + FUTURE_NS


def _build(config: GitConfig, context: SourceContext) -> GitSource:
    absolute = config.model_copy(update={"root": context.base / config.root})
    return GitSource(absolute, Roots(context.allowed_roots, context.forbidden_roots))


GIT = SourceKind(
    *("git", GitConfig, _build),
    path_fields=("root",),
    folder="root",
    # Commits and refs change files below `.git`, which is not watched.
    in_folder=lambda config: config.ref == WORKTREE,
    source_types=SOURCE_TYPES,
    has_files=True,
    describe=lambda config, context: _build(config, context).open_description(),
)
