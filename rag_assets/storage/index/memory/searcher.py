"""The contents of the store in memory, and searches with exact scores, by cosine and by words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import IndexInconsistent
from rag_assets.common.times import stamp
from rag_assets.storage.index import fields
from rag_assets.storage.index.model import (
    NONE_MOVED,
    SYMBOL,
    Candidate,
    EntryCounts,
    EntryFilter,
    EqualTexts,
    IndexRef,
    IndexSpec,
    MovedPages,
    Owner,
    PassageVector,
    Places,
    Presence,
    RankingRequest,
    StoredEntry,
    entry_id,
    is_within,
)
from rag_assets.storage.index.terms import (
    MARK,
    TITLE_WEIGHT,
    parse_query_words,
    weigh_pairs,
    weigh_words,
)


@dataclass(frozen=True, slots=True)
class Row:
    """An entry stored in memory.

    Attributes:
        tenant: the tenant whose searches may find it, like the routing in Elasticsearch. It may
            differ from the tenant in the fields if these were altered.
    """

    id: str
    tenant: str
    fields: Mapping[str, Any]
    vector: npt.NDArray[np.float32]


@dataclass(slots=True)
class Index:
    """An index in memory.

    Attributes:
        rows: the entries, by (tenant whose searches may find the entry, entry id).
    """

    spec: IndexSpec
    dedicated_to: str | None
    identity: str
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)


@dataclass(slots=True)
class Memory:
    """The contents of a store in memory."""

    prefix: str
    shared_limit: int
    indexes: dict[str, Index] = field(default_factory=dict)
    views: dict[str, tuple[str, Owner]] = field(default_factory=dict)
    lock: RLock = field(default_factory=RLock)
    numbers: Iterator[int] = field(default_factory=count)

    def create(self, name: str, spec: IndexSpec, dedicated_to: str | None) -> Index:
        """Return the index of that name, creating it if necessary."""
        with self.lock:
            if name not in self.indexes:
                self.indexes[name] = Index(spec, dedicated_to, f"{name}@{next(self.numbers)}")
            return self.indexes[name]

    def presence(self, index: IndexRef) -> Presence:
        """Return whether an index is present, missing, or replaced by another of the same name."""
        live = self.indexes.get(index.name)
        return index.compute_presence(None if live is None else live.identity)

    def rows(self, index_name: str) -> list[Row]:
        """Return all rows of an index; empty if it does not exist."""
        with self.lock:
            index = self.indexes.get(index_name)
            return [] if index is None else [*index.rows.values()]

    def list_owned_rows(self, index_name: str, owner: Owner) -> list[Row]:
        """Return the rows of one generation that its tenant's searches may find."""
        return [
            row
            for row in self.rows(index_name)
            if row.tenant == owner.tenant and _is_owned(row.fields, owner)
        ]


def _is_owned(stored: Mapping[str, Any], owner: Owner) -> bool:
    owner_values = stored["tenant"], stored["incarnation"], stored["generation"]
    return owner_values == (owner.tenant, owner.incarnation, owner.generation)


def build_missing_index_error(index_name: str) -> IndexInconsistent:
    """Return the error for an index that does not exist."""
    return IndexInconsistent(
        f"index {index_name!r} is gone", hint="restore it with `rag-assets sync --repair`"
    )


