"""Passages of an agent's files: reads, masks and cuts files, and reuses unchanged passages."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from rag_assets.common.errors import DocumentRejected, DocumentTooLarge, DocumentUnsupported
from rag_assets.common.hashing import key_of, sha256_hex
from rag_assets.ingest.chunking.chunk_set import CHUNKER_VERSION, is_dropped
from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkRequest
from rag_assets.ingest.chunking.masked_spans import touching
from rag_assets.ingest.chunking.own_places import with_own_places
from rag_assets.ingest.chunking.passages import Passage, locate
from rag_assets.ingest.chunking.sentence import SENTENCE
from rag_assets.ingest.parsing import media_types
from rag_assets.ingest.parsing.document_masker import masked
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.registry import PARSERS, parsers_version
from rag_assets.ingest.parsing.text.decoding import UTF8_MARK, UTF16_MARKS
from rag_assets.privacy.secrets.scanner import SecretScanner, rules_version
from rag_assets.systems.agent_docs.globs import FoundFile
from rag_assets.systems.agent_docs.stores import DocChunk, FileState, IndexState
from rag_assets.systems.agent_docs.trust import passage_digest

MAX_BYTES: Final = 5 * 1024 * 1024
"""Of a file that is read in this process."""
_NUL_WITHIN: Final = 8_192


def read_bytes(file: Path) -> bytes:
    """The bytes of a regular file.

    Raises:
        DocumentRejected: it is too large, no regular file, or cannot be read.
    """
    try:
        # A pipe in its place must not make us wait.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise DocumentUnsupported("it is no regular file")
            data = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise DocumentRejected(f"it cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise DocumentTooLarge(
            f"it is larger than {MAX_BYTES:,} bytes", hint="split it, or index it with Dagster"
        )
    return data


def parsed_text(path: str, data: bytes) -> tuple[ParsedText, int]:
    """The text of a file with its blocks, and the bytes before the text: a byte order mark.

    Args:
        path: of the file; its suffix tells the format.
        data: its bytes.

    Raises:
        DocumentRejected: it is empty, no UTF-8, or of another format.
    """
    kind = media_types.media_type_of(path) or media_types.PLAIN
    if kind not in media_types.SOURCE_TEXTS:
        raise DocumentUnsupported(
            "its format is not read here", hint="index it with Dagster, as a tenant"
        )
    if data.startswith(UTF16_MARKS):
        raise DocumentRejected("it is UTF-16 text", hint="save it as UTF-8")
    if b"\0" in data[:_NUL_WITHIN]:
        raise DocumentUnsupported("it is no text, but binary")
    parsed = PARSERS[kind].function()(data, kind, ParseOptions(), ParseLimits())
    return parsed, len(UTF8_MARK) if data.startswith(UTF8_MARK) else 0


class ProjectRules:
    """Masks documents by the project's rules, which are loaded at the first use.

    Args:
        cache: a private folder for compiled rules; by default one of the user's.
    """

    def __init__(self, cache: Path | None = None) -> None:
        self._cache = cache
        self._scanner: SecretScanner | None = None

    def __call__(self, parsed: ParsedText) -> ParsedText:
        """See cutting.Mask."""
        if self._scanner is None:
            self._scanner = SecretScanner(_private(self._cache or _users()))
        return masked(parsed, self._scanner)


def _users() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "rag-assets" / "rules"


def _private(folder: Path) -> Path | None:
    """The folder, made for its owner alone; None where that is not possible."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    return folder if status.st_uid == os.getuid() and not status.st_mode & 0o022 else None


_VERSION: Final = 2
"""Increased whenever the same file would give other passages."""


class Mask(Protocol):
    """Masks the credentials of a document; see document_masker.masked."""

    def __call__(self, parsed: ParsedText) -> ParsedText:
        """The document with its credentials masked."""
        ...


@dataclass(frozen=True, slots=True)
class Chunking:
    """Limits of passages, in characters.

    Attributes:
        size: that none exceeds.
        overlap: the most that one repeats of the one before it; at most half of the size.
    """

    size: int = 2000
    overlap: int = 200

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 <= self.overlap <= self.size // 2:
            raise ValueError("a passage has a character or more, and repeats at most half of them")

    @property
    def recipe(self) -> str:
        """The key of all that determines the passages of a file, beside its bytes."""
        versions = (_VERSION, CHUNKER_VERSION, parsers_version(), rules_version())
        return key_of("agent_passages", self.size, self.overlap, *versions)


