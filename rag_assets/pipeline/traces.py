"""Traces: data that documents leave behind in stores, collected before they are erased.

Traces are kept until the erasure ends, so that a run after a crash searches for the same traces.
They quote the erased text. So the erasure's row stores them encrypted, and the lake stores the key
as a note. When the erasure ends, the note is deleted; copies of the row that are left in Postgres
files can then no longer be decrypted.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from rag_assets.common.batches import batched
from rag_assets.common.errors import ServiceUnavailable
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.live_keys import needed_keys
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.erasure.erasures import Erasure
from rag_assets.storage.index.protocols import NoteStore
from rag_assets.storage.lake.model import DeadKeys
from rag_assets.storage.lake.store import Lake

_PHRASE_CHARACTERS: Final = (24, 120)
_PHRASES_OF_A_CHUNK: Final = 3
_MOST_PHRASES: Final = 500
_MOST_NAMES: Final = 500
_SENTENCE: Final = re.compile(r"[^.!?\n]+")
_NONCE_BYTES: Final = 12
_TEXTS_AT_ONCE: Final = 50
_KEPT: Final = "traces"
"""Name of the encrypted traces in the progress of an erasure."""
_PROOF: Final = "proof"


@dataclass(frozen=True, slots=True)
class Traces:
    """The traces that documents, or a whole tenant, would leave behind.

    Attributes:
        document_ids: ids of the documents; only some of them for a large tenant.
        dead: keys in the lake that no other document needs.
        phrases: parts of their texts that appear nowhere else; a sample if there are many.
        names: uris, and ids of chunks without offsets.
    """

    document_ids: Sequence[str] = ()
    dead: DeadKeys = DeadKeys()  # noqa: RUF009 - it is frozen
    phrases: Sequence[str] = ()
    names: Sequence[str] = ()

    @property
    def kinds(self) -> list[str]:
        """Return the kinds of traces that a search for these traces covers."""
        kinds = {
            "document ids": self.document_ids,
            "hashes": self.dead.parsed or self.dead.chunk_sets or self.dead.texts,
            "names": self.names,
            "phrases": self.phrases,
        }
        return [kind for kind, traces in kinds.items() if traces]

    def as_json(self) -> str:
        """Return all traces as JSON."""
        return json.dumps(
            {
                "document_ids": [*self.document_ids],
                "parsed": sorted(self.dead.parsed),
                "chunk_sets": sorted(self.dead.chunk_sets),
                "texts": sorted(self.dead.texts),
                "phrases": [*self.phrases],
                "names": [*self.names],
            }
        )

    @classmethod
    def parse(cls, text: str | bytes) -> Traces:
        """Return the traces in such JSON."""
        kept: dict[str, Any] = json.loads(text)
        dead = DeadKeys(*(frozenset(kept[name]) for name in ("parsed", "chunk_sets", "texts")))
        return cls(kept["document_ids"], dead, kept["phrases"], kept["names"])


def collect_traces(ctx: TenantContext, erasure: Erasure, dead: DeadKeys) -> Traces:
    """Collect the traces that documents would leave behind, before they are erased.

    Args:
        erasure: the erasure of the documents.
        dead: the documents' keys in the lake that no other document needs.
    """
    phrases = list(dict.fromkeys(_phrases_of_chunks(ctx, dead)))
    names = ctx.catalog.traces.list_names(ctx.ref, erasure.document_ids)
    return Traces(erasure.document_ids, dead, phrases, names)


def without_living(ctx: TenantContext, traces: Traces) -> Traces:
    """Leave out traces of documents that still exist: other documents, and those added again."""
    living = ctx.catalog.traces.find_existing(ctx.ref, traces.document_ids)
    ids = [id_ for id_ in traces.document_ids if id_ not in living]
    names = {*traces.names} - {*ctx.catalog.traces.list_names(ctx.ref, sorted(living))}
    needed = needed_keys(ctx).known
    dead = DeadKeys(
        traces.dead.parsed - (needed.parsed or set()),
        traces.dead.chunk_sets - (needed.chunk_sets or set()),
        traces.dead.texts - (needed.texts or set()),
    )
    # Another document may contain one of the erased sentences in a chunk of its own.
    elsewhere = ctx.lake.phrases_of_others(dead, traces.phrases)
    elsewhere |= ctx.catalog.traces.find_shared_phrases(ctx.ref, ids, traces.phrases)
    phrases = [phrase for phrase in traces.phrases if phrase not in elsewhere]
    return Traces(ids, dead, phrases, sorted(names))


def collect_traces_of_tenant(catalog: Catalog, lake: Lake, erasure: Erasure) -> Traces:
    """Collect the traces that a tenant would leave behind, before it is removed."""
    ids = erasure.document_ids[:_MOST_NAMES]
    phrases = (phrase for text in _texts_of_tenant(lake, erasure) for phrase in phrases_in(text))
    own = list(islice(dict.fromkeys(phrases), _MOST_PHRASES))
    return Traces(ids, phrases=own, names=catalog.traces.list_names(erasure.ref, ids))


def keep_traces(catalog: Catalog, notes: NoteStore, erasure: Erasure, traces: Traces) -> Erasure:
    """Keep the traces of an erasure until it ends; return the erasure with them.

    Args:
        catalog: the installation's catalog.
        notes: the notes in the lake.
        erasure: the erasure, before it has erased any data.
        traces: the traces that it would leave behind.
    """
    key, nonce = AESGCM.generate_key(bit_length=256), os.urandom(_NONCE_BYTES)
    sealed = nonce + AESGCM(key).encrypt(nonce, traces.as_json().encode(), erasure.id.bytes)
    notes.write(_key_name(erasure), base64.b64encode(key).decode())
    progress = {**erasure.progress, _KEPT: base64.b64encode(sealed).decode()}
    return catalog.erasures.record_progress(erasure, progress)


def has_traces(erasure: Erasure) -> bool:
    """Return whether traces were kept: from then on the erasure may have erased data."""
    return _KEPT in erasure.progress


def read_traces(notes: NoteStore, erasure: Erasure) -> Traces:
    """Return the kept traces of an erasure; only its document ids if the key was lost."""
    sealed = base64.b64decode(erasure.progress[_KEPT])
    nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    try:
        key = base64.b64decode(notes.read(_key_name(erasure)) or "")
        return Traces.parse(AESGCM(key).decrypt(nonce, ciphertext, erasure.id.bytes))
    except (InvalidTag, ValueError):
        return Traces(erasure.document_ids)


def replace_traces(
    catalog: Catalog, notes: NoteStore, erasure: Erasure, proof: Mapping[str, Any]
) -> None:
    """Record the proof of an erasure in place of its traces, then make the traces unreadable.

    This happens before the receipt is written: a crash after the receipt would leave the key behind
    forever.
    """
    progress = {name: value for name, value in erasure.progress.items() if name != _KEPT}
    catalog.erasures.record_progress(erasure, {**progress, _PROOF: dict(proof)})
    notes.delete(_key_name(erasure))


def recorded_proof(erasure: Erasure) -> Mapping[str, Any] | None:
    """Return the proof of an erasure that lacks only its receipt; otherwise None."""
    proof: Mapping[str, Any] | None = erasure.progress.get(_PROOF)
    return proof


def phrases_in(text: str) -> list[str]:
    """Return parts of a text by which it can be found again; they end at word boundaries."""
    shortest, longest = _PHRASE_CHARACTERS
    sentences = (match[0].strip() for match in _SENTENCE.finditer(text))
    phrases = (_cut(sentence, longest) for sentence in sentences)
    return [phrase for phrase in phrases if len(phrase) >= shortest][:_PHRASES_OF_A_CHUNK]


def _cut(sentence: str, longest: int) -> str:
    """Cut a sentence after a word, or anywhere in scripts without spaces between words."""
    if len(sentence) <= longest:
        return sentence
    words = sentence[: longest + 1].rpartition(" ")[0].rstrip()
    return words if len(words) >= _PHRASE_CHARACTERS[0] else sentence[:longest]


def _phrases_of_chunks(ctx: TenantContext, dead: DeadKeys) -> Iterator[str]:
    found = (
        phrase
        for keys in batched(sorted(dead.chunk_sets), 200)
        for chunk_set in ctx.lake.chunk_sets(keys).values()
        for chunk in chunk_set.chunks
        if chunk.text_sha256 in dead.texts
        for text in (chunk.text, chunk.context)
        for phrase in phrases_in(text)
    )
    return islice(found, _MOST_PHRASES)


def _texts_of_tenant(lake: Lake, erasure: Erasure) -> Iterable[str]:
    tables = lake.tenant(erasure.ref.id, erasure.ref.incarnation)
    try:
        for keys in batched(islice(sorted(tables.parsed_keys()), _MOST_PHRASES), _TEXTS_AT_ONCE):
            for row in tables.parsed(keys).values():
                yield row.parsed.text
    except ServiceUnavailable:
        return  # A table that cannot be read is deleted as well.


def _key_name(erasure: Erasure) -> str:
    return f"erasure_{erasure.id}.json"
