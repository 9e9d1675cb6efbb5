"""Passages of an agent's files: read, mask and cut files, and reuse unchanged passages."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias

from rag_assets.common.errors import DocumentRejected, DocumentTooLarge, DocumentUnsupported
from rag_assets.common.hashing import compute_key, sha256_hex
from rag_assets.ingest.chunking.chunk_set import CHUNKER_VERSION, is_dropped
from rag_assets.ingest.chunking.chunkers import SENTENCE
from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkRequest
from rag_assets.ingest.chunking.model import Passage, build_chunks, find_touched_masks
from rag_assets.ingest.parsing import media_types
from rag_assets.ingest.parsing.masking import mask_document
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.registry import PARSERS, compute_parsers_version
from rag_assets.ingest.parsing.text import UTF8_MARK, UTF16_MARKS
from rag_assets.privacy.secrets.scanner import SecretScanner, rules_version
from rag_assets.systems.agent_docs.globs import MatchedFile
from rag_assets.systems.agent_docs.stores import (
    DocChunk,
    FileState,
    IndexState,
    compute_passage_digest,
)

Mask: TypeAlias = Callable[[ParsedText], ParsedText]
"""Masks the credentials of a document; see document_masker.masked."""

MAX_BYTES: Final = 5 * 1024 * 1024
"""Maximum bytes of a file that is indexed without Dagster; a larger file is rejected."""
_BINARY_CHECK_BYTES: Final = 8_192
_RECIPE_VERSION: Final = 2
"""Increased whenever the passages of the same file would change."""
_UNRELIABLE_NS: Final = 2_000_000_000
"""Nanoseconds between modification and listing within which a file may change again unnoticed."""


def read_file(path: Path) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        DocumentRejected: the file is too large, is not a regular file, or cannot be read.
    """
    try:
        # Without O_NONBLOCK, opening a pipe would wait.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise DocumentUnsupported("the path is not a regular file")
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DocumentRejected(f"the file cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise DocumentTooLarge(
            f"the file is larger than {MAX_BYTES:,} bytes",
            hint="split the file, or index it with Dagster",
        )
    return data


def parse_file(path: str, data: bytes) -> tuple[ParsedText, int]:
    """Return the text of a file and the length in bytes of its byte order mark.

    Raises:
        DocumentRejected: the file is empty, not UTF-8, or of an unsupported format.
    """
    kind = media_types.find_media_type(path) or media_types.PLAIN
    if kind not in media_types.SOURCE_TEXTS:
        raise DocumentUnsupported(
            "files of this format cannot be read locally",
            hint="make the agent a tenant, and index it with Dagster",
        )
    if data.startswith(UTF16_MARKS):
        raise DocumentRejected("the file is UTF-16 text", hint="save the file as UTF-8")
    if b"\0" in data[:_BINARY_CHECK_BYTES]:
        raise DocumentUnsupported("the file is a binary file")
    parsed = PARSERS[kind].load_function()(data, kind, ParseOptions(), ParseLimits())
    return parsed, len(UTF8_MARK) if data.startswith(UTF8_MARK) else 0


class SecretMasker:
    """Masks credentials by our rules, which are loaded at the first call.

    Args:
        cache: a private folder for compiled rules; by default in the user's cache folder.
    """

    def __init__(self, cache: Path | None = None) -> None:
        self._cache = cache
        self._scanner: SecretScanner | None = None

    def __call__(self, parsed: ParsedText) -> ParsedText:
        """Return the document with its credentials masked."""
        if self._scanner is None:
            self._scanner = SecretScanner(
                _create_private_folder(self._cache or _get_default_cache())
            )
        return mask_document(parsed, self._scanner)


def _get_default_cache() -> Path:
    configured = os.environ.get("XDG_CACHE_HOME")
    parent = Path(configured) if configured else Path.home() / ".cache"
    return parent / "rag-assets" / "rules"


