"""Facts about an Elasticsearch from its responses to `GET /`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from elasticsearch import Elasticsearch
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.storage.index.elasticsearch.errors import translated_errors
from rag_assets.storage.index.elasticsearch.ownership import Ownership
from rag_assets.storage.index.elasticsearch.server import Server

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


def test_a_cluster_without_a_master_has_no_id_until_it_has_one(
    httpserver: HTTPServer, client: Elasticsearch
) -> None:
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
