"""What a new index is made of: files whose contents changed are cut, the others are known."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rag_assets.common.errors import DocumentRejected
from rag_assets.common.hashing import sha256_hex
from rag_assets.systems.agent_docs.contents import read_bytes
from rag_assets.systems.agent_docs.cutting import Chunking, CutPassage, Mask, cut_file
from rag_assets.systems.agent_docs.globs import FoundFile
from rag_assets.systems.agent_docs.stores import DocChunk, FileState, IndexState
from rag_assets.systems.agent_docs.trust import passage_digest

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
