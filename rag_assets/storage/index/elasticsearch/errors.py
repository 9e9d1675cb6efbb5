"""Translation of Elasticsearch's errors to the project's errors: one table of named conditions.

Elasticsearch's own reasons are never repeated, because they may quote a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from elastic_transport import ConnectionError as TransportConnectionError
from elastic_transport import ConnectionTimeout, TransportError
from elasticsearch import ApiError, Elasticsearch, UnsupportedProductError

from rag_assets.common.disk_space import hint_to_start
from rag_assets.common.errors import (
    IndexInconsistent,
    IndexUnavailable,
    RagAssetsError,
    SearchRejected,
    ServiceUnavailable,
)

TRANSIENT = (429, 502, 503, 504)
"""Statuses of transient failures."""

_UNAUTHORIZED = (401, 403)
_HTTP_NOT_ACCEPTABLE = 406


class _Condition(NamedTuple):
    """A kind of failure of Elasticsearch, with the project's error, message and hint for it."""

    error: type[RagAssetsError]
    message: str
    hint: str


_REPAIR: Final = "restore it without embedding anything: rag-assets sync {tenant} --repair"
_CLOSED: Final = _Condition(
    IndexUnavailable,
    "{index} is closed",
    "open the index again: send POST /{name}/_open to Elasticsearch",
)
_RED: Final = _Condition(
    IndexUnavailable,
    "{index} is red: Elasticsearch has no usable copy of its files",
    "the response of Elasticsearch to GET /_cluster/allocation/explain shows the cause. If a"
    " node is starting, wait for it; if the files are lost, delete the index, then:"
    " rag-assets sync {tenant} --repair",
)
_NO_MASTER: Final = _Condition(
    IndexUnavailable,
    "Elasticsearch is starting, or its nodes have not elected a master",
    "try again in a moment; if it does not start, check GET /_cluster/health and the log of"
    " Elasticsearch",
)
_BUSY: Final = _Condition(
    ServiceUnavailable, "Elasticsearch is overloaded: it rejects requests", "try again in a moment"
)
_OTHER_MAPPING: Final = _Condition(
    IndexInconsistent,
    "{index} rejected an entry ({kind})",
    "its mapping may have been altered: `rag-assets check {tenant}` compares it,"
    " `rag-assets sync {tenant} --repair` builds the index again without embedding anything",
)
_LACKS_FEATURES: Final = _Condition(
    IndexUnavailable,
    "Elasticsearch cannot create {index}: its version, or a missing module, does not support"
    " the mapping that vectors need",
    "compare GET / and GET /_cat/plugins with the version in the README; it needs dense_vector with"
    " quantized HNSW, flattened and text fields",
)
_DISK: Final = _Condition(
    IndexUnavailable,
    "Elasticsearch cannot write to its disk",
    "check the log of Elasticsearch and the free space of its data folder, then sync again",
)
_TOO_LONG: Final = _Condition(
    SearchRejected,
    "the search has more words and filters than the index accepts",
    "use fewer words or fewer filters",
)


def _build_read_only_condition(setting: str) -> _Condition:
    return _Condition(
        IndexUnavailable,
        f"{{index}} is blocked by the setting {setting}",
        f'lift the block at Elasticsearch: PUT /{{name}}/_settings {{{{"{setting}": null}}}}',
    )


def _build_cluster_read_only_condition(setting: str) -> _Condition:
    return _Condition(
        IndexUnavailable,
        f"Elasticsearch is read-only because of the setting {setting}",
        f'lift the block: PUT /_cluster/settings {{{{"persistent": {{{{"{setting}": null}}}}}}}}',
    )


_BLOCKS: Final[Mapping[int, _Condition]] = {
    1: _NO_MASTER,
    2: _NO_MASTER,
    4: _CLOSED,
    5: _build_read_only_condition("index.blocks.read_only"),
    6: _build_cluster_read_only_condition("cluster.blocks.read_only"),
    7: _build_read_only_condition("index.blocks.read"),
    8: _build_read_only_condition("index.blocks.write"),
    9: _build_read_only_condition("index.blocks.metadata"),
    12: _Condition(
        IndexUnavailable,
        "the disk of Elasticsearch is nearly full{free}: {index} accepts no entries",
        "free or add disk space there; Elasticsearch lifts the block by itself within a minute."
        " Then sync again",
    ),
    13: _build_cluster_read_only_condition("cluster.blocks.read_only_allow_delete"),
}
"""Conditions by the number of an Elasticsearch block (ClusterBlock.id)."""

