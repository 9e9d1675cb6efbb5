from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from rag_assets.search.gathering import merge_equal_texts
from rag_assets.storage.index.elasticsearch.queries import (
    build_filter_clauses,
    build_word_count_search,
    build_words_search,
    parse_candidate,
    parse_word_weights,
)
from rag_assets.storage.index.model import (
    EntryFilter,
    Owner,
    RankingRequest,
    entry_id,
    is_within,
    make_entry_id_function,
)
from rag_assets.storage.index.terms import (
    ANALYSES,
    MAX_CLAUSES,
    MAX_PAIRS,
    MAX_TITLE_WORDS,
    QueryWords,
    WeighedWord,
    compute_rarity,
    parse_query_words,
    weigh_words,
)

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATER = datetime(2026, 11, 21, 12, 0, 0, 5_000, UTC)


def test_an_empty_filter_has_no_clauses() -> None:
    assert build_filter_clauses(EntryFilter()) == []


def test_several_languages_are_alternatives() -> None:
    clause = {"terms": {"language": ["de", "python"]}}
    assert build_filter_clauses(EntryFilter(languages=("de", "python"))) == [clause]


@pytest.mark.parametrize("path", ["handbook/code", "handbook/code/"])
def test_a_path_matches_a_file_or_a_folder_and_no_partial_name(path: str) -> None:
    [clause] = build_filter_clauses(EntryFilter(paths=(path,)))
    either = [{"terms": {"uri": ["handbook/code"]}}, {"prefix": {"uri": "handbook/code/"}}]
    assert clause["bool"]["should"] == either
    uris = ["handbook/code", "handbook/code/a.md", "handbook/code-review.md", "handbook"]
    assert [uri for uri in uris if is_within(uri, path)] == uris[:2]


def test_a_time_range_includes_its_start_and_excludes_its_end() -> None:
    both = build_filter_clauses(EntryFilter(modified_after=NOON, modified_before=LATER))
    span = {"gte": "2026-11-21T12:00:00.000Z", "lt": "2026-11-21T12:00:00.005Z"}
    assert both == [{"range": {"modified_at": span}}]
    [since] = build_filter_clauses(EntryFilter(modified_after=NOON))
    assert since == {"range": {"modified_at": {"gte": "2026-11-21T12:00:00.000Z"}}}
    [until] = build_filter_clauses(EntryFilter(modified_before=NOON))
    assert until == {"range": {"modified_at": {"lt": "2026-11-21T12:00:00.000Z"}}}


LONG = {
    "words": " ".join(f"w{number:x}" for number in range(3_600)),
    "one word again and again": "x " * 10_000,
    "identifiers": " ".join(f"a{number:x}_B{number:x}.c-{number:x}" for number in range(1_400)),
    "signs": "".join(chr(0x4E00 + number) for number in range(9_990)),
    "syllables": "".join(chr(0x3041 + number % 80) for number in range(9_990)),
    "faces": "".join(chr(0x1F300 + number) for number in range(700)) * 20,
}
FILTERED = EntryFilter(
    scopes=frozenset({"public"}),
    source_types=("files",),
    documents=("d",),
    paths=tuple(f"files/{number}" for number in range(200)),
    languages=("de",),
    modified_after=NOON,
    tags=tuple(f"tag {number}" for number in range(100)),
    metadata={f"key {number}": ("value", None) for number in range(20)},
    without_metadata={f"other {number}": ("value",) for number in range(5)},
)
LEAST_LIMIT = 1_024
"""The least limit of clauses that Elasticsearch sets, with little memory."""
OWNER = Owner("t", 1, 1)


def clauses(body: Any, kind: str) -> Iterator[Any]:
    """Yield the clauses of a kind, at any depth."""
    for key, value in body.items() if isinstance(body, dict) else enumerate(body):
        if key == kind:
            yield value
        elif isinstance(value, dict | list):
            yield from clauses(value, kind)


def weighed(words: QueryWords, entries: int, marks: dict[str, int]) -> dict[str, WeighedWord]:
    """Return the weighted words, if each occurs in an entry."""
    forms, phrases = dict.fromkeys(words.forms, 1), dict.fromkeys(words.phrases, 1)
    return weigh_words(words, entries, forms=forms, phrases=phrases, marks=marks)


def searched(question: str) -> list[Any]:
    """Return the clauses of a question's query, assuming that each of its words occurs."""
    request, words = RankingRequest(question, 10), parse_query_words(question)
    weights = weighed(words, 100, dict.fromkeys(ANALYSES, 1))
    return [*clauses(build_words_search(OWNER, request, words, weights), "intervals")]


def test_the_most_words_and_filters_fit_the_limit_of_clauses() -> None:
    filters = sum(map(leaves, build_filter_clauses(FILTERED)))
    owned = 3
    assert owned + filters + 2 * MAX_TITLE_WORDS + MAX_CLAUSES + MAX_PAIRS <= LEAST_LIMIT


def leaves(clause: Any) -> int:
    """Return the number of clauses in a clause, counting the parts of compound ones."""
    inner = [
        one for part in clause.get("bool", {}).values() if isinstance(part, list) for one in part
    ]
    return sum(map(leaves, inner)) or 1


