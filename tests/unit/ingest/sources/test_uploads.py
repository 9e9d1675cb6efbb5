import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rag_assets.common.errors import DocumentTooLarge
from rag_assets.common.hashing import sha256_hex
from rag_assets.ingest.parsing.media_types import DOCX, MARKDOWN, PDF
from rag_assets.ingest.sources.diff import hash_documents
from rag_assets.ingest.sources.model import StoredUpload, compute_document_id
from rag_assets.ingest.sources.uploads import (
    MAX_NAME_LENGTH,
    UploadsConfig,
    UploadsSource,
    clean_file_name,
)


@dataclass
class MemoryUploads:
    uploads: list[StoredUpload]
    contents: dict[str, bytes]
    read: int = 0

    def iter_uploads(self, source: str) -> Iterator[StoredUpload]:
        yield from self.uploads

    def stream(self, source: str, path: str) -> Iterator[bytes]:
        self.read += 1
        content = self.contents[path]
        yield content[:3]
        yield content[3:]

    def stream_former(self, source: str, path: str, content_sha256: str) -> None:
        return None


def upload(path: str, name: str, content: bytes) -> StoredUpload:
    id_ = compute_document_id("uploads", path)
    return StoredUpload(path, id_, 5, name, MARKDOWN, len(content), sha256_hex(content), 7)


def source_of(*uploads: StoredUpload, **contents: bytes) -> tuple[UploadsSource, MemoryUploads]:
    store = MemoryUploads(list(uploads), contents)
    return UploadsSource(UploadsConfig(name="uploads", max_bytes=8), store), store


def test_a_listing_reads_no_file_and_no_other_has_the_uri() -> None:
    source, store = source_of(
        upload("a1", "Guide 1.md", b"one"), upload("b2", "Guide 1.md", b"two"), a1=b"one", b2=b"two"
    )
    listed = list(source.list())
    assert [document.uri for document in listed] == ["uploads/a1", "uploads/b2"]
    uris = [document.source_metadata.uri for document in listed]
    assert uris == ["uploads/a1/Guide%201.md", "uploads/b2/Guide%201.md"]
    hashes = [hash_ for _, hash_ in hash_documents(source, listed)]
    assert hashes == [sha256_hex(b"one"), sha256_hex(b"two")]
    assert store.read == 0
    assert [source.read(document.path, max_bytes=8) for document in listed] == [b"one", b"two"]


def test_another_name_or_content_keeps_the_id() -> None:
    before = upload("a1", "Guide.md", b"one")
    after = replace(before, revision=6, file_name="New guide.md")
    (first,) = source_of(before)[0].list()
    (second,) = source_of(after)[0].list()
    assert first.document_id == second.document_id
    assert first.facts != second.facts


def test_a_file_over_the_limit_of_today_is_refused() -> None:
    source, _ = source_of(a1=b"nine byte")
    with pytest.raises(DocumentTooLarge):
        source.read("a1", max_bytes=source.max_bytes)


def test_a_source_accepts_the_types_that_it_names() -> None:
    config = UploadsConfig(name="uploads", media_types=(PDF, DOCX))
    assert config.accepts(PDF)
    assert not config.accepts(MARKDOWN)
    assert UploadsConfig(name="uploads").accepts(MARKDOWN)
    with pytest.raises(ValidationError, match="it must be among"):
        UploadsConfig(name="uploads", media_types=("image/png",))


@pytest.mark.parametrize(
    ("given_name", "shown"),
    [
        ("Guide.pdf", "Guide.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\eve\\notes.md", "notes.md"),
        ("/", ""),
        ("..", ""),
        ("a\x00b\x1b[31m\r\n.md", "ab[31m .md"),
        ("invoice\u202egpj.pdf", "invoicegpj.pdf"),
        ("\u2066\u200f\ufeff", ""),
        ("  two   blanks.md ", "two blanks.md"),
        ("e\u0301t\u00e9.md", "\u00e9t\u00e9.md"),
        ("\ud83d.md", ".md"),
    ],
)
def test_what_cannot_be_shown_is_left_out(given_name: str, shown: str) -> None:
    assert clean_file_name(given_name) == shown


def test_a_long_name_keeps_the_suffix_that_tells_what_it_is() -> None:
    name = clean_file_name("x" * 10_000 + ".docx")
    assert len(name) == MAX_NAME_LENGTH
    assert name.endswith("x.docx")
    assert len(clean_file_name("." + "y" * 10_000)) == MAX_NAME_LENGTH


@given(st.text())
def test_every_name_becomes_one_that_is_short_and_harmless(text: str) -> None:
    name = clean_file_name(text)
    assert len(name) <= MAX_NAME_LENGTH
    assert not {"/", "\\"} & set(name)
    assert name not in {".", ".."}
    assert not any(unicodedata.category(character).startswith("C") for character in name)
    assert clean_file_name(name) == name