_CONDITIONS: Final[Mapping[str, _Condition]] = {
    "index_closed_exception": _CLOSED,
    "index_not_found_exception": _Condition(IndexInconsistent, "{index} is gone", _REPAIR),
    "no_shard_available_action_exception": _RED,
    "unavailable_shards_exception": _RED,
    "master_not_discovered_exception": _NO_MASTER,
    "not_master_exception": _NO_MASTER,
    "es_rejected_execution_exception": _BUSY,
    "circuit_breaking_exception": _Condition(
        ServiceUnavailable,
        "Elasticsearch has too little memory for a request",
        "try again in a moment; if it recurs, give it a larger heap"
        " (RAG_ASSETS_ELASTICSEARCH_HEAP for the embedded server)",
    ),
    "security_exception": _Condition(
        ServiceUnavailable,
        "Elasticsearch refuses the account (status {status})",
        "check the account in RAG_ASSETS_ELASTICSEARCH_URL, or the API key; `rag-assets"
        " elasticsearch check` names the privileges that are missing",
    ),
    "strict_dynamic_mapping_exception": _OTHER_MAPPING,
    "document_parsing_exception": _OTHER_MAPPING,
    "query_shard_exception": _Condition(
        IndexInconsistent, "{index} has a different mapping than its build", _REPAIR
    ),
    "mapper_parsing_exception": _LACKS_FEATURES,
    "named_object_not_found_exception": _LACKS_FEATURES,
    "media_type_header_exception": _Condition(
        IndexUnavailable,
        "Elasticsearch is too old for this program",
        "compare GET / at RAG_ASSETS_ELASTICSEARCH_URL with the version in the README, and upgrade"
        " it",
    ),
    "validation_exception": _Condition(
        IndexUnavailable,
        "Elasticsearch cannot create any more indexes: it has reached its maximum number of shards",
        "delete indexes that are no longer needed, or raise cluster.max_shards_per_node",
    ),
    "invalid_index_name_exception": _Condition(
        IndexUnavailable,
        "Elasticsearch refuses the name of {index}",
        "correct RAG_ASSETS_INDEX_PREFIX",
    ),
    "api_not_available_exception": _Condition(
        IndexUnavailable,
        "Elastic Serverless does not support a request that is needed here",
        "use an Elasticsearch that you manage yourself, or in Elastic Cloud Hosted, for this",
    ),
    "i_o_exception": _DISK,
    "file_system_exception": _DISK,
    "too_many_clauses": _TOO_LONG,
    "too_many_nested_clauses": _TOO_LONG,
}
"""Conditions by the type of an error, or of one of its causes."""

CONDITION_SETTINGS: Final[Mapping[str, _Condition]] = {
    "index.verified_before_close": _CLOSED,
    "index.blocks.read_only": _BLOCKS[5],
    "index.blocks.read": _BLOCKS[7],
    "index.blocks.write": _BLOCKS[8],
    "index.blocks.metadata": _BLOCKS[9],
    "index.blocks.read_only_allow_delete": _BLOCKS[12],
}
"""Conditions by the index setting that is "true" while the condition holds."""

_BLOCK = re.compile(r"[\[;]\s*[A-Z_]+/(\d+)/")
_BLOCKED_INDEX = re.compile(r"^index \[([^\]]+)\]")
_SHARD = re.compile(r"\[([^\[\]]+)\]\[\d+\]")
_MISSING_SHARDS = "rejected due to missing shards"
_MAX_CAUSE_DEPTH = 8


@contextmanager
def translated_errors(
    client: Elasticsearch | None = None, index_name: str | None = None
) -> Iterator[None]:
    """Convert errors of the client to the project's errors.

    Args:
        client: queried for the free disk space if the disk is full.
        index_name: used in the message if Elasticsearch's error does not name an index.

    Raises:
        ServiceUnavailable: Elasticsearch does not answer, is overloaded, or rejects the account.
        IndexUnavailable: Elasticsearch refuses until an operator acts, as the message says.
        IndexInconsistent: the index no longer exists, or has a different mapping.
        RagAssetsError: Elasticsearch refused for another reason.
    """
    try:
        yield
    except (TransportConnectionError, ConnectionTimeout) as error:
        raise _build_unavailable_error(type(error).__name__) from None
    except UnsupportedProductError as error:
        raise _build_other_product_error(error.body) from None
    except ApiError as error:
        if (
            error.status_code == _HTTP_NOT_ACCEPTABLE
            and "x-elastic-product" not in error.meta.headers
        ):
            raise _build_other_product_error(error.body) from None
        raise convert_response_error(
            error.status_code, error.body, index_name, client=client
        ) from None
    except TransportError as error:
        raise _build_unavailable_error(type(error).__name__) from None


def convert_response_error(
    status: int,
    body: object,
    index_name: str | None = None,
    *,
    tenant_id: str = "TENANT",
    client: Elasticsearch | None = None,
) -> RagAssetsError:
    """Return the project's error for a response of Elasticsearch.

    Args:
        tenant_id: the tenant named in hints.
    """
    causes = list(_iter_causes(body.get("error") if isinstance(body, Mapping) else None))
    known = ((cause, found) for cause in causes if (found := _find_condition(cause)))
    cause, condition = next(known, (causes[0] if causes else {}, _find_status_condition(status)))
    names = (_find_index_name(cause) for cause in causes)
    name = next((named for named in names if named), index_name)
    kind = str(cause.get("type", "no reason given"))
    return _build_error(condition, name, tenant_id, client, kind=kind, status=status)


def list_index_errors(
    index_name: str, health: str | None, settings: Mapping[str, Any], client: Elasticsearch
) -> list[RagAssetsError]:
    """Return the errors that requests for an index would raise."""
    conditions = [of for name, of in CONDITION_SETTINGS.items() if settings.get(name) == "true"]
    if health == "red" and _CLOSED not in conditions:
        conditions.append(_RED)
    return [_build_error(condition, index_name, "TENANT", client) for condition in conditions]


