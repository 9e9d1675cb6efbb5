"""Proof of an erasure: no trace of the documents was found in any store that can be reached.

Traces are the data that documents leave behind in stores. They are collected before the documents
are erased, and kept until the erasure ends, so that a run after a crash searches for the same
traces. They quote the erased text. So the erasure's row stores them encrypted, and the lake stores
the key as a note. When the erasure ends, the note is deleted; copies of the row that remain in
Postgres files can then no longer be decrypted.

An installation that moved may have left data behind in former locations. Data in locations that can
be opened is erased with the rest; a receipt lists every other recorded location as not seen.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import islice
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from rag_assets.common.batches import batched
from rag_assets.common.errors import ErasureIncomplete, ServiceUnavailable
from rag_assets.common.settings import Settings
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.uploads import list_unreferenced_blobs
from rag_assets.pipeline.versions import find_needed_keys
from rag_assets.storage.blobs.store import BlobStore, open_blobs_by_url
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.erasure.erasures import Erasure
from rag_assets.storage.catalog.erasure.traces import DagsterHistory
from rag_assets.storage.index.store import NoteStore
from rag_assets.storage.installation.markers import Root, read_machine_name
from rag_assets.storage.lake.model import DeadKeys, LiveKeys
from rag_assets.storage.lake.store import Lake, TenantLake

_PHRASE_CHARACTERS: Final = (24, 120)
_PHRASES_PER_CHUNK: Final = 3
_MAX_PHRASES: Final = 500
_MAX_NAMES: Final = 500
_SENTENCE: Final = re.compile(r"[^.!?\n]+")
_NONCE_BYTES: Final = 12
_TEXTS_AT_ONCE: Final = 50
_TRACES_FIELD: Final = "traces"
"""Name of the encrypted traces in the progress of an erasure."""
_PROOF: Final = "proof"
_OUT_OF_REACH: Final = {
    "Postgres's write-ahead log": "its files are overwritten after the next checkpoints",
    "free space in files of tables": "rewritten when its page is filled again, or by VACUUM FULL",
    "snapshots and backups of Postgres, Elasticsearch, the lake and blobs": (
        "by their own retention"
    ),
    "files of sources": "a source keeps its documents; they are not added again while unchanged",
}
_VALUES_AT_ONCE = 500
LEFT_IN_FILES: Final = ("deleted entries in segments", "dead rows in tables")
"""Keys of a proof for deleted data that files still contain."""
_AT_THE_PROVIDER: Final = {"logs of the embedding provider": "by the provider's retention"}
_IN_OTHER_INSTANCES: Final = {
    "runs of earlier versions in other Dagster instances than those that are named": (
        "deleted by the sensor `tenants` of each, where it runs"
    )
}
_IN_SERVERLESS: Final = {
    "files of Elastic Serverless": "deleted entries go when Elastic merges its segments"
}


@dataclass(frozen=True, slots=True)
class FormerPlaces:
    """Former locations of data that can be opened, and the others, as listed in receipts."""

    lakes: tuple[Lake, ...]
    blobs: tuple[BlobStore, ...]
    unseen: tuple[str, ...]


def open_former_places(catalog: Catalog, settings: Settings) -> FormerPlaces:
    """Open the former locations of lake and blobs; former servers cannot be reached."""
    row = catalog.installation.read()
    if row is None:
        return FormerPlaces((), (), ())
    former = [place for place in catalog.installation.places() if place.left_at is not None]
    lakes, blobs, unseen = list[Lake](), list[BlobStore](), list[str]()
    for place in former:
        if place.kind == "index":
            continue
        is_root = place.kind in {"lake", "blobs"}
        if not is_root or Root(place.kind, place.address, settings).owner() != row.id:
            unseen.append(f"the {place.kind} at {place.address}, left on {place.left_at:%Y-%m-%d}")
        elif place.kind == "lake":
            lakes.append(Lake(place.address))
        else:
            blobs.append(open_blobs_by_url(place.address, settings))
    return FormerPlaces(tuple(lakes), tuple(blobs), tuple(unseen))


def purge_tenant_files(stores: Iterable[Lake | BlobStore], ref: TenantRef) -> int:
    """Delete the files of a tenant, and of earlier tenants with its id.

    Return how many of the stores still have such files.
    """
    stores_with_files = 0
    for store in stores:
        for incarnation in list_incarnations(store, ref):
            store.tenant(ref.id, incarnation).purge()
        stores_with_files += bool(list_incarnations(store, ref))
    return stores_with_files


def erase_rows(ctx: TenantContext, dead: DeadKeys) -> None:
    """Delete the rows of documents from former lakes."""
    for lake in _iter_former_lakes(ctx):
        lake.compact(LiveKeys(), dead)


def count_files_left(ctx: TenantContext, dead: DeadKeys) -> int:
    """Return how many files of former lakes contain rows of erased documents."""
    lakes = _iter_former_lakes(ctx)
    return sum(len(lake.find_files_with_erased_data(dead, (), LiveKeys())) for lake in lakes)


def _iter_former_lakes(ctx: TenantContext) -> Iterator[TenantLake]:
    for lake in open_former_places(ctx.catalog, ctx.settings).lakes:
        if ctx.ref.incarnation in list_incarnations(lake, ctx.ref):
            yield lake.tenant(ctx.ref.id, ctx.ref.incarnation, guard=ctx.guard)


def list_incarnations(store: Lake | BlobStore, ref: TenantRef) -> list[int]:
    """Return the incarnations of a tenant id that have data in a store, up to the current one."""
    return [
        number
        for id_, number in store.incarnations()
        if id_ == ref.id and number <= ref.incarnation
    ]


@dataclass(frozen=True, slots=True)
class Traces:
    """The traces that documents, or a whole tenant, would leave behind.

    Attributes:
        dead: keys in the lake that no other document needs.
        phrases: parts of the documents' texts that appear nowhere else; a sample if there are many.
        names: uris of the documents, and ids of their chunks with the offsets left out.
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
        """Parse traces from the JSON that as_json() returns."""
        fields: dict[str, Any] = json.loads(text)
        dead = DeadKeys(*(frozenset(fields[name]) for name in ("parsed", "chunk_sets", "texts")))
        return cls(fields["document_ids"], dead, fields["phrases"], fields["names"])