def _create_private_folder(folder: Path) -> Path | None:
    """Create a folder that only its owner can write to; None if that is not possible."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    return folder if status.st_uid == os.getuid() and not status.st_mode & 0o022 else None


@dataclass(frozen=True, slots=True)
class Chunking:
    """Limits of passages, in characters.

    Attributes:
        overlap: maximum length of the end of the previous passage that a passage may repeat; at
            most half of the size.
    """

    size: int = 2000
    overlap: int = 200

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 <= self.overlap <= self.size // 2:
            raise ValueError("size must be positive, and overlap at most half of it")

    @property
    def recipe(self) -> str:
        """Return a key for all settings and versions that affect a file's passages."""
        versions = (_RECIPE_VERSION, CHUNKER_VERSION, compute_parsers_version(), rules_version())
        return compute_key("agent_passages", self.size, self.overlap, *versions)


@dataclass(frozen=True, slots=True)
class CutPassage:
    """A passage and the text that is embedded for it.

    Attributes:
        embedded: the embedded text: the passage with its title and headings.
    """

    chunk: DocChunk
    embedded: str
    text_sha256: str


@dataclass(frozen=True, slots=True)
class CutFile:
    """The passages of a file.

    Attributes:
        dropped: number of passages left out because they contain only masked characters.
        rules: sorted names of the rules that matched the file's credentials.
    """

    passages: tuple[CutPassage, ...]
    dropped: int = 0
    rules: tuple[str, ...] = ()


def split_with_distinct_starts(request: ChunkRequest) -> list[Passage]:
    """Split a text into passages of whole sentences, each with a different start.

    If the repeated text would make a passage start no later than the previous passage, the passage
    starts with its new text instead. A passage without new text is left out.
    """
    passages: list[Passage] = []
    last = -1
    for passage in SENTENCE.split(request):
        start = passage.start if passage.start > last else max(passage.new_start, last + 1)
        if start < passage.end:
            passages.append(replace(passage, start=start))
            last = start
    return passages


PASSAGE = ChunkerKind(
    name="passage",
    purpose="like sentence; no two passages start at the same position",
    split=split_with_distinct_starts,
    unit="characters",
    limit=SENTENCE.limit,
    overlap=SENTENCE.overlap,
    most=1_000_000,
)


def cut_file(agent_id: str, path: str, data: bytes, chunking: Chunking, mask: Mask) -> CutFile:
    """Cut a file into passages.

    Raises:
        DocumentRejected: the file cannot be read as text.
    """
    parsed, mark_bytes = parse_file(path, data)
    text = mask(parsed)
    request = ChunkRequest(text, chunking.size, chunking.overlap, kind=text.media_type)
    chunks = list(build_chunks(text, split_with_distinct_starts(request)))
    passages = []
    for chunk, masks in zip(chunks, find_touched_masks(text.masked, chunks), strict=True):
        if not masks or not is_dropped(chunk, masks):
            offset = chunk.byte_start + mark_bytes
            passage = DocChunk.from_location(agent_id, path, offset, chunk.text)
            passages.append(
                CutPassage(passage, chunk.build_embedding_text(text.title), chunk.text_sha256)
            )
    rules = tuple(sorted({span.rule for span in text.masked}))
    return CutFile(tuple(passages), len(chunks) - len(passages), rules)


def compute_fingerprint(files: Iterable[MatchedFile]) -> str:
    """Return the SHA-256 over path, size and modification time of files, ordered by path."""
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.path):
        line = f"{file.path}\0{file.size}\0{file.mtime_ns}\0"
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def may_have_changed(file: FileState, looked_ns: int) -> bool:
    """Return whether a file may have changed since it was listed, with the same size and time."""
    return abs(file.mtime_ns - looked_ns) < _UNRELIABLE_NS


def refresh_file_states(
    files: Iterable[MatchedFile], previous: IndexState
) -> tuple[FileState, ...] | None:
    """Return the states of the indexed files, updated with their current modification times.

    The result is None if a file was added, removed or changed, so that the index is outdated.
    """
    known = {file.path: file for file in previous.files}
    ordered = sorted(files, key=lambda file: file.path)
    if {file.path for file in ordered} != set(known):
        return None
    states = []
    for file in ordered:
        before = known[file.path]
        if file.size != before.size:
            return None
        if (
            not _has_same_size_and_time(file, before, previous)
            and _hash_file(file) != before.sha256
        ):
            return None
        states.append(replace(before, mtime_ns=file.mtime_ns))
    return tuple(states)


