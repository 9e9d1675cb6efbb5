"""A folder of files as a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.parsing.media_types import DOCUMENT_SUFFIXES, find_media_type
from rag_assets.ingest.sources.disk import DiskReader, FolderIdentity, Roots, stream_file
from rag_assets.ingest.sources.globs import compile_globs
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.model import ListedDocument, build_uri, compute_document_id
from rag_assets.ingest.sources.walk import Selection, walk_root

DEFAULT_INCLUDE = tuple(f"**/*{suffix}" for suffix in DOCUMENT_SUFFIXES)
DEFAULT_MAX_BYTES = 50 * 1024 * 1024

_LATEST_NS = 1 << 62  # the year 2116


class FilesConfig(SourceConfig):
    """The configuration of a folder of files.

    Globs work as in .gitignore, except that they ignore the case of ASCII letters. A file is
    selected if an include glob matches it or a folder above it, and no exclude glob does. `.git` is
    never entered.

    Attributes:
        name: the source's configured name; part of every document's identity.
        root: the folder; only operators can set it. Neither it nor a folder above it may be a
            link, except between folders of RAG_ASSETS_ALLOWED_ROOTS, or directly in `/`, such as
            /home.
        follow_root_link: whether to follow such a link, even if it later leads to another
            folder; for releases that are switched by changing a link.
        include: globs below the root; later globs override, `!` negates. By default all
            document formats, but not source code: a folder may also hold the output of a build.
        exclude: globs below the root; matching files and folders are left out.
        gitignore: whether to apply .gitignore files at and below the root.
        max_bytes: a larger file is listed, but reading it is refused.
        follow_links: links below the root are never followed.
        scope: the access scope of its documents, if it differs from the tenant's.
    """

    type: Literal["files"] = "files"
    root: Path
    follow_root_link: bool = False
    include: tuple[str, ...] = Field(default=DEFAULT_INCLUDE, min_length=1)
    exclude: tuple[str, ...] = ()
    gitignore: bool = True
    max_bytes: int = Field(default=DEFAULT_MAX_BYTES, gt=0)
    follow_links: Literal[False] = False

    @field_validator("include", "exclude")
    @classmethod
    def _require_valid_globs(cls, globs: tuple[str, ...]) -> tuple[str, ...]:
        compile_globs(globs, ignore_case=True)
        return globs


class FilesSource:
    """The source of the files in one folder.

    Raises:
        ConfigurationError: the root must not be used.
    """

    def __init__(
        self,
        config: FilesConfig,
        allowed_roots: Iterable[Path] = (),
        forbidden_roots: Iterable[Path] = (),
    ) -> None:
        self.name, self.max_bytes = config.name, config.max_bytes
        self.disk = DiskReader(config.name, config.root)
        self.folders: Mapping[str, FolderIdentity] = {}
        self._follow_root_link = config.follow_root_link
        roots = Roots(tuple(allowed_roots), tuple(forbidden_roots))
        self._root = self.disk.locate(roots, follow_link=config.follow_root_link)
        self._selection = Selection.from_globs(
            config.include, config.exclude, gitignore=config.gitignore
        )

    def locate_folder(self, folder: str) -> Path:
        """Return the absolute path of a folder, given its key in `folders`."""
        return self._root / folder

    def list(self) -> Iterator[ListedDocument]:
        """Yield the selected files, folder by folder in a stable order.

        The listing starts when the first file is requested.

        Raises:
            ListingFailed: a folder could not be listed; the files yielded so far are incomplete.
        """
        name = self.name
        folders: dict[str, FolderIdentity] = {}
        files = self.disk.iter_items(walk_root(self._root, self._selection, folders))
        try:
            for path, facts in files:
                yield ListedDocument(
                    source=name,
                    path=path,
                    document_id=compute_document_id(name, path),
                    uri=build_uri(name, path),
                    media_type=find_media_type(path),
                    size=facts.st_size,
                    mtime_ns=clamp_time(facts.st_mtime_ns),
                    ctime_ns=clamp_time(facts.st_ctime_ns),
                    inode=facts.st_ino,
                )
        except ListingFailed as error:
            raise ListingFailed(f"source {name}: {error.message}", hint=error.hint) from error
        if self._follow_root_link:
            folders[""] = folders[""].as_file_system()
        self.folders = folders

    def read(self, document_path: str, *, max_bytes: int) -> bytes:
        """Return the content of one file; see DocumentSource.read."""
        return b"".join(self.stream(document_path, max_bytes=max_bytes))

    def stream(self, document_path: str, *, max_bytes: int) -> Iterator[bytes]:
        """Yield the content of one file in pieces; see DocumentSource.stream."""
        pieces = stream_file(self._root, document_path, max_bytes=max_bytes)
        return self.disk.iter_content(pieces, document_path)


def _build(config: FilesConfig, context: SourceContext) -> FilesSource:
    absolute = config.model_copy(update={"root": context.base / config.root})
    return FilesSource(absolute, context.allowed_roots, context.forbidden_roots)


FILES = SourceKind(
    *("files", FilesConfig, _build),
    path_fields=("root",),
    folder="root",
    source_types=("file",),
    has_files=True,
)


def clamp_time(nanoseconds: int) -> int:
    """Return a file's time, which users can set, within the range of databases."""
    return max(-_LATEST_NS, min(nanoseconds, _LATEST_NS))
