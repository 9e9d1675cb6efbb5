"""Proof of a purge: nothing of the documents is found in any store that can be reached."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from rag_assets.common.batches import batched
from rag_assets.pipeline.blobs import nobodys_blobs
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.former_places import count_files_left, open_former_places
from rag_assets.pipeline.live_keys import needed_keys
from rag_assets.storage.catalog.erasure_rows import Erasure
from rag_assets.storage.lake.model import DeadKeys

_PHRASE_CHARACTERS = (24, 120)
_PHRASES_OF_A_CHUNK = 3
MOST_PHRASES = 500
_SENTENCE = re.compile(r"[^.!?\n]+")
_OUT_OF_REACH: Final = {
    "Postgres's write-ahead log": "its files are overwritten after the next checkpoints",
    "free space in files of tables": "rewritten when its page is filled again, or by VACUUM FULL",
    "snapshots and backups of Postgres, Elasticsearch, the lake and blobs": (
        "by their own retention"
    ),
    "files of sources": "a source keeps its documents; they are not added again while unchanged",
}
_AT_THE_PROVIDER: Final = {"logs of the embedding provider": "by the provider's retention"}


@dataclass(frozen=True, slots=True)
class Traces:
    """What a document would leave behind, held in memory alone.

    Attributes:
        document_ids: of the documents.
        dead: keys in the lake that nothing else needs.
        phrases: parts of their texts, of passages that nothing else needs.
        names: uris, and ids of chunks without offsets.
        uploaded: whether files were uploaded with them.
    """

    document_ids: tuple[str, ...]
    dead: DeadKeys
    phrases: tuple[str, ...]
    names: tuple[str, ...]
    uploaded: bool


def traces_of(ctx: TenantContext, erasure: Erasure, dead: DeadKeys) -> Traces:
    """Collect what documents would leave behind, before they are erased."""
    names = ctx.catalog.traces.names(ctx.ref, erasure.document_ids)
    phrases = list(dict.fromkeys(_phrases(ctx, dead)))
    # A neighbour may have a sentence of theirs in a passage of its own.
    elsewhere = ctx.lake.phrases_of_others(dead, phrases)
    elsewhere |= ctx.catalog.traces.pushed_elsewhere(ctx.ref, erasure.document_ids, phrases)
    own = tuple(phrase for phrase in phrases if phrase not in elsewhere)
    return Traces(erasure.document_ids, dead, own, tuple(names), bool(erasure.blobs))


def prove(
    ctx: TenantContext, traces: Traces, deleted_entries: int, dead_rows: int
) -> dict[str, Any]:
    """Look for what is left of documents in every store.

    Args:
        ctx: of the tenant.
        traces: of the documents.
        deleted_entries: that the index's files still hold.
        dead_rows: that Postgres's tables still hold.

    Returns:
        what was searched and found, by store, and what cannot be reached, with when it goes.
    """
    found: dict[str, int | list[str]] = {
        "index": _found_in_index(ctx, traces),
        "lake": _found_in_lake(ctx, traces),
        "postgres": _found_in_postgres(ctx, traces),
    }
    if open_former_places(ctx.catalog, ctx.settings).lakes:
        found["former places"] = count_files_left(ctx, traces.dead)
    if traces.uploaded:
        # What other uploads need is theirs; nothing else may be left.
        found["blobs"] = len(nobodys_blobs(ctx.catalog, ctx.blobs, ctx.ref))
    searched_for = ["document ids", "hashes", "names", "phrases"]
    return _proof(ctx, searched_for, found, deleted_entries, dead_rows)


def prove_masked(
    ctx: TenantContext, dead: DeadKeys, deleted_entries: int, dead_rows: int
) -> dict[str, Any]:
    """Look for texts in which credentials were found: by their hashes, since all was scanned.

    Args:
        ctx: of the tenant.
        dead: keys of the texts in the lake.
        deleted_entries, dead_rows: see prove.
    """
    traces = Traces((), dead, (), (), uploaded=False)
    found = {"index": _found_in_index(ctx, traces), "lake": _found_in_lake(ctx, traces)}
    return _proof(ctx, ["hashes"], found, deleted_entries, dead_rows)


def phrases_of(texts: Iterable[str]) -> list[str]:
    """Parts of texts by which they are found again; as many as a proof looks for."""
    found = (phrase for text in texts for phrase in _sentences(text))
    return list(islice(dict.fromkeys(found), MOST_PHRASES))


def _proof(
    ctx: TenantContext,
    searched_for: Sequence[str],
    found: Mapping[str, Any],
    deleted_entries: int,
    dead_rows: int,
) -> dict[str, Any]:
    unseen = open_former_places(ctx.catalog, ctx.settings).unseen
    remote = ctx.tenant.embedder.provider not in {"local", "deterministic"}
    return proof_of(searched_for, found, deleted_entries, dead_rows, unseen=unseen, remote=remote)


def proof_of(
    searched_for: Sequence[str],
    found: Mapping[str, Any],
    deleted_entries: int,
    dead_rows: int,
    *,
    unseen: Sequence[str],
    remote: bool,
) -> dict[str, Any]:
    """What was searched and found, as a receipt holds it.

    Args:
        searched_for: kinds of traces.
        found: by store.
        deleted_entries, dead_rows: see prove.
        unseen: former places of the installation that could not be searched.
        remote: whether texts were sent to a provider.
    """
    return {
        "searched for": [*searched_for],
        "found": dict(found),
        "deleted entries in segments": deleted_entries,
        "dead rows in tables": dead_rows,
        "places not seen": [*unseen],
        "complete": not (any(found.values()) or deleted_entries or dead_rows or unseen),
        "out of reach": {**_OUT_OF_REACH, **(_AT_THE_PROVIDER if remote else {})},
    }


def _phrases(ctx: TenantContext, dead: DeadKeys) -> Iterator[str]:
    count = 0
    for keys in batched(sorted(dead.chunk_sets), 200):
        for chunk_set in ctx.lake.chunk_sets(keys).values():
            for chunk in chunk_set.chunks:
                if chunk.text_sha256 not in dead.texts:
                    continue
                for phrase in _sentences(chunk.text):
                    yield phrase
                    count += 1
                    if count >= MOST_PHRASES:
                        return


def _sentences(text: str) -> list[str]:
    shortest, longest = _PHRASE_CHARACTERS
    sentences = (match[0].strip()[:longest] for match in _SENTENCE.finditer(text))
    return [sentence for sentence in sentences if len(sentence) >= shortest][:_PHRASES_OF_A_CHUNK]


def _found_in_index(ctx: TenantContext, traces: Traces) -> int:
    """How many entries have an id or a hash of the documents, or a phrase in a text of nobody."""
    needed = needed_keys(ctx).known.texts or set()
    found: set[str] = set()
    for index_name in ctx.store.indexes.names():
        for ids in batched(traces.document_ids, 500):
            found.update(ctx.store.entries.matching(index_name, ctx.ref.id, "document_id", ids))
        for hashes in batched(sorted(traces.dead.texts), 500):
            found.update(ctx.store.entries.matching(index_name, ctx.ref.id, "text_sha256", hashes))
        for phrase in traces.phrases:
            holding = ctx.store.entries.containing(index_name, ctx.ref.id, phrase)
            found.update(id_ for id_, text_sha256 in holding.items() if text_sha256 not in needed)
    if (vectors := ctx.store.vectors) is not None:
        found.update(vectors.matching(ctx.ref.id, "document_id", traces.document_ids))
        found.update(vectors.matching(ctx.ref.id, "text_sha256", sorted(traces.dead.texts)))
    return len(found)


def _found_in_lake(ctx: TenantContext, traces: Traces) -> int:
    """How many files, listed or not, hold their rows, or a phrase in a row of nobody."""
    return len(ctx.lake.files_holding(traces.dead, traces.phrases, needed_keys(ctx).known))


def _found_in_postgres(ctx: TenantContext, traces: Traces) -> list[str]:
    texts = [*traces.document_ids, *traces.dead.parsed, *traces.dead.chunk_sets]
    texts += [*traces.dead.texts, *traces.phrases]
    return ctx.catalog.traces.holding(ctx.ref.id, texts, traces.names)
