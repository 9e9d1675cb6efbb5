"""Trust in an index: the user's seal on its state, and passages that match their files.

An index is stored next to its documentation, often in a repository that others can write to. So its
state is sealed with a key in the user's home folder, and contains a digest of each passage: of its
text, its location and the content of its file. An index without a valid seal is built again. Before
a passage is returned, its digest is checked and its bytes are compared with the file. This check
reads only the passage, not the whole file, and costs some microseconds per passage of an answer.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

import orjson

from rag_assets.privacy.secrets.spans import FILLERS
from rag_assets.systems.agent_docs.stores import DocChunk, IndexState

Verdict: TypeAlias = Literal["valid", "altered", "stale"]
"""A passage is altered if someone else changed the index, and stale if its file changed."""

_KEY_BYTES: Final = 32
_DIGEST_BYTES: Final = 16
_GROUP_OR_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def passage_digest(passage: DocChunk, file_sha256: str) -> str:
    """Return the digest of a passage's text, its location and the content of its file."""
    location = "\0".join((passage.id, passage.agent_id, passage.source_path, file_sha256))
    text = f"{location}\0{passage.byte_offset}\0{passage.content}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


class Trust:
    """Seals the states of indexes, and verifies states and passages.

    Args:
        key: the key of the seals; by default the user's key, which is created at its first use.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key
        self._verified: dict[str, tuple[IndexState, dict[str, str]]] = {}

    def seal(self, state: IndexState) -> IndexState:
        """Return the state with its seal."""
        return replace(state, seal=self._compute_seal(state))

    def is_sealed(self, agent_id: str, state: IndexState) -> bool:
        """Return whether this user's key sealed a state; computed once per state."""
        verified = self._verified.get(agent_id)
        if verified is None or verified[0] is not state:
            if not hmac.compare_digest(self._compute_seal(state), state.seal):
                return False
            hashes = {file.path: file.sha256 for file in state.files}
            self._verified[agent_id] = (state, hashes)
        return True

    def check_passage(
        self, state: IndexState, passage: DocChunk, locations: Mapping[str, str] | None
    ) -> Verdict:
        """Check that a stored passage was indexed by this user and still matches its file.

        Args:
            state: a sealed state.
            locations: absolute path of each file by its source_path; None skips the files.
        """
        hashes = self._verified[passage.agent_id][1] if passage.agent_id in self._verified else {}
        digest = passage_digest(passage, hashes.get(passage.source_path, ""))
        if state.digests.get(passage.id) != digest:
            return "altered"
        if locations is None:
            return "valid"
        location = locations.get(passage.source_path)
        is_valid = location is not None and _matches_file(location, passage)
        return "valid" if is_valid else "stale"

    def _compute_seal(self, state: IndexState) -> str:
        if self._key is None:
            self._key = load_user_key() or os.urandom(_KEY_BYTES)
        record = state.to_record() | {"seal": ""}
        text = orjson.dumps(record, option=orjson.OPT_SORT_KEYS)
        return hmac.new(self._key, text, "sha256").hexdigest()


def _matches_file(location: str, passage: DocChunk) -> bool:
    """Return whether a file contains a passage at its offset, apart from masked characters."""
    expected = passage.content.encode("utf-8", "surrogatepass")
    try:
        descriptor = os.open(location, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        actual = os.pread(descriptor, len(expected), passage.byte_offset)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return actual == expected or _equals_unmasked(actual, passage.content)


def _equals_unmasked(data: bytes, text: str) -> bool:
    """Return whether bytes equal a text in UTF-8.

    A mask character in the text matches any bytes of its own length.
    """
    position = 0
    for character in text:
        encoded = character.encode("utf-8", "surrogatepass")
        actual = data[position : position + len(encoded)]
        if len(actual) < len(encoded) or (actual != encoded and character not in FILLERS):
            return False
        position += len(encoded)
    return True


def load_user_key() -> bytes | None:
    """Return the user's key, created if it is missing; None if it cannot be created or read.

    A key that other users may read or write is ignored.
    """
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    with suppress(OSError, RuntimeError):
        folder = Path(configured) if Path(configured).is_absolute() else Path.home() / ".config"
        path = folder / "rag-assets" / "agent-index.key"
        return _read_key(path) or _create_key(path)
    return None


def _create_key(path: Path) -> bytes | None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(_KEY_BYTES))
        with suppress(FileExistsError):
            os.link(draft, path)  # atomic, and never overwrites a key
    finally:
        Path(draft).unlink()
    return _read_key(path)


def _read_key(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        is_private = status.st_uid == os.getuid() and not status.st_mode & _GROUP_OR_OTHERS
        key = file.read(_KEY_BYTES + 1)
    return key if is_private and len(key) == _KEY_BYTES else None