def collect_traces(ctx: TenantContext, erasure: Erasure, dead: DeadKeys) -> Traces:
    """Collect the traces that documents would leave behind, before they are erased."""
    phrases = list(dict.fromkeys(_iter_phrases_of_chunks(ctx, dead)))
    names = ctx.catalog.traces.list_names(ctx.ref, erasure.document_ids)
    return Traces(erasure.document_ids, dead, phrases, names)


def drop_living_traces(ctx: TenantContext, traces: Traces) -> Traces:
    """Return the traces without those that also occur in an existing document."""
    living = ctx.catalog.traces.find_existing(ctx.ref, traces.document_ids)
    ids = [id_ for id_ in traces.document_ids if id_ not in living]
    names = {*traces.names} - {*ctx.catalog.traces.list_names(ctx.ref, sorted(living))}
    needed = find_needed_keys(ctx).known
    dead = DeadKeys(
        traces.dead.parsed - (needed.parsed or set()),
        traces.dead.chunk_sets - (needed.chunk_sets or set()),
        traces.dead.texts - (needed.texts or set()),
    )
    # Another document may contain one of the erased sentences in its own chunk.
    shared_phrases = ctx.lake.find_phrases_in_kept_texts(dead, traces.phrases)
    shared_phrases |= ctx.catalog.traces.find_shared_phrases(ctx.ref, ids, traces.phrases)
    phrases = [phrase for phrase in traces.phrases if phrase not in shared_phrases]
    return Traces(ids, dead, phrases, sorted(names))


def collect_traces_of_tenant(catalog: Catalog, lake: Lake, erasure: Erasure) -> Traces:
    """Collect the traces that a tenant would leave behind, before it is removed."""
    ids = erasure.document_ids[:_MAX_NAMES]
    phrases = (
        phrase for text in _iter_texts_of_tenant(lake, erasure) for phrase in extract_phrases(text)
    )
    own = list(islice(dict.fromkeys(phrases), _MAX_PHRASES))
    return Traces(ids, phrases=own, names=catalog.traces.list_names(erasure.ref, ids))


def keep_traces(catalog: Catalog, notes: NoteStore, erasure: Erasure, traces: Traces) -> Erasure:
    """Keep the traces of an erasure until it ends; return the erasure with them."""
    key, nonce = AESGCM.generate_key(bit_length=256), os.urandom(_NONCE_BYTES)
    sealed = nonce + AESGCM(key).encrypt(nonce, traces.as_json().encode(), erasure.id.bytes)
    notes.write(_build_key_name(erasure), base64.b64encode(key).decode())
    progress = {**erasure.progress, _TRACES_FIELD: base64.b64encode(sealed).decode()}
    return catalog.erasures.record_progress(erasure, progress)


def has_traces(erasure: Erasure) -> bool:
    """Return whether traces of an erasure are kept, so that data may already be erased."""
    return _TRACES_FIELD in erasure.progress


def read_traces(notes: NoteStore, erasure: Erasure) -> Traces:
    """Return the kept traces of an erasure; only its document ids if the key was lost."""
    sealed = base64.b64decode(erasure.progress[_TRACES_FIELD])
    nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    try:
        key = base64.b64decode(notes.read(_build_key_name(erasure)) or "")
        return Traces.parse(AESGCM(key).decrypt(nonce, ciphertext, erasure.id.bytes))
    except (InvalidTag, ValueError):
        return Traces(erasure.document_ids)


