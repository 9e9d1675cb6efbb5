"""Conversion of queries and entries to Elasticsearch's JSON, and of hits to entries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from elasticsearch.helpers import pack_dense_vector

from rag_assets.common.times import stamp
from rag_assets.storage.index import fields
from rag_assets.storage.index.elasticsearch import mapping
from rag_assets.storage.index.model import (
    SYMBOL,
    Candidate,
    Entry,
    EntryFilter,
    EntryVector,
    EqualTexts,
    MovedPages,
    Owner,
    PassageVector,
    Place,
    Places,
    RankingRequest,
    ScannedEntry,
    StoredEntry,
    make_entry_id_function,
)
from rag_assets.storage.index.terms import (
    MARK,
    TITLE_WEIGHT,
    QueryWords,
    WeighedWord,
    list_analyses,
    weigh_pairs,
    weigh_words,
)

ENTRY_OPTIONS: Mapping[str, Any] = {"_source": {"excludes": ["terms"]}, "track_total_hits": False}
"""The options of a search that returns whole entries."""

SCORE_OPTIONS: Mapping[str, Any] = {"_source": False, "track_total_hits": False}
"""Options of a search that returns scores only."""

VECTOR_OPTIONS: Mapping[str, Any] = {
    "_source": {"includes": ["chunk_id", "vector"], "exclude_vectors": False},
    "track_total_hits": False,
}
"""Options of a search that returns vectors, and the ids of passages."""

_CANDIDATE_FIELDS = ("document_id", "index_key", "ordinal", "uri", "text_key", "within")

SYMBOL_FIELD = f"metadata.{SYMBOL}"

_MAX_CANDIDATES = 10_000
"""Elasticsearch's limit of `num_candidates`."""
_TITLES = ("title", "heading_path")
_WRITTEN_FIELDS = ("text", "context", *_TITLES)
"""Fields that contain words as they are written."""
_TERMS = "terms"
_MARKS = "marks"
_PHRASES = "phrases"


def build_candidate_options(owner: Owner, *, symbols: bool = False) -> dict[str, Any]:
    """Return the options of a search that returns candidates."""
    # Generations of the first schemas have neither a digest key nor text_key.
    older = ("text_sha256",) if owner.digest_key is None else ()
    return {
        "_source": False,
        # Not even the stored id is read: reading it takes a fifth of a search's time, and most
        # candidates are never returned.
        "stored_fields": "_none_",
        "docvalue_fields": [*_CANDIDATE_FIELDS, *older, *((SYMBOL_FIELD,) if symbols else ())],
        "track_total_hits": False,
    }


def build_entry_count_search(owner: Owner, recent_keys: Sequence[str]) -> dict[str, Any]:
    """Return the search that counts a generation's entries, and those with these index keys."""
    recent = {"filter": {"terms": {"index_key": list(recent_keys)}}}
    return {
        "size": 0,
        "track_total_hits": True,
        "query": build_entries_query(owner),
        "aggs": {"recent": recent},
    }


def build_reachable_query(tenant: str) -> dict[str, Any]:
    """Return a query for all entries that have this tenant as their tenant or as their routing."""
    return {"bool": {"should": [{"term": {"tenant": tenant}}, {"term": {"_routing": tenant}}]}}


