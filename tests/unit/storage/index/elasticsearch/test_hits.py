"""Conversion of Elasticsearch's hits to candidates."""

from __future__ import annotations

from typing import Any

from rag_assets.search.gathering import merge_equal_texts
from rag_assets.storage.index.elasticsearch.queries import parse_candidate
from rag_assets.storage.index.model import Owner, entry_id, make_entry_id_function

OWNER = Owner("acme", 1, 2)


def hit(document: str, **more: list[Any]) -> dict[str, Any]:
    fields = {"document_id": [document], "index_key": ["key"], "ordinal": [3]}
    return {"fields": {**fields, "text_sha256": [f"of {document}"], "text_key": ["same"], **more}}


def test_a_candidate_has_the_id_of_its_entry() -> None:
    found = parse_candidate(make_entry_id_function(OWNER), hit("a", uri=["files/a.md"]), 0.5)
    assert found.id == entry_id(OWNER, "a", "key", 3)
    assert (found.uri, found.text_key, found.score) == ("files/a.md", "same", 0.5)


def test_a_uri_without_a_doc_value_is_only_missing_from_the_list_of_duplicates() -> None:
    first, second, unnamed = (
        parse_candidate(make_entry_id_function(OWNER), hit("a", uri=["files/a.md"]), 0.9),
        parse_candidate(make_entry_id_function(OWNER), hit("b", uri=["files/b.md"]), 0.8),
        parse_candidate(make_entry_id_function(OWNER), hit("c"), 0.7),
    )
    [distinct] = merge_equal_texts([first, second, unnamed])
    assert (distinct.id, distinct.also) == (first.id, ("files/b.md",))
    [distinct] = merge_equal_texts([unnamed, first])
    assert (distinct.id, distinct.also) == (unnamed.id, ("files/a.md",))


def test_many_ids_are_those_of_one_after_the_other() -> None:
    for owner in (OWNER, Owner('caf\u00e9 \\"', 3, 1)):
        id_of = make_entry_id_function(owner)
        for document, key in (("0af3", "b1"), ('a"b', "key"), ("", "k\u00e9"), ("a\n", "a,b")):
            assert id_of(document, key, 7) == entry_id(owner, document, key, 7)


def test_a_candidate_without_a_text_key_is_like_no_other() -> None:
    found = hit("a")
    del found["fields"]["text_key"], found["fields"]["text_sha256"]
    assert parse_candidate(make_entry_id_function(OWNER), found, 0.5).text_key == entry_id(
        OWNER, "a", "key", 3
    )