@dataclass(frozen=True, slots=True)
class CutPassage:
    """A passage, and what is embedded for it.

    Attributes:
        chunk: the passage.
        embedded: the text whose vector stands for it.
        text_sha256: of that text.
    """

    chunk: DocChunk
    embedded: str
    text_sha256: str


@dataclass(frozen=True, slots=True)
class CutFile:
    """The passages of a file.

    Attributes:
        dropped: how many were left out because nothing but masked characters was left of them.
        rules: that found the credentials of the file, sorted.
    """

    passages: tuple[CutPassage, ...]
    dropped: int = 0
    rules: tuple[str, ...] = ()


def cut_file(agent_id: str, path: str, data: bytes, chunking: Chunking, mask: Mask) -> CutFile:
    """Cut a file.

    Args:
        agent_id: of the agent.
        path: of the file, as source_path.
        data: its bytes.
        chunking: the limits.
        mask: finds credentials.

    Raises:
        DocumentRejected: it cannot be read as text.
    """
    parsed, before = parsed_text(path, data)
    masked = mask(parsed)
    request = ChunkRequest(masked, chunking.size, chunking.overlap, kind=masked.media_type)
    cut = list(locate(masked, with_own_places(SENTENCE.split(request))))
    kept = []
    for chunk, masks in zip(cut, touching(masked.masked, cut), strict=True):
        if not masks or not is_dropped(chunk, masks):
            at = DocChunk.at(agent_id, path, chunk.byte_start + before, chunk.text)
            kept.append(CutPassage(at, chunk.embedded(masked.title), chunk.text_sha256))
    rules = tuple(sorted({mask.rule for mask in masked.masked}))
    return CutFile(tuple(kept), len(cut) - len(kept), rules)


def split(request: ChunkRequest) -> list[Passage]:
    """Cut as `sentence` does; no two passages begin at one place."""
    return list(with_own_places(SENTENCE.split(request)))


PASSAGE = ChunkerKind(
    name="passage",
    purpose="as sentence, each passage at a place of its own",
    split=split,
    unit="characters",
    limit=SENTENCE.limit,
    overlap=SENTENCE.overlap,
    most=1_000_000,
)
_NOT_BELIEVED_NS: Final = 2_000_000_000
"""A file may change again within this time of being looked at, and keep its time."""


@dataclass(frozen=True, slots=True)
class Passages:
    """The passages of an index that is to be.

    Attributes:
        chunks: all of them.
        text_hashes: of what is embedded, by id.
        digests: of the passages, by id; see trust.passage_digest.
        texts: what is embedded for passages that the former index does not have, by hash.
        files: with the hash of their contents.
        left_out: files without passages, and why.
    """

    chunks: tuple[DocChunk, ...]
    text_hashes: Mapping[str, str]
    digests: Mapping[str, str]
    texts: Mapping[str, str]
    files: tuple[FileState, ...]
    left_out: Mapping[str, str]


def fingerprint_of(files: Iterable[FoundFile]) -> str:
    """SHA-256 of path, size and modification time of files, in the order of their paths."""
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda one: one.path):
        line = f"{file.path}\0{file.size}\0{file.mtime_ns}\0"
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def is_doubtful(file: FileState, looked_ns: int) -> bool:
    """Whether a file may have changed since it was looked at, although size and time are equal."""
    return abs(file.mtime_ns - looked_ns) < _NOT_BELIEVED_NS


def unchanged(files: Iterable[FoundFile], former: IndexState) -> tuple[FileState, ...] | None:
    """The files with their new times, if all hold what they held; None if one does not.

    Args:
        files: that the globs match now.
        former: what the index was made of.
    """
    known = {one.path: one for one in former.files}
    found = sorted(files, key=lambda one: one.path)
    if {one.path for one in found} != set(known):
        return None
    states = []
    for file in found:
        before = known[file.path]
        if file.size != before.size:
            return None
        if not _is_same(file, before, former) and _hash_of(file) != before.sha256:
            return None
        states.append(replace(before, mtime_ns=file.mtime_ns))
    return tuple(states)