def build_entries_query(
    owner: Owner,
    clauses: Sequence[Mapping[str, Any]] = (),
    *,
    excluding: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a query that matches a generation's entries and computes no scores."""
    query: dict[str, Any] = {"filter": [*mapping.build_owner_clauses(owner), *clauses]}
    if excluding is not None:
        query["must_not"] = [excluding]
    return {"bool": query}


def build_ranking_search(owner: Owner, request: RankingRequest) -> dict[str, Any]:
    """Return the search for a ranking that is not by words; see build_words_search for words."""
    clauses = build_filter_clauses(request.entry_filter)
    if isinstance(request.by, str):
        raise TypeError("a ranking by words needs weights: see build_words_search")
    if request.by is None:
        return {"query": build_entries_query(owner, clauses), "size": request.returned}
    if isinstance(request.by, Places):
        return _rank_by_place(owner, request.by, request.returned, clauses)
    if isinstance(request.by, EqualTexts):
        # The field is not indexed: the values of the tenant's entries are compared.
        equal = {"terms": {"text_key": list(request.by.keys)}}
        return {"query": build_entries_query(owner, [*clauses, equal]), "size": request.returned}
    # The limit decides how the vectors are searched, regardless of how many hits are returned.
    search = build_cosine_search(owner, request.by, clauses, request.limit)
    return {**search, "size": request.returned}


def build_id_clause(ids: Sequence[str]) -> dict[str, Any]:
    """Return a clause that matches the entries with these ids."""
    return {"ids": {"values": list(ids)}}


def build_filter_clauses(entry_filter: EntryFilter) -> list[dict[str, Any]]:
    """Return the query clauses that an entry must match to pass a filter."""
    clauses: list[dict[str, Any]] = []
    if entry_filter.scopes is not None:
        clauses.append(_match_readable(entry_filter.scopes, entry_filter.moved))
    if entry_filter.pages is not None:
        clauses.append({"terms": {"page_uuid": list(entry_filter.pages)}})
    for name, values in (
        ("source_type", entry_filter.source_types),
        ("source", entry_filter.sources),
        ("document_id", entry_filter.documents),
        ("language", entry_filter.languages),
    ):
        if values is not None:
            clauses.append({"terms": {name: list(values)}})
    if entry_filter.paths is not None:
        clauses.append(_match_paths([path.rstrip("/") for path in entry_filter.paths]))
    clauses += _match_modification_time(entry_filter.modified_after, entry_filter.modified_before)
    if entry_filter.tags is not None:
        tags: list[dict[str, Any]] = [{"term": {"tags": tag}} for tag in entry_filter.tags]
        clauses += tags or [{"match_none": {}}]
    if entry_filter.without_source_types:
        without = {"terms": {"source_type": list(entry_filter.without_source_types)}}
        clauses.append({"bool": {"must_not": [without]}})
    clauses += [
        _match_any_value(f"metadata.{key}", values) for key, values in entry_filter.metadata.items()
    ]
    clauses += [
        {"bool": {"must_not": [_match_any_value(f"metadata.{key}", values)]}}
        for key, values in entry_filter.without_metadata.items()
    ]
    return clauses


def _match_readable(scopes: Collection[str], moved: MovedPages) -> dict[str, Any]:
    """Return a clause for the entries that a caller with these scopes may read.

    For an entry of a moved page, the page decides instead of the entry's scope.
    """
    by_scope: dict[str, Any] = {"terms": {"access_scope": sorted(scopes)}}
    if moved.unreadable:
        without = {"terms": {"page_uuid": list(moved.unreadable)}}
        by_scope = {"bool": {"filter": [by_scope], "must_not": [without]}}
    if not moved.readable:
        return by_scope
    by_page = {"terms": {"page_uuid": list(moved.readable)}}
    return {"bool": {"should": [by_scope, by_page], "minimum_should_match": 1}}


def _match_any_value(field: str, values: Sequence[str | None]) -> dict[str, Any]:
    """Return a clause for entries with one of these values in a field; None stands for no value."""
    query = {"terms": {field: [value for value in values if value is not None]}}
    if None not in values:
        return query
    absent = {"bool": {"must_not": [{"exists": {"field": field}}]}}
    return {"bool": {"should": [query, absent], "minimum_should_match": 1}}


def _match_paths(paths: Sequence[str]) -> dict[str, Any]:
    """Return a clause for URIs within one of these paths (see is_within)."""
    folders = [{"prefix": {"uri": f"{path}/"}} for path in paths]
    clauses = [{"terms": {"uri": list(paths)}}, *folders]
    return {"bool": {"should": clauses, "minimum_should_match": 1}}


def _match_modification_time(
    after: datetime | None, before: datetime | None
) -> list[dict[str, Any]]:
    """Return the clause for times from `after` (inclusive) to `before`; empty without bounds."""
    bounds = {"gte": after, "lt": before}
    limits = {name: stamp(at) for name, at in bounds.items() if at is not None}
    return [{"range": {"modified_at": limits}}] if limits else []


def build_cosine_search(
    owner: Owner, vector: npt.NDArray[np.float32], clauses: Sequence[Mapping[str, Any]], limit: int
) -> dict[str, Any]:
    """Return a search for the entries most similar to a vector among those that match clauses."""
    nearest: dict[str, Any] = {
        "field": "vector",
        "query_vector": vector,
        "k": limit,
        "num_candidates": min(_MAX_CANDIDATES, max(100, 2 * limit)),
        "filter": [*mapping.build_owner_clauses(owner), *clauses],
    }
    return {"knn": nearest, "size": limit}


def _rank_by_place(
    owner: Owner, places: Places, limit: int, clauses: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return a search that scores entries by which place they match; the first scores highest."""
    last = len(places.of)
    query = build_entries_query(owner, clauses)
    query["bool"] |= {
        "should": [
            {
                "dis_max": {
                    "queries": [
                        {"constant_score": {"filter": _match_place(place), "boost": last - number}}
                        for number, place in enumerate(places.of)
                    ]
                }
            }
        ],
        "minimum_should_match": 1,
    }
    return {"query": query, "size": limit}


def _match_place(place: Place) -> dict[str, Any]:
    document = {"term": {"document_id": place.document_id}}
    if place.symbol is None:
        return document
    return {"bool": {"filter": [document, {"term": {SYMBOL_FIELD: place.symbol}}]}}


def build_word_count_search(
    owner: Owner, request: RankingRequest, words: QueryWords
) -> dict[str, Any]:
    """Return the search that counts, for each word, the filtered entries that contain it.

    It also counts the entries of each analysis, which decide in which forms words are searched.
    """
    counts = {
        _TERMS: {form: {"term": {"terms": form}} for form in sorted(words.forms)},
        _MARKS: {analysis: {"term": {"terms": f"{MARK}{analysis}"}} for analysis in words.marks},
        _PHRASES: {
            phrase: _match_any([{"match_phrase": {field: phrase}} for field in _WRITTEN_FIELDS])
            for phrase in words.phrases
        },
    }
    return {
        "size": 0,
        "track_total_hits": True,
        "query": build_entries_query(owner, build_filter_clauses(request.entry_filter)),
        "aggs": {
            name: {"filters": {"filters": filters}} for name, filters in counts.items() if filters
        },
    }


def parse_word_weights(words: QueryWords, answer: Mapping[str, Any]) -> dict[str, WeighedWord]:
    """Return the weight of each word that some entry contains, from the counts of words.

    Args:
        answer: the answer to the search that build_word_count_search() returns.
    """
    return weigh_words(
        words,
        answer["hits"]["total"]["value"],
        forms=_read_counts(answer, _TERMS),
        phrases=_read_counts(answer, _PHRASES),
        marks=_read_counts(answer, _MARKS),
    )


def parse_counted_analyses(answer: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the analyses of the entries that pass a filter, from the counts of words.

    Args:
        answer: the answer to the search that build_word_count_search() returns.
    """
    return list_analyses(answer["hits"]["total"]["value"], _read_counts(answer, _MARKS))


def _read_counts(answer: Mapping[str, Any], name: str) -> dict[str, int]:
    buckets = answer.get("aggregations", {}).get(name, {}).get("buckets", {})
    return {key: bucket["doc_count"] for key, bucket in buckets.items()}


def build_words_search(
    owner: Owner, request: RankingRequest, words: QueryWords, weights: Mapping[str, WeighedWord]
) -> dict[str, Any]:
    """Return the search for a ranking by words.

    Unlike `match`, `intervals` scores a word only by its frequency in the entry (f / (f + 1)). It
    uses no statistics of the index, because the index contains entries that the caller may not
    read.

    Args:
        weights: the weights by word (see `parse_word_weights`); words without a weight are not
            searched.
    """
    clauses = [
        # The clause is named, so that each hit shows which words it contains.
        _build_word_clause(word, weights[word], count)
        for word, count in words.terms.items()
        if word in weights
    ]
    for word, parts in words.title_words.items():
        part_weights = [weights[part].weight for part in parts if part in weights]
        if part_weights:
            weight = TITLE_WEIGHT * max(part_weights)
            clauses.append(_match_best(_build_interval(field, word, weight) for field in _TITLES))
    clauses += [
        _match_best(_build_interval(_TERMS, one, pair.weight, gap=pair.gap) for one in pair.phrases)
        for pair in weigh_pairs(words, weights)
    ]
    query = build_entries_query(owner, build_filter_clauses(request.entry_filter))
    query["bool"] |= {"should": clauses, "minimum_should_match": 1}
    # Indexes of earlier versions lack the field.
    by_length = {"field": "length_weight", "missing": 1}
    return {
        "query": {"function_score": {"query": query, "field_value_factor": by_length}},
        # The choice among entries with equal scores must not depend on where the index stores them.
        "sort": [{"_score": "desc"}, {"document_id": "asc"}, {"ordinal": "asc"}],
        "size": request.returned,
    }


def _match_any(clauses: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"bool": {"should": [*clauses], "minimum_should_match": 1}}


def _build_word_clause(word: str, weighed: WeighedWord, count: int) -> dict[str, Any]:
    """Return a clause for entries that contain a word in one of its forms, or as it is written."""
    weight = count * weighed.weight
    places = [("terms", form) for form in weighed.forms]
    if weighed.is_written:
        places += [(field, word) for field in _WRITTEN_FIELDS]
    if len(places) == 1:
        return _build_interval(*places[0], weight, name=word)
    return _match_best((_build_interval(*place, weight) for place in places), name=word)


def _build_interval(
    field: str, phrase: str, weight: float, *, gap: int = 0, name: str | None = None
) -> dict[str, Any]:
    """Return a clause for entries with the words of a phrase in a field, in this order.

    Args:
        gap: maximum number of other words between them.
    """
    match = {"query": phrase, "ordered": True, "max_gaps": gap}
    named = {} if name is None else {"_name": name}
    return {"intervals": {field: {"match": match, "boost": weight, **named}}}


def _match_best(queries: Iterable[Mapping[str, Any]], *, name: str | None = None) -> dict[str, Any]:
    named = {} if name is None else {"_name": name}
    return {"dis_max": {"queries": [*queries], **named}}


def build_upsert_action(index_name: str, entry: Entry) -> dict[str, Any]:
    """Return the bulk action that writes an entry; its vector is packed."""
    return {
        "_op_type": "index",
        "_index": index_name,
        "_id": entry.id,
        "routing": entry.owner.tenant,
        "_source": {
            **fields.build_entry_source(entry),
            "vector": pack_dense_vector(np.ascontiguousarray(entry.vector, dtype=np.float32)),
        },
    }


def parse_stored_hit(
    owner: Owner, hit: Mapping[str, Any], cosine: float | None = None
) -> StoredEntry:
    """Return the entry in a hit that was requested with its stored fields."""
    return fields.build_stored_entry(owner, hit["_id"], hit["_source"], cosine)


def parse_entry_vector(owner: Owner, hit: Mapping[str, Any]) -> EntryVector:
    """Return the entry's vector in a hit that was requested with all stored fields."""
    stored = dict(hit["_source"])
    numbers = stored.pop("vector", None)
    vector = None if numbers is None else np.asarray(numbers, dtype=np.float32)
    return fields.build_entry_vector(owner, hit["_id"], stored, vector)


def parse_passage_vector(hit: Mapping[str, Any]) -> PassageVector:
    """Return the vector in a hit of a search with VECTOR_OPTIONS."""
    source = hit["_source"]
    return PassageVector(source["chunk_id"], np.asarray(source["vector"], dtype=np.float32))


def parse_candidate(
    id_of: Callable[[str, str, int], str], hit: Mapping[str, Any], score: float
) -> Candidate:
    """Return the candidate in a hit of a search with build_candidate_options()."""
    values = hit["fields"]
    [document_id], [index_key], [ordinal] = (
        values["document_id"],
        values["index_key"],
        values["ordinal"],
    )
    id_ = id_of(document_id, index_key, ordinal)
    # Generations of earlier schemas have no text_key, and an altered text_key is never needed. A
    # URI of more than 8,191 characters has no doc value.
    [text_key] = values.get("text_key") or values.get("text_sha256") or [id_]
    [uri] = values.get("uri", [""])
    within = tuple(sorted(map(int, values.get("within", ()))))
    [symbol] = values.get(SYMBOL_FIELD, [""])
    return Candidate(
        *(id_, document_id, index_key, score, uri, text_key, int(ordinal), within),
        symbol=symbol,
        matched=len(hit.get("matched_queries", ())),
    )


def parse_ranking(
    owner: Owner, request: RankingRequest, hits: Iterable[Mapping[str, Any]]
) -> list[Candidate]:
    """Return the candidates in the hits of one ranking, best first."""
    score = _read_words_score if isinstance(request.by, str) else parse_cosine
    id_of = make_entry_id_function(owner)
    candidates = [parse_candidate(id_of, hit, score(hit)) for hit in hits]
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.id))


def parse_cosine(hit: Mapping[str, Any]) -> float:
    """Return the cosine of a hit by vector, which Elasticsearch scores as (1 + cosine) / 2."""
    return 2.0 * float(hit["_score"]) - 1.0


def _read_words_score(hit: Mapping[str, Any]) -> float:
    # The last digits of float sums depend on the order in which the index adds the values.
    return float(f"{hit['_score']:.6g}")


def parse_scanned_hit(hit: Mapping[str, Any], digest_key: bytes | None) -> ScannedEntry:
    """Return the entry in a hit of a scan."""
    return fields.build_scanned_entry(hit["_id"], hit["_source"], hit.get("_routing"), digest_key)