class MemorySearcher:
    """Compares a query with every entry (see EntrySearcher)."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def rankings(
        self, index_name: str, owner: Owner, requests: Sequence[RankingRequest]
    ) -> list[list[Candidate]]:
        rows = self._list_rows(index_name, owner)
        return [rank_rows(rows, owner, request) for request in requests]

    async def cosines(
        self, index_name: str, owner: Owner, vector: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, float]:
        rows = self._list_rows(index_name, owner)
        return {row.id: compute_cosine(row, vector) for row in rows if row.id in set(ids)}

    async def entries(
        self,
        index_name: str,
        owner: Owner,
        ids: Sequence[str],
        scopes: Collection[str] | None,
        vector: npt.NDArray[np.float32] | None = None,
        *,
        moved: MovedPages = NONE_MOVED,
    ) -> dict[str, StoredEntry]:
        wanted = set(ids)
        return {
            row.id: fields.build_stored_entry(
                owner, row.id, row.fields, None if vector is None else compute_cosine(row, vector)
            )
            for row in self._list_rows(index_name, owner)
            if row.id in wanted and (scopes is None or is_readable(row.fields, scopes, moved))
        }

    async def vectors(
        self, index_name: str, owner: Owner, ids: Sequence[str]
    ) -> dict[str, PassageVector]:
        wanted = set(ids)
        return {
            row.id: PassageVector(row.fields["chunk_id"], row.vector)
            for row in self._list_rows(index_name, owner)
            if row.id in wanted and row.vector.any()
        }

    async def count_entries(
        self, index_name: str, owner: Owner, recent_keys: Sequence[str]
    ) -> EntryCounts:
        rows = self._list_rows(index_name, owner)
        recent = sum(row.fields["index_key"] in recent_keys for row in rows)
        return EntryCounts(len(rows), recent)

    async def presence(self, index: IndexRef) -> Presence:
        return self._memory.presence(index)

    async def close(self) -> None:
        """Do nothing: memory has no connections."""

    def _list_rows(self, index_name: str, owner: Owner) -> list[Row]:
        if index_name not in self._memory.indexes:
            raise build_missing_index_error(index_name)
        return self._memory.list_owned_rows(index_name, owner)


_WORD = re.compile(r"\w+")
_TITLES = ("title", "heading_path")
_WRITTEN = ("text", "context", *_TITLES)


def rank_rows(rows: Sequence[Row], owner: Owner, request: RankingRequest) -> list[Candidate]:
    """Return the candidates of a request among rows, best first, ties broken by id."""
    rows = [row for row in rows if _passes_filter(row.fields, request.entry_filter)]
    matched: Mapping[str, int] = {}
    if isinstance(request.by, str):
        found_words = _compute_word_scores(rows, request.by)
        scores = {id_: score for id_, (score, _) in found_words.items()}
        matched = {id_: count for id_, (_, count) in found_words.items()}
    elif isinstance(request.by, Places):
        scores = _compute_place_scores(rows, request.by)
    elif isinstance(request.by, EqualTexts):
        scores = {row.id: 0.0 for row in rows if row.fields["text_key"] in request.by.keys}
    elif request.by is None:
        scores = {row.id: 0.0 for row in rows}
    else:
        scores = {row.id: compute_cosine(row, request.by) for row in rows if row.vector.any()}
    candidates = [
        _build_candidate(row, owner, scores[row.id], request, matched.get(row.id, 0))
        for row in rows
        if row.id in scores
    ]
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.id))[
        : request.returned
    ]


def _build_candidate(
    row: Row, owner: Owner, score: float, request: RankingRequest, matched: int
) -> Candidate:
    stored = row.fields
    document_id, index_key, ordinal = stored["document_id"], stored["index_key"], stored["ordinal"]
    return Candidate(
        entry_id(owner, document_id, index_key, ordinal),
        document_id,
        index_key,
        score,
        stored["uri"],
        stored["text_key"],
        ordinal,
        tuple(stored.get("within", ())),
        symbol=str(stored["metadata"].get(SYMBOL, "")) if request.symbols else "",
        matched=matched,
    )


def compute_cosine(row: Row, vector: npt.NDArray[np.float32]) -> float:
    """Return the cosine of an entry's vector and a query vector; 0 if one of them is zero."""
    product = float(np.linalg.norm(row.vector) * np.linalg.norm(vector))
    return float(row.vector @ vector) / product if product else 0.0


def is_readable(stored: Mapping[str, Any], scopes: Collection[str], moved: MovedPages) -> bool:
    """Return whether a caller with these scopes may read an entry."""
    page = stored.get("page_uuid")
    if page is not None and page in moved.readable:
        return True
    return stored["access_scope"] in scopes and (page is None or page not in moved.unreadable)


def _passes_filter(stored: Mapping[str, Any], wanted: EntryFilter) -> bool:
    paths, tags, modified = wanted.paths, wanted.tags, stored["modified_at"]
    after, before = wanted.modified_after, wanted.modified_before
    one_of = (
        ("source_type", wanted.source_types),
        ("source", wanted.sources),
        ("document_id", wanted.documents),
        ("language", wanted.languages),
    )
    return (
        (wanted.scopes is None or is_readable(stored, wanted.scopes, wanted.moved))
        and (wanted.pages is None or stored.get("page_uuid") in wanted.pages)
        and all(values is None or stored.get(name) in values for name, values in one_of)
        and stored["source_type"] not in wanted.without_source_types
        and (paths is None or any(is_within(stored["uri"], path) for path in paths))
        and (after is None or modified >= stamp(after))
        and (before is None or modified < stamp(before))
        and (tags is None or (tags != () and set(tags) <= set(stored["tags"])))
        and all(
            any(_holds_value(stored["metadata"].get(key), value) for value in values)
            for key, values in wanted.metadata.items()
        )
        and not any(
            _holds_value(stored["metadata"].get(key), value)
            for key, values in wanted.without_metadata.items()
            for value in values
        )
    )


