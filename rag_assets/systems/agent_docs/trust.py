"""Trust in an index: a state that this user sealed, and passages that are what their files hold.

An index lies where its documentation is, often in a repository that others write to. So its state
carries a seal by a key that lies in the user's home folder, and a digest of each passage: of its
text, its place and the content of its file. An index without the seal is no index, and is built
again. Before a passage is answered, its digest is compared, and its bytes with those of the file at
its place. That reads the passage, not the file: a question costs some microseconds more for each.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from rag_assets.privacy.secrets.masking import FILLERS
from rag_assets.systems.agent_docs.globs import Matches
from rag_assets.systems.agent_docs.stores import DocChunk, IndexState

Verdict: TypeAlias = Literal["true", "altered", "stale"]

_KEY_BYTES: Final = 32
_DIGEST_BYTES: Final = 16
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def passage_digest(passage: DocChunk, file_sha256: str) -> str:
    """Return the digest of a passage's text, its place and the content of its file."""
    place = "\0".join((passage.id, passage.agent_id, passage.source_path, file_sha256))
    text = f"{place}\0{passage.byte_offset}\0{passage.content}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


class Trust:
    """Seals the states of indexes, and compares what is read with the seal and with the files.

    Args:
        key: of seals; by default the user's, which is made at its first use.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key
        self._sealed: dict[str, tuple[IndexState, dict[str, str]]] = {}

    def seal(self, state: IndexState) -> IndexState:
        """Return the state with its seal."""
        return replace(state, seal=self._seal_of(state))

    def is_sealed(self, agent_id: str, state: IndexState) -> bool:
        """Return whether a process of this user sealed a state; computed once for each state."""
        known = self._sealed.get(agent_id)
        if known is None or known[0] is not state:
            if not hmac.compare_digest(self._seal_of(state), state.seal):
                return False
            self._sealed[agent_id] = (state, {one.path: one.sha256 for one in state.files})
        return True

    def judge(
        self, state: IndexState, passage: DocChunk, place_of: Mapping[str, str] | None
    ) -> Verdict:
        """Return whether a passage is the one that was indexed, and that its file holds.

        Args:
            state: sealed.
            passage: that was read from a store.
            place_of: where the agent's present files are, by path; None: that is not known.
        """
        hashes = self._sealed[passage.agent_id][1] if passage.agent_id in self._sealed else {}
        digest = passage_digest(passage, hashes.get(passage.source_path, ""))
        if state.digests.get(passage.id) != digest:
            return "altered"
        if place_of is None:
            return "true"
        place = place_of.get(passage.source_path)
        return "true" if place is not None and _holds(place, passage) else "stale"

    def _seal_of(self, state: IndexState) -> str:
        import orjson

        if self._key is None:
            self._key = user_key() or os.urandom(_KEY_BYTES)
        record = state.record() | {"seal": ""}
        text = orjson.dumps(record, option=orjson.OPT_SORT_KEYS)
        return hmac.new(self._key, text, "sha256").hexdigest()


def _holds(place: str, passage: DocChunk) -> bool:
    """Return whether a file has a passage at its place, but for characters that were masked."""
    wanted = passage.content.encode("utf-8", "surrogatepass")
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        present = os.pread(descriptor, len(wanted), passage.byte_offset)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return present == wanted or _equals_but_for_masks(present, passage.content)


def _equals_but_for_masks(present: bytes, content: str) -> bool:
    """Return whether bytes are a text in which each masked character has kept its width."""
    at = 0
    for character in content:
        encoded = character.encode("utf-8", "surrogatepass")
        found = present[at : at + len(encoded)]
        if len(found) < len(encoded) or (found != encoded and character not in FILLERS):
            return False
        at += len(encoded)
    return True


def places_of(matches: Matches, paths: Sequence[str]) -> dict[str, str]:
    """Return where files are that patterns match, of those paths that are among them."""
    wanted = set(paths)
    return {one.path: one.place for one in matches.files if one.path in wanted}


def user_key() -> bytes | None:
    """Return the user's key, which is made where there is none; None where there can be none.

    A key that others may read or write is not used.
    """
    given = os.environ.get("XDG_CONFIG_HOME", "")
    with suppress(OSError, RuntimeError):
        folder = Path(given) if Path(given).is_absolute() else Path.home() / ".config"
        path = folder / "rag-assets" / "agent-index.key"
        return _read_key(path) or _made_key(path)
    return None


def _made_key(path: Path) -> bytes | None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(_KEY_BYTES))
        with suppress(FileExistsError):
            os.link(draft, path)  # It appears whole, and never replaces another process's.
    finally:
        Path(draft).unlink()
    return _read_key(path)


def _read_key(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        is_private = facts.st_uid == os.getuid() and not facts.st_mode & _OTHERS
        key = file.read(_KEY_BYTES + 1)
    return key if is_private and len(key) == _KEY_BYTES else None
