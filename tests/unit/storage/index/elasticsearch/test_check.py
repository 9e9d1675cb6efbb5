"""The check of an Elasticsearch and its account, by responses of a server."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from rag_assets.storage.index.connection import ElasticsearchConnection
from rag_assets.storage.index.elasticsearch.server import (
    ElasticsearchCheck,
    Purpose,
    check_elasticsearch,
)

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
        return Response(
            json.dumps(body or {}),
            200 if body else 404,
            {"X-Elastic-Product": "Elasticsearch"},
            content_type="application/json",
        )

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
def test_the_version_of_serverless_is_not_compared(
    httpserver: HTTPServer, flavor: str, problems: int
) -> None:
    version = {"number": "8.11.0", "build_flavor": flavor}
    found = checked(httpserver, version, ["searching"])
    assert found.flavor == flavor
    assert len(found.problems) == problems