def _holds_value(stored: Any, value: str | None) -> bool:
    if value is None:
        return stored is None or stored == []
    values = stored if isinstance(stored, list | tuple) else [stored]
    return any(value == (str(v).lower() if isinstance(v, bool) else str(v)) for v in values)


def _compute_word_scores(rows: Sequence[Row], query: str) -> dict[str, tuple[float, int]]:
    """Return each row's word score, and how many of the query's words it contains."""
    words = parse_query_words(query)
    listed = {row.id: row.fields["terms"].split() for row in rows}
    terms = {id_: Counter(those) for id_, those in listed.items()}
    written = {row.id: [_read_text(row, name) for name in _WRITTEN] for row in rows}
    phrases = {
        phrase_text: _build_phrase_pattern(phrase_text)
        for phrase_text in (*words.phrases, *words.title_words)
    }
    weighed = weigh_words(
        words,
        len(rows),
        forms={form: sum(form in counts for counts in terms.values()) for form in words.forms},
        phrases={
            phrase: sum(any(map(phrases[phrase].search, texts)) for texts in written.values())
            for phrase in words.phrases
        },
        marks={
            analysis: sum(f"{MARK}{analysis}" in counts for counts in terms.values())
            for analysis in words.marks
        },
    )

    pairs = weigh_pairs(words, weighed)

    def times(row: Row, word: str, first: int = 0) -> int:
        return max(len(phrases[word].findall(text)) for text in written[row.id][first:])

    scores = {}
    for row in rows:
        matched_words = {
            word: max([terms[row.id][form] for form in phrase_text.forms], default=0)
            for word, phrase_text in weighed.items()
        }
        matched_words |= {
            word: max(matched_words[word], times(row, word))
            for word, phrase_text in weighed.items()
            if phrase_text.is_written
        }
        score = sum(
            words.terms.get(word, 1) * weighed[word].weight * _saturate(count)
            for word, count in matched_words.items()
        )
        score += sum(
            TITLE_WEIGHT
            * max([weighed[part].weight for part in parts if part in weighed], default=0.0)
            * _saturate(times(row, word, 1))
            for word, parts in words.title_words.items()
        )
        score += sum(
            pair.weight
            * _saturate(
                max(
                    _count_pairs(listed[row.id], phrase_text, pair.gap)
                    for phrase_text in pair.phrases
                )
            )
            for pair in pairs
        )
        if score > 0:
            matched = sum(1 for word in words.terms if matched_words.get(word))
            scores[row.id] = score * row.fields["length_weight"], matched
    return scores


def _count_pairs(terms: Sequence[str], phrase: str, gap: int) -> float:
    """Return how often two words follow each other; n words between them divide by n + 1."""
    left, right = phrase.split(" ")
    frequency, last = 0.0, None
    for at, term in enumerate(terms):
        if term == left:
            last = at
        elif term == right and last is not None:
            if at - last - 1 <= gap:
                frequency += 1 / (at - last)
            last = None
    return frequency


def _saturate(count: float) -> float:
    return count / (count + 1)


def _read_text(row: Row, name: str) -> str:
    """Return the text of a row's field in lower case."""
    value = row.fields.get(name) or ""
    return value.lower() if isinstance(value, str) else "\n".join(value).lower()


def _build_phrase_pattern(phrase: str) -> re.Pattern[str]:
    """Return a pattern that matches a phrase: its words adjacent and in order."""
    words = r"\W+".join(map(re.escape, _WORD.findall(phrase.lower())))
    return re.compile(rf"\b{words}\b" if phrase.isascii() else re.escape(phrase.lower()))


def _compute_place_scores(rows: Sequence[Row], places: Places) -> dict[str, float]:
    """Return the score of each row that matches a place, by id; earlier places score higher."""
    order: dict[tuple[str, str | None], int] = {}
    for number, place in enumerate(places.of):
        order.setdefault((place.document_id, place.symbol), len(places.of) - number)
    scores = {}
    for row in rows:
        document_id, symbol = row.fields["document_id"], row.fields["metadata"].get(SYMBOL)
        score = max(
            order.get((document_id, symbol_or_none), 0) for symbol_or_none in (symbol, None)
        )
        if score:
            scores[row.id] = float(score)
    return scores