@pytest.mark.parametrize("question", LONG.values(), ids=LONG)
def test_only_the_beginning_of_a_very_long_query_is_searched(question: str) -> None:
    assert 0 < len(searched(question)) <= 2 * MAX_TITLE_WORDS + MAX_CLAUSES + MAX_PAIRS
    assert all(one[field]["match"]["query"] for one in searched(question) for field in one)


def test_a_query_of_usual_length_is_searched_whole() -> None:
    question = " ".join(f"valve-{number} opens" for number in range(46))
    words = parse_query_words(question)
    assert [*words.terms][-1] == "45"
    assert words.terms["opens"] == 46
    assert [*words.title_words] == [*dict.fromkeys(question.split())]


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("東京の水道管 v2", ["東京", "京の", "の水", "水道", "道管", "v2", "v", "2"]),
        ("東京v2", ["東京", "v2", "v", "2"]),
        ("バルブの点検", ["バルブの", "の点", "点検"]),
        ("ﾊﾞﾙﾌﾞ", ["バルブ"]),
        ("阀", ["阀"]),
        ("वाल्व दबाव valve", ["वाल्व", "दबाव", "valve"]),
        ("🚒 valves", ["🚒", "valves"]),
        ("Überdruck клапан", ["überdruck", "клапан"]),
        ("학점인정은", ["학점인정은", "학점", "점인", "인정", "정은"]),
    ],
)
def test_words_without_spaces_are_searched_by_pairs(query: str, terms: list[str]) -> None:
    assert [*parse_query_words(query).terms] == terms


def test_a_word_is_weighed_by_its_rarity_among_what_passes_the_filter() -> None:
    words = parse_query_words("valves pump 阀门")
    request = RankingRequest("valves pump 阀门", 10, EntryFilter(scopes=frozenset({"a"})))
    body = build_word_count_search(OWNER, request, words)
    assert {"terms": {"access_scope": ["a"]}} in body["query"]["bool"]["filter"]
    assert {"valv", "valve", "valves", "pump"} <= {*body["aggs"]["terms"]["filters"]["filters"]}

    def buckets(**counts: int) -> dict[str, Any]:
        return {"buckets": {name: {"doc_count": count} for name, count in counts.items()}}

    found = {"terms": buckets(valv=2, valves=3, 阀门=9), "phrases": buckets(阀门=9)}
    found["marks"] = buckets(en=9, fr=0)
    answer = {"hits": {"total": {"value": 9}}, "aggregations": found}
    # A word that nothing readable holds is not searched, and no form of a language that is not
    # among what may be read.
    assert parse_word_weights(words, answer) == {
        "valves": WeighedWord(compute_rarity(9, 2), ("valv",), is_written=False),
        "阀门": WeighedWord(compute_rarity(9, 9), ("阀门",), is_written=False),
    }
    assert compute_rarity(9, 2) > compute_rarity(9, 9) > 0


def test_entries_of_the_former_version_are_searched_by_their_terms() -> None:
    words = parse_query_words("größere किताबें")
    mixed = weighed(words, 3, {"de": 2})
    assert {"größere", "gross"} <= {*mixed["größere"].forms}
    assert mixed["किताबें"].is_written
    present = weighed(words, 2, {"de": 2})
    assert present["größere"].forms == ("gross",)
    assert not present["किताबें"].is_written


HITS_OWNER = Owner("acme", 1, 2)


def hit(document: str, **more: list[Any]) -> dict[str, Any]:
    fields = {"document_id": [document], "index_key": ["key"], "ordinal": [3]}
    return {"fields": {**fields, "text_sha256": [f"of {document}"], "text_key": ["same"], **more}}


def test_a_candidate_has_the_id_of_its_entry() -> None:
    found = parse_candidate(make_entry_id_function(HITS_OWNER), hit("a", uri=["files/a.md"]), 0.5)
    assert found.id == entry_id(HITS_OWNER, "a", "key", 3)
    assert (found.uri, found.text_key, found.score) == ("files/a.md", "same", 0.5)


def test_a_uri_without_a_doc_value_is_only_missing_from_the_list_of_duplicates() -> None:
    hits = [hit("a", uri=["files/a.md"]), hit("b", uri=["files/b.md"]), hit("c")]
    id_of = make_entry_id_function(HITS_OWNER)
    first, second, unnamed = (parse_candidate(id_of, each, 0.5) for each in hits)
    [distinct] = merge_equal_texts([first, second, unnamed])
    assert (distinct.id, distinct.also) == (first.id, ("files/b.md",))
    [distinct] = merge_equal_texts([unnamed, first])
    assert (distinct.id, distinct.also) == (unnamed.id, ("files/a.md",))


def test_many_ids_are_those_of_one_after_the_other() -> None:
    for owner in (HITS_OWNER, Owner('caf\u00e9 \\"', 3, 1)):
        id_of = make_entry_id_function(owner)
        for document, key in (("0af3", "b1"), ('a"b', "key"), ("", "k\u00e9"), ("a\n", "a,b")):
            assert id_of(document, key, 7) == entry_id(owner, document, key, 7)


def test_a_candidate_without_a_text_key_is_like_no_other() -> None:
    found = hit("a")
    del found["fields"]["text_key"], found["fields"]["text_sha256"]
    assert parse_candidate(make_entry_id_function(HITS_OWNER), found, 0.5).text_key == entry_id(
        HITS_OWNER, "a", "key", 3
    )