def _build_other_product_error(body: object) -> IndexUnavailable:
    distribution = _read_distribution(body)
    name = f"{distribution}, " if distribution else ""
    return IndexUnavailable(
        f"the server at RAG_ASSETS_ELASTICSEARCH_URL is {name}not Elasticsearch",
        hint="set RAG_ASSETS_ELASTICSEARCH_URL to an Elasticsearch; other products are not"
        " supported",
    )


def _read_distribution(body: object) -> str | None:
    """Return the product's name from the answer to `GET /`; None if it names no other product."""
    version = body.get("version") if isinstance(body, Mapping) else None
    named = version.get("distribution") if isinstance(version, Mapping) else None
    return named if isinstance(named, str) and named.isalnum() else None


def _build_error(
    condition: _Condition,
    name: str | None,
    tenant_id: str,
    client: Elasticsearch | None,
    **more: object,
) -> RagAssetsError:
    values = {
        "index": f"index {name!r}" if name else "an index",
        "name": name or "INDEX",
        "tenant": tenant_id,
        "free": _describe_free_space(client) if "{free}" in condition.message else "",
        **more,
    }
    return condition.error(condition.message.format(**values), hint=condition.hint.format(**values))


def build_bulk_item_error(
    result: Mapping[str, Any], client: Elasticsearch | None = None
) -> RagAssetsError:
    """Return the error for a failed item of a bulk request."""
    status, name = int(result.get("status", 0)), result.get("_index")
    cause = result.get("error")
    kind = cause.get("type") if isinstance(cause, Mapping) else None
    if kind in {"mapper_parsing_exception", "illegal_argument_exception"}:
        # For a single entry, such errors mean that its fields do not fit the mapping.
        result = {"error": {"type": "document_parsing_exception"}}
    return convert_response_error(status, result, name, client=client)


def _find_status_condition(status: int) -> _Condition:
    """Return the condition for a status code, for a response that names no known error."""
    if status == 429:  # noqa: PLR2004
        return _BUSY
    if status in TRANSIENT:
        return _Condition(
            ServiceUnavailable,
            "Elasticsearch does not answer (status {status})",
            hint_to_start("RAG_ASSETS_ELASTICSEARCH_URL"),
        )
    if status in _UNAUTHORIZED:
        return _CONDITIONS["security_exception"]
    return _Condition(
        IndexInconsistent,
        "Elasticsearch refused a request for {index}: {kind} (status {status})",
        "`rag-assets check {tenant}` compares the index; Elasticsearch's log has the reason",
    )


def _find_condition(cause: Mapping[str, Any]) -> _Condition | None:
    """Return the condition for one cause of an error; None if the cause is unknown."""
    kind, reason = cause.get("type"), str(cause.get("reason"))
    if kind == "cluster_block_exception":
        blocks = [int(number) for number in _BLOCK.findall(reason)]
        return next((_BLOCKS[number] for number in blocks if number in _BLOCKS), None)
    if kind == "search_phase_execution_exception" and _MISSING_SHARDS in reason:
        return _RED
    return _CONDITIONS.get(str(kind))


def _find_index_name(cause: Mapping[str, Any]) -> str | None:
    """Return the name of the index that a cause of an error names; None if it names none."""
    if isinstance(name := cause.get("index"), str):
        return name
    kind, reason = cause.get("type"), str(cause.get("reason"))
    if kind == "cluster_block_exception":
        match = _BLOCKED_INDEX.search(reason)
    elif kind in {"search_phase_execution_exception", "unavailable_shards_exception"}:
        match = _SHARD.search(reason)
    else:
        match = None
    return match[1] if match else None


def _iter_causes(error: object, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield an error and all of its causes, the innermost causes first."""
    if not isinstance(error, Mapping) or depth > _MAX_CAUSE_DEPTH:
        return
    for shard in error.get("failed_shards") or ():
        yield from _iter_causes(shard.get("reason"), depth + 1)
        if "index" in shard:
            yield {"index": shard["index"]}
    yield from _iter_causes(error.get("caused_by"), depth + 1)
    for cause in error.get("root_cause") or ():
        if cause.get("type") != error.get("type"):
            yield from _iter_causes(cause, depth + 1)
    yield error


def _build_unavailable_error(reason: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"Elasticsearch does not answer ({reason})",
        hint=hint_to_start("RAG_ASSETS_ELASTICSEARCH_URL"),
    )


def _describe_free_space(client: Elasticsearch | None) -> str:
    """Return a phrase with the free space of the fullest disk; empty if unknown."""
    if client is None:
        return ""
    try:
        stats = client.options(request_timeout=5, max_retries=0).nodes.stats(metric="fs")
        free = min(
            int(node["fs"]["total"]["available_in_bytes"]) for node in stats["nodes"].values()
        )
    except (ApiError, TransportError, KeyError, TypeError, ValueError):
        return ""
    return f" ({free / 1e9:,.1f} GB free)"