def replace_traces(
    catalog: Catalog, notes: NoteStore, erasure: Erasure, proof: Mapping[str, Any]
) -> None:
    """Record the proof of an erasure in place of its traces, then make the traces unreadable.

    This precedes the receipt: a crash after the receipt would leave the key behind forever.
    """
    progress = {name: value for name, value in erasure.progress.items() if name != _TRACES_FIELD}
    catalog.erasures.record_progress(erasure, {**progress, _PROOF: dict(proof)})
    notes.delete(_build_key_name(erasure))


def read_proof(erasure: Erasure) -> Mapping[str, Any] | None:
    """Return the proof of an erasure that lacks only its receipt; otherwise None."""
    proof: Mapping[str, Any] | None = erasure.progress.get(_PROOF)
    return proof


def extract_phrases(text: str) -> list[str]:
    """Return phrases of a text by which copies of it can be found; they end at word boundaries."""
    shortest, longest = _PHRASE_CHARACTERS
    sentences = (match[0].strip() for match in _SENTENCE.finditer(text))
    phrases = (_shorten_sentence(sentence, longest) for sentence in sentences)
    return [phrase for phrase in phrases if len(phrase) >= shortest][:_PHRASES_PER_CHUNK]


def _shorten_sentence(sentence: str, longest: int) -> str:
    """Shorten a sentence to at most `longest` characters, after a word if possible."""
    if len(sentence) <= longest:
        return sentence
    words = sentence[: longest + 1].rpartition(" ")[0].rstrip()
    return words if len(words) >= _PHRASE_CHARACTERS[0] else sentence[:longest]


def _iter_phrases_of_chunks(ctx: TenantContext, dead: DeadKeys) -> Iterator[str]:
    texts = (
        phrase
        for keys in batched(sorted(dead.chunk_sets), 200)
        for chunk_set in ctx.lake.chunk_sets(keys).values()
        for chunk in chunk_set.chunks
        if chunk.text_sha256 in dead.texts
        for text in (chunk.text, chunk.context)
        for phrase in extract_phrases(text)
    )
    return islice(texts, _MAX_PHRASES)


def _iter_texts_of_tenant(lake: Lake, erasure: Erasure) -> Iterable[str]:
    tables = lake.tenant(erasure.ref.id, erasure.ref.incarnation)
    try:
        for keys in batched(
            islice(sorted(tables.read_parsed_keys()), _MAX_PHRASES), _TEXTS_AT_ONCE
        ):
            for row in tables.parsed(keys).values():
                yield row.parsed.text
    except ServiceUnavailable:
        return  # A table that cannot be read is deleted as well.


def _build_key_name(erasure: Erasure) -> str:
    return f"erasure_{erasure.id}.json"


def prove_erasure(
    ctx: TenantContext,
    traces: Traces,
    deleted_entries: int | None,
    dead_rows: int,
    *,
    uploaded: bool,
) -> dict[str, Any]:
    """Search every store for remaining data of erased documents; return the proof."""
    traces_by_store: dict[str, int | list[str]] = {
        "index": _count_index_entries(ctx, traces),
        "lake": _count_lake_files(ctx, traces),
        "postgres": _list_postgres_columns(ctx, traces),
    }
    if open_former_places(ctx.catalog, ctx.settings).lakes:
        traces_by_store["former places"] = count_files_left(ctx, traces.dead)
    if uploaded:
        # Blobs that other uploads need are not leftovers; any other blob is.
        traces_by_store["blobs"] = len(list_unreferenced_blobs(ctx.catalog, ctx.blobs, ctx.ref))
    return _build_document_proof(ctx, traces.kinds, traces_by_store, deleted_entries, dead_rows)


def prove_credential_erasure(
    ctx: TenantContext, dead: DeadKeys, deleted_entries: int | None, dead_rows: int
) -> dict[str, Any]:
    """Search every store for erased texts with credentials, by hash; return the proof."""
    traces = Traces(dead=dead)
    remaining = {"index": _count_index_entries(ctx, traces), "lake": _count_lake_files(ctx, traces)}
    return _build_document_proof(ctx, ["hashes"], remaining, deleted_entries, dead_rows)


