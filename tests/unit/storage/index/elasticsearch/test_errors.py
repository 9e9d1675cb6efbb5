"""Faulty states of Elasticsearch recognized by responses that no server of the tests gives."""

from typing import Any

import pytest
from elastic_transport import ApiResponseMeta, HttpHeaders, NodeConfig
from elasticsearch import UnsupportedProductError

from rag_assets.common.errors import (
    IndexInconsistent,
    IndexUnavailable,
    RagAssetsError,
    SearchRejected,
    ServiceUnavailable,
)
from rag_assets.storage.index.elasticsearch.errors import (
    build_bulk_item_error,
    convert_response_error,
    translated_errors,
)

TEXT = "the confidential merger"
NODE = NodeConfig("http", "127.0.0.1", 9200)


def response(kind: str, reason: str = TEXT, **more: Any) -> dict[str, Any]:
    return {"error": {"type": kind, "reason": reason, **more}, "status": 400}


def failed_shards(kind: str, **more: Any) -> dict[str, Any]:
    """Return a response whose shards have all failed."""
    reason = {"type": "query_shard_exception", "reason": TEXT, "caused_by": {"type": kind, **more}}
    shard = {"shard": 0, "index": "rag-index-1", "node": None, "reason": reason}
    return response("search_phase_execution_exception", failed_shards=[shard])


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (400, response("mapper_parsing_exception"), IndexUnavailable, "a missing module"),
        (400, response("parsing_exception", caused_by={"type": "named_object_not_found_exception"}),
         IndexUnavailable, "a missing module"),
        (400, response("media_type_header_exception"), IndexUnavailable, "too old"),
        (503, response("master_not_discovered_exception"), IndexUnavailable, "elected a master"),
        (503, response("cluster_block_exception",
                       "blocked by: [SERVICE_UNAVAILABLE/1/state not recovered / initialized];"),
         IndexUnavailable, "is starting"),
        (429, response("es_rejected_execution_exception"), ServiceUnavailable, "is overloaded"),
        (429, response("circuit_breaking_exception"), ServiceUnavailable, "too little memory"),
        (429, "too many requests", ServiceUnavailable, "is overloaded"),
        (502, "<html>Bad gateway</html>", ServiceUnavailable, "does not answer (status 502)"),
        (401, response("security_exception"), ServiceUnavailable, "refuses the account"),
        (403, "Forbidden", ServiceUnavailable, "refuses the account"),
        (500, response("i_o_exception"), IndexUnavailable, "cannot write to its disk"),
        (404, response("index_not_found_exception", index="rag-1"), IndexInconsistent, "'rag-1'"),
        (503, response("unavailable_shards_exception",
                       f"[rag-1][0] primary shard is not active, source[{TEXT}]"),
         IndexUnavailable, "index 'rag-1' is red"),
        (400, failed_shards("too_many_clauses"), SearchRejected, "more words and filters"),
        (400, failed_shards("other"), IndexInconsistent, "'rag-index-1' has a different mapping"),
        (400, response("some_new_exception"), IndexInconsistent, "some_new_exception (status 400)"),
        (418, None, IndexInconsistent, "no reason given (status 418)"),
    ],
)  # fmt: skip
def test_a_response_has_a_condition_with_a_remedy(
    status: int, body: object, kind: type[RagAssetsError], said: str
) -> None:
    error = convert_response_error(status, body, "rag-own", tenant_id="acme")
    assert type(error) is kind
    assert said in error.message
    assert error.hint
    assert TEXT not in error.advice
    assert "{" not in error.message


def test_hints_name_the_tenant_and_the_index() -> None:
    blocked = "index [rag-1] blocked by: [FORBIDDEN/8/index write (api)];"
    refused = response("cluster_block_exception", blocked)
    error = convert_response_error(403, refused, tenant_id="acme")
    assert error.message == "index 'rag-1' is blocked by the setting index.blocks.write"
    lift = 'lift the block at Elasticsearch: PUT /rag-1/_settings {"index.blocks.write": null}'
    assert error.hint == lift
    missing = response("index_not_found_exception")
    gone = convert_response_error(404, missing, "rag-2", tenant_id="acme")
    assert gone.message == "index 'rag-2' is gone"
    assert gone.hint is not None
    assert gone.hint.endswith("rag-assets sync acme --repair")


@pytest.mark.parametrize(
    "kind",
    ["document_parsing_exception", "mapper_parsing_exception", "strict_dynamic_mapping_exception",
     "illegal_argument_exception"],
)  # fmt: skip
def test_an_entry_that_is_refused_is_of_another_mapping(kind: str) -> None:
    reason = f"failed to parse field [n]. Preview of field's value: '{TEXT}'"
    cause = {"type": "number_format_exception", "reason": TEXT}
    item = {"_index": "rag-1", "status": 400, **response(kind, reason, caused_by=cause)}
    error = build_bulk_item_error(item)
    assert type(error) is IndexInconsistent
    assert error.message.startswith("index 'rag-1' rejected an entry (")
    assert TEXT not in error.advice


def test_another_product_is_named() -> None:
    meta = ApiResponseMeta(200, "1.1", HttpHeaders(), 0.1, NODE)
    with pytest.raises(IndexUnavailable, match="is not Elasticsearch"), translated_errors():
        raise UnsupportedProductError("unknown product", meta=meta, body=None)
