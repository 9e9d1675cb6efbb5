"""The embedded Elasticsearch's account that may only search the alias of one tenant."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from elasticsearch import ApiError, Elasticsearch

from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.runtime.elasticsearch_install import SEARCHER, Access
from tests.guarded_server import (
    DOCUMENT,
    INDEX,
    access_to,
    authorization,
    guarded_server,
    require_untouched,
)
from tests.raw_http import Target, statuses_in

Search = dict[str, Any]
_KNN: Search = {"knn": {"field": "vector", "query_vector": [1, 0], "k": 3}}
_LOOKUP = {"terms": {"text": {"index": INDEX, "id": "1", "path": "tenant"}}}


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedElasticsearch]:
    with guarded_server() as server:
        yield server


@pytest.fixture(scope="module")
def target(server: EmbeddedElasticsearch) -> Target:
    return Target.of(server.url)


@pytest.fixture(scope="module")
def access(server: EmbeddedElasticsearch) -> Access:
    return access_to(server)


@pytest.fixture(scope="module")
def searcher(server: EmbeddedElasticsearch) -> Iterator[Elasticsearch]:
    with Elasticsearch(server.get_url(SEARCHER)) as client:
        yield client


@pytest.fixture(autouse=True)
def nothing_is_done(server: EmbeddedElasticsearch) -> Iterator[None]:
    yield
    require_untouched(server)


def test_the_searcher_finds_what_an_alias_shows(searcher: Elasticsearch) -> None:
    searches: list[Search] = [
        _KNN,
        {**_KNN, "source": ["text"], "size": 1, "min_score": 0.1},
        {"query": {"knn": _KNN["knn"]}},
        {"query": {"bool": {"must": [{"match": {"text": "valve"}}]}}, "sort": ["_score"]},
        {"knn": {**_KNN["knn"], "filter": [{"terms": {"tenant": ["ours", "theirs"]}}]}},
    ]
    for search in searches:
        hits = searcher.search(index="of-ours", **search)["hits"]["hits"]
        assert [hit["_id"] for hit in hits] == ["0"]


@pytest.mark.parametrize("name", [INDEX, "unfiltered", "of-*", "_all", "of-ours,of-theirs", "none"])
def test_the_searcher_searches_nothing_but_one_alias(searcher: Elasticsearch, name: str) -> None:
    with pytest.raises(ApiError) as caught:
        searcher.search(index=name)
    assert caught.value.status_code == 403


@pytest.mark.parametrize(
    "search",
    [
        {"suggest": {"s": {"text": "acquisitio", "term": {"field": "text"}}}},
        {"aggs": {"a": {"terms": {"field": "tenant", "min_doc_count": 0}}}},
        {"aggs": {"a": {"global": {}}}},
        {"explain": True},
        {"profile": True},
        {"query": _LOOKUP},
        {"query": {"bool": {"must_not": [{"constant_score": {"filter": _LOOKUP}}]}}},
        {"query": {"dis_max": {"queries": [{"match_all": {}}, _LOOKUP]}}},
        {"post_filter": _LOOKUP},
        {"knn": {**_KNN["knn"], "filter": _LOOKUP}},
        {"query": {"knn": {**_KNN["knn"], "filter": _LOOKUP}}},
        {
            "query": {
                "more_like_this": {"fields": ["text"], "like": [{"_index": INDEX, "_id": "1"}]}
            }
        },
        {"query": {"wrapper": {"query": base64.b64encode(json.dumps(_LOOKUP).encode()).decode()}}},
        {"highlight": {"fields": {"text": {"highlight_query": _LOOKUP}}}},
        {"rescore": {"window_size": 5, "query": {"rescore_query": _LOOKUP}}},
        {"runtime_mappings": {"r": {"type": "keyword"}}},
        {"collapse": {"field": "tenant"}},
        {"retriever": {"standard": {"query": {"match_all": {}}}}},
        {"scroll": "1m"},
    ],
)
def test_the_searcher_learns_nothing_that_an_alias_does_not_show(
    searcher: Elasticsearch, search: Search
) -> None:
    with pytest.raises(ApiError) as caught:
        searcher.search(index="of-ours", **search)
    assert caught.value.status_code == 403
    assert "acquisition" not in str(caught.value.body)


@pytest.mark.parametrize(
    "path",
    [
        "of-ours/_termvectors/0?term_statistics=true&fields=text",
        "of-ours/_explain/0?q=text:acquisition",
        "of-ours/_validate/query?explain=true&q=text:acquisition",
        "of-ours/_doc/1",
        "of-ours/_source/1",
        "of-ours/_count",
        "of-ours/_msearch",
        "of-ours/_field_caps?fields=*",
        "of-ours/_search_shards",
        "of-ours/_search/../_termvectors/0",
        "of-ours/_pit?keep_alive=1m",
        "of-ours/_search?suggest_field=text&suggest_text=acquisitio&suggest_mode=always",
        f"%73hared/_search?{INDEX}",
        "_search",
        "_search?index=of-ours",
        "_cat/indices",
        "_cluster/state",
    ],
)
def test_the_searcher_reaches_nothing_beside_a_search(
    target: Target, access: Access, path: str
) -> None:
    own = authorization(access.get_authorization_header(SEARCHER))
    for method in ("GET", "POST"):
        answer = target.send(target.request(method, f"/{path}", own))
        assert statuses_in(answer) in ([403], [400])
        assert b"acquisition" not in answer


def test_the_searcher_changes_nothing(target: Target, access: Access) -> None:
    own = authorization(access.get_authorization_header(SEARCHER))
    for method in ("PUT", "DELETE", "PATCH", "HEAD"):
        for path in (f"/{INDEX}", "/of-ours/_doc/0", "/of-ours/_search", f"/{INDEX}/_close"):
            status = target.status(target.request(method, path, own, body=DOCUMENT))
            assert status in {400, 403, 405}
    close = target.request("POST", f"/{INDEX}/_close", own)
    assert target.status(close) == 403