def require_nothing_left(
    remaining: Mapping[str, Any],
    subject: str,
    command: str,
    histories: Sequence[DagsterHistory] = (),
) -> None:
    """Require that a search after an erasure has found no data."""
    places = ", ".join(
        f"{place}: {remainder}" for place, remainder in remaining.items() if remainder
    )
    instances = ", ".join(history.place for history in histories)
    waiting = (
        f" once the Dagster instance {instances} has deleted its runs: start its daemon, or set"
        " DAGSTER_HOME to that instance"
        if instances
        else ""
    )
    if places:
        raise ErasureIncomplete(
            f"data of {subject} still exists ({places}), so no receipt has been written",
            hint=f"the erasure stays open: continue it with `{command}`{waiting}",
        )


def _build_document_proof(
    ctx: TenantContext,
    searched_for: Sequence[str],
    remaining: Mapping[str, Any],
    deleted_entries: int | None,
    dead_rows: int,
) -> dict[str, Any]:
    unseen = open_former_places(ctx.catalog, ctx.settings).unseen
    remote = ctx.tenant.embedder.provider not in {"local", "deterministic"}
    return build_proof(
        searched_for, remaining, deleted_entries, dead_rows, unseen=unseen, remote=remote
    )


def add_counts_left(counts: Iterable[int | None]) -> int | None:
    """Return the sum of counts of several indexes; None if one of the counts is unknown."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def build_proof(
    searched_for: Sequence[str],
    remaining: Mapping[str, Any],
    deleted_entries: int | None,
    dead_rows: int,
    *,
    unseen: Sequence[str],
    remote: bool,
) -> dict[str, Any]:
    """Return the kinds of traces searched for and the traces found, as stored in a receipt."""
    return {
        "searched for": [*searched_for],
        "found": dict(remaining),
        "deleted entries in segments": deleted_entries,
        "dead rows in tables": dead_rows,
        "places not seen": [*unseen],
        "complete": not (any(remaining.values()) or deleted_entries or dead_rows or unseen),
        "out of reach": {
            **_OUT_OF_REACH,
            **(_AT_THE_PROVIDER if remote else {}),
            **(_IN_SERVERLESS if deleted_entries is None else {}),
        },
    }


def add_dagster_instances(
    proof: Mapping[str, Any], settings: Settings, others: Sequence[DagsterHistory]
) -> dict[str, Any]:
    """Return the proof of a tenant's removal with the Dagster instances that have its records."""
    folder = settings.dagster_home or settings.own_dagster_home
    until = "deleted by its sensor `tenants`; start its daemon"
    remaining = {f"runs in the Dagster instance {other.place}": until for other in others}
    return {
        **proof,
        "Dagster instance": f"{folder} on {read_machine_name()}",
        "other Dagster instances": [
            {
                "id": other.instance,
                "place": other.place,
                "last run": other.last_run_at.astimezone(UTC).isoformat(timespec="seconds"),
            }
            for other in others
        ],
        "out of reach": {**proof["out of reach"], **remaining, **_IN_OTHER_INSTANCES},
    }


def find_remaining_entries(ctx: TenantContext, traces: Traces) -> dict[str, set[str]]:
    """Return the ids of the entries that still contain data of the documents, by index.

    Entries of builds that the catalog lacks, for example after a restore, are found as well.
    """
    needed = find_needed_keys(ctx).known.texts or set()
    values = {"document_id": traces.document_ids, "text_sha256": sorted(traces.dead.texts)}
    entries, remaining = ctx.store.entries, dict[str, set[str]]()
    for index_name in ctx.store.indexes.names():
        ids = {
            id_
            for field, value in values.items()
            for batch in batched(value, _VALUES_AT_ONCE)
            for id_ in entries.matching(index_name, ctx.ref.id, field, batch)
        }
        for phrase in traces.phrases:
            holding = entries.containing(index_name, ctx.ref.id, phrase)
            ids.update(id_ for id_, text_sha256 in holding.items() if text_sha256 not in needed)
        if ids:
            remaining[index_name] = ids
    return remaining


def _count_index_entries(ctx: TenantContext, traces: Traces) -> int:
    entries = set[str]().union(*find_remaining_entries(ctx, traces).values())
    if (vectors := ctx.store.vectors) is not None:
        entries.update(vectors.matching(ctx.ref.id, "document_id", traces.document_ids))
        entries.update(vectors.matching(ctx.ref.id, "text_sha256", sorted(traces.dead.texts)))
    return len(entries)


def _count_lake_files(ctx: TenantContext, traces: Traces) -> int:
    """Return how many files of the lake still contain rows or phrases of these documents alone."""
    return len(
        ctx.lake.find_files_with_erased_data(
            traces.dead, traces.phrases, find_needed_keys(ctx).known
        )
    )


def _list_postgres_columns(ctx: TenantContext, traces: Traces) -> list[str]:
    texts = [*traces.document_ids, *traces.dead.parsed, *traces.dead.chunk_sets]
    texts += [*traces.dead.texts, *traces.phrases]
    return ctx.catalog.traces.find_columns(ctx.ref.id, texts, traces.names)
