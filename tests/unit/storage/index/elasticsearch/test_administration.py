from typing import Any

import pytest

from rag_assets.storage.index.elasticsearch.administration import is_tenant_filter
from rag_assets.storage.index.elasticsearch.mapping import build_owner_clauses
from rag_assets.storage.index.model import Owner

OWNER = Owner("acme", 4, 1)


@pytest.mark.parametrize(
    ("query", "safe"),
    [
        ({"bool": {"filter": build_owner_clauses(OWNER)}}, True),
        ({"bool": {"filter": [{"term": {"tenant": {"value": "acme"}}}]}}, True),
        ({"bool": {"filter": build_owner_clauses(Owner("other", 4, 1))}}, False),
        ({"bool": {"should": [{"term": {"tenant": "acme"}}]}}, False),
        ({"bool": {"filter": [{"terms": {"tenant": ["acme", "other"]}}]}}, False),
        ({"match_all": {}}, False),
        ({}, False),
    ],
)
def test_only_a_filter_that_shows_one_tenant_is_trusted(query: dict[str, Any], safe: bool) -> None:
    assert is_tenant_filter("acme", query) is safe