def passages_of(
    agent_id: str,
    files: Iterable[FoundFile],
    chunking: Chunking,
    mask: Mask,
    former: tuple[IndexState, Sequence[DocChunk]] | None,
) -> Passages:
    """The passages of an agent's files.

    Args:
        agent_id: of the agent.
        files: that the globs match.
        chunking: limits of passages.
        mask: finds credentials.
        former: the index whose passages were cut by the same recipe, if there is one.
    """
    state, known = former if former is not None else (None, ())
    before = {} if state is None else {one.path: one for one in state.files}
    chunks_before: dict[str, list[DocChunk]] = {}
    for chunk in known:
        chunks_before.setdefault(chunk.source_path, []).append(chunk)
    for path in [] if state is None else _altered_files(state, known):
        before.pop(path, None)
    made = _Made()
    for file in sorted(files, key=lambda one: one.path):
        same = before.get(file.path)
        if state is not None and same is not None and _is_same(file, same, state):
            made.keep(same, chunks_before.get(file.path, ()), state)
            continue
        try:
            data = read_bytes(file.file)
        except DocumentRejected as error:
            made.leave_out(file, "", error)
            continue
        sha256 = sha256_hex(data)
        if state is not None and same is not None and sha256 == same.sha256:
            kept = replace(same, size=len(data), mtime_ns=file.mtime_ns)
            made.keep(kept, chunks_before.get(file.path, ()), state)
            continue
        try:
            cut = cut_file(agent_id, file.path, data, chunking, mask)
        except DocumentRejected as error:
            made.leave_out(file, sha256, error)
            continue
        state_of_file = FileState(
            file.path, file.size, file.mtime_ns, sha256, cut.dropped, cut.rules
        )
        made.add(state_of_file, cut.passages)
    return made.passages()


def _altered_files(state: IndexState, chunks: Sequence[DocChunk]) -> set[str]:
    """Return the files some of whose passages are not those that were indexed."""
    hashes = {one.path: one.sha256 for one in state.files}
    altered = {
        chunk.source_path
        for chunk in chunks
        if state.digests.get(chunk.id) != passage_digest(chunk, hashes.get(chunk.source_path, ""))
    }
    is_whole = {chunk.id for chunk in chunks} == set(state.text_hashes)
    return altered if is_whole else set(hashes)


class _Made:
    """Collects passages, file by file."""

    def __init__(self) -> None:
        self._chunks: list[DocChunk] = []
        self._hashes: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._files: list[FileState] = []
        self._left_out: dict[str, str] = {}

    def keep(self, file: FileState, chunks: Iterable[DocChunk], state: IndexState) -> None:
        self._files.append(file)
        if file.path in state.left_out:
            self._left_out[file.path] = state.left_out[file.path]
        for chunk in chunks:
            self._chunks.append(chunk)
            self._hashes[chunk.id] = state.text_hashes[chunk.id]
            self._digests[chunk.id] = state.digests[chunk.id]

    def add(self, file: FileState, passages: Iterable[CutPassage]) -> None:
        self._files.append(file)
        for one in passages:
            self._chunks.append(one.chunk)
            self._hashes[one.chunk.id] = one.text_sha256
            self._digests[one.chunk.id] = passage_digest(one.chunk, file.sha256)
            self._texts[one.text_sha256] = one.embedded

    def leave_out(self, file: FoundFile, sha256: str, error: DocumentRejected) -> None:
        self._files.append(FileState(file.path, file.size, file.mtime_ns, sha256))
        self._left_out[file.path] = error.advice

    def passages(self) -> Passages:
        return Passages(
            tuple(self._chunks),
            self._hashes,
            self._digests,
            self._texts,
            tuple(self._files),
            self._left_out,
        )


def _hash_of(file: FoundFile) -> str:
    try:
        return sha256_hex(read_bytes(file.file))
    except DocumentRejected:
        return ""


def _is_same(file: FoundFile, before: FileState, state: IndexState) -> bool:
    same = (file.size, file.mtime_ns) == (before.size, before.mtime_ns)
    return same and not is_doubtful(before, state.looked_ns)