@dataclass(slots=True)
class Passages:
    """The passages of a new index, collected file by file.

    Attributes:
        text_hashes: hash of the embedded text, by passage id.
        digests: digest of each passage by its id; see stores.compute_passage_digest.
        texts: texts to embed, by hash; the previous index has no vectors for them.
        left_out: the reason for each file without passages, by path.
    """

    chunks: list[DocChunk] = field(default_factory=list)
    text_hashes: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    files: list[FileState] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def reuse(self, file: FileState, chunks: Iterable[DocChunk], previous: IndexState) -> None:
        """Take over the passages of an unchanged file from the previous index."""
        self.files.append(file)
        if file.path in previous.left_out:
            self.left_out[file.path] = previous.left_out[file.path]
        for chunk in chunks:
            self.chunks.append(chunk)
            self.text_hashes[chunk.id] = previous.text_hashes[chunk.id]
            self.digests[chunk.id] = previous.digests[chunk.id]

    def add(self, file: FileState, passages: Iterable[CutPassage]) -> None:
        """Add the passages of a new or changed file."""
        self.files.append(file)
        for passage in passages:
            chunk = passage.chunk
            self.chunks.append(chunk)
            self.text_hashes[chunk.id] = passage.text_sha256
            self.digests[chunk.id] = compute_passage_digest(chunk, file.sha256)
            self.texts[passage.text_sha256] = passage.embedded

    def leave_out(self, file: MatchedFile, sha256: str, error: DocumentRejected) -> None:
        """Record a file that cannot be indexed, and the reason."""
        self.files.append(FileState(file.path, file.size, file.mtime_ns, sha256))
        self.left_out[file.path] = error.advice


def collect_passages(
    agent_id: str,
    files: Iterable[MatchedFile],
    chunking: Chunking,
    mask: Mask,
    previous: tuple[IndexState, Sequence[DocChunk]] | None,
) -> Passages:
    """Cut new and changed files, and reuse the passages of all others.

    Args:
        previous: the state and passages of an index with the same recipe, if it exists.
    """
    state, known = previous if previous is not None else (None, ())
    known_files = {} if state is None else {file.path: file for file in state.files}
    known_chunks: dict[str, list[DocChunk]] = {}
    for chunk in known:
        known_chunks.setdefault(chunk.source_path, []).append(chunk)
    for path in [] if state is None else _find_altered_files(state, known):
        known_files.pop(path, None)
    passages = Passages()
    for file in sorted(files, key=lambda file: file.path):
        before, chunks = known_files.get(file.path), known_chunks.get(file.path, ())
        if (
            state is not None
            and before is not None
            and _has_same_size_and_time(file, before, state)
        ):
            passages.reuse(before, chunks, state)
            continue
        sha256 = ""
        try:
            data = read_file(Path(file.location))
            sha256 = sha256_hex(data)
            if state is not None and before is not None and sha256 == before.sha256:
                current = replace(before, size=len(data), mtime_ns=file.mtime_ns)
                passages.reuse(current, chunks, state)
                continue
            cut = cut_file(agent_id, file.path, data, chunking, mask)
        except DocumentRejected as error:
            passages.leave_out(file, sha256, error)
            continue
        facts = file.path, file.size, file.mtime_ns, sha256
        passages.add(FileState(*facts, cut.dropped, cut.rules), cut.passages)
    return passages


def _find_altered_files(state: IndexState, chunks: Sequence[DocChunk]) -> set[str]:
    """Return the paths of files with stored passages that do not match their digests.

    If a passage is missing or was added, the result contains all files.
    """
    hashes = {file.path: file.sha256 for file in state.files}
    altered = {
        chunk.source_path
        for chunk in chunks
        if state.digests.get(chunk.id)
        != compute_passage_digest(chunk, hashes.get(chunk.source_path, ""))
    }
    is_complete = {chunk.id for chunk in chunks} == set(state.text_hashes)
    return altered if is_complete else set(hashes)


def _hash_file(file: MatchedFile) -> str:
    try:
        return sha256_hex(read_file(Path(file.location)))
    except DocumentRejected:
        return ""


def _has_same_size_and_time(file: MatchedFile, before: FileState, state: IndexState) -> bool:
    is_equal = (file.size, file.mtime_ns) == (before.size, before.mtime_ns)
    return is_equal and not may_have_changed(before, state.looked_ns)
