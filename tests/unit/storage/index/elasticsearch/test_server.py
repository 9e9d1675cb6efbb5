import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.storage.index.connection import ElasticsearchConnection
from rag_assets.storage.index.elasticsearch.errors import translated_errors
from rag_assets.storage.index.elasticsearch.ownership import Ownership
from rag_assets.storage.index.elasticsearch.server import (
    ElasticsearchCheck,
    Purpose,
    Server,
    check_elasticsearch,
)

SERVERLESS = {"version": {"number": "9.5.3", "build_flavor": "serverless"}, "cluster_uuid": "c"}
WITHOUT_MASTER = {"version": {"number": "9.5.3"}, "cluster_uuid": "_na_"}
WITH_MASTER = {"version": {"number": "9.5.3"}, "cluster_uuid": "c"}


@pytest.fixture
def client(httpserver: HTTPServer) -> Iterator[Elasticsearch]:
    with Elasticsearch(httpserver.url_for(""), max_retries=0) as opened:
        yield opened


def answer(httpserver: HTTPServer, *answers: tuple[int, object], path: str = "/") -> None:
    """Give these responses in order, and then repeat the last one."""
    left = list(answers)

    def respond(_: Request) -> Response:
        status, body = left.pop(0) if len(left) > 1 else left[0]
        headers = {"X-Elastic-Product": "Elasticsearch"}
        return Response(json.dumps(body), status, headers, content_type="application/json")

    httpserver.expect_request(path).respond_with_handler(respond)


def test_a_cluster_without_master_has_no_id(httpserver: HTTPServer, client: Elasticsearch) -> None:
    answer(httpserver, (200, WITHOUT_MASTER), (200, WITH_MASTER))
    answer(httpserver, (200, {"cluster_uuid": "_na_"}), path="/_cluster/state/version")
    ownership = Ownership(client, None)
    assert ownership.cluster_id() is None
    assert ownership.cluster_id() == "c"


@pytest.mark.parametrize("status", [429, 503])
def test_serverless_is_recognized_after_a_failure(
    httpserver: HTTPServer, client: Elasticsearch, status: int
) -> None:
    answer(httpserver, (status, {}), (200, SERVERLESS))
    assert Server(client).is_serverless


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_does_not_say_what_it_is_is_not_taken_for_either_kind(
    httpserver: HTTPServer, client: Elasticsearch, status: int
) -> None:
    answer(httpserver, (status, {}))
    with pytest.raises(ServiceUnavailable), translated_errors():
        assert Server(client).is_serverless
    assert Server(client).info().version is None


@pytest.mark.parametrize("status", [400, 403, 405])
def test_a_server_without_an_answer_to_get_is_not_serverless(
    httpserver: HTTPServer, client: Elasticsearch, status: int
) -> None:
    answer(httpserver, (status, {}))
    assert not Server(client).is_serverless


SEARCHING = {"monitor", "read", "view_index_metadata"}


def checked(
    httpserver: HTTPServer, version: dict[str, str], purposes: list[Purpose]
) -> ElasticsearchCheck:
    """Check a server whose account may only search."""

    def privileges(request: Request) -> dict[str, Any]:
        sent = json.loads(request.data)
        [index] = sent["index"]
        return {
            "cluster": {name: name in SEARCHING for name in sent["cluster"]},
            "index": {
                name: {each: each in SEARCHING for each in index["privileges"]}
                for name in index["names"]
            },
        }

    def respond(request: Request) -> Response:
        answers = {
            "/": {"version": version, "cluster_uuid": "c"},
            "/_license": {"license": {"type": "basic", "status": "active"}},
            "/_cluster/health/rag-*": {"status": "green"},
            "/_nodes/stats/fs": {"nodes": {}},
        }
        is_privileges = request.path == "/_security/user/_has_privileges"
        body = privileges(request) if is_privileges else answers.get(request.path)
        headers = {"X-Elastic-Product": "Elasticsearch", "Content-Type": "application/json"}
        return Response(json.dumps(body or {}), 200 if body else 404, headers)

    httpserver.expect_request(re.compile(".*")).respond_with_handler(respond)
    connection = ElasticsearchConnection((httpserver.url_for("").rstrip("/"),))
    return check_elasticsearch(connection, "rag", purposes)


def test_an_account_for_searches_is_complete_for_them_alone(httpserver: HTTPServer) -> None:
    version = {"number": "9.5.3"}
    found = checked(httpserver, version, ["searching"])
    assert (found.missing, found.problems) == ({"searching": []}, [])
    [problem] = checked(httpserver, version, ["indexing", "searching"]).problems
    assert "lacks privileges for indexing" in problem


@pytest.mark.parametrize(("flavor", "problems"), [("serverless", 0), ("default", 1)])
def test_serverless_has_any_version(httpserver: HTTPServer, flavor: str, problems: int) -> None:
    version = {"number": "8.11.0", "build_flavor": flavor}
    found = checked(httpserver, version, ["searching"])
    assert found.flavor == flavor
    assert len(found.problems) == problems
