"""The source of terms: every line of one file is a document."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from rag_assets.common.errors import DocumentVanished, ListingFailed
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.model import ListedDocument, build_uri, compute_document_id


class TermsConfig(SourceConfig):
    """Terms with their definitions.

    Attributes:
        file: a file with one line per term, `term: definition`.
    """

    type: str = "terms"
    file: Path


class TermsSource:
    """Lists and reads the terms of one file."""

    max_bytes = 65_536

    def __init__(self, config: TermsConfig, context: SourceContext) -> None:
        self.name = config.name
        self._file = context.base / config.file

    def list(self) -> Iterator[ListedDocument]:
        """Yield the terms, with hashes of their definitions."""
        for term, line in self._lines().items():
            digest = hashlib.sha256(line.encode()).hexdigest()
            path = f"{term}.txt"
            yield ListedDocument(
                source=self.name,
                path=path,
                document_id=compute_document_id(self.name, path),
                uri=build_uri(self.name, path),
                media_type="text/plain",
                size=len(line.encode()),
                mtime_ns=0,
                ctime_ns=0,
                inode=0,
                source_type="term",
                content_sha256=digest,
            )

    def read(self, document_path: str, *, max_bytes: int) -> bytes:
        """Return the line of a term."""
        try:
            return self._lines()[document_path.removesuffix(".txt")].encode()[:max_bytes]
        except KeyError:
            raise DocumentVanished(f"gone since it was listed: {document_path!r}") from None

    def stream(self, document_path: str, *, max_bytes: int) -> Iterator[bytes]:
        """Yield the line of a term in one part."""
        yield self.read(document_path, max_bytes=max_bytes)

    def _lines(self) -> dict[str, str]:
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ListingFailed(f"{self._file} cannot be read: {type(error).__name__}") from None
        return {line.partition(":")[0].strip(): line for line in lines if ":" in line}


TERMS = SourceKind("terms", TermsConfig, TermsSource, path_fields=("file",))
