"""A guarded Elasticsearch with an index that two tenants share, as a target of attacks."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager

from elasticsearch import Elasticsearch

from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.runtime.elasticsearch_install import Access
from tests.servers import server_directory

INDEX = "shared"
DOCUMENT = json.dumps({"tenant": "evil"}).encode()
_TEXTS = [("ours", "the valve"), ("theirs", "the acquisition of acme"), ("theirs", "acquisition")]


@contextmanager
def guarded_server() -> Iterator[EmbeddedElasticsearch]:
    """Start a server with an index, a filtered alias for each tenant, and an unfiltered alias."""
    with server_directory() as directory:
        server = EmbeddedElasticsearch(directory, heap="512m")
        with Elasticsearch(server.start()) as client:
            fill(client)
        yield server


def fill(client: Elasticsearch) -> None:
    """Create the index with its aliases and entries."""
    properties = {
        "tenant": {"type": "keyword"},
        "text": {"type": "text"},
        "vector": {"type": "dense_vector", "dims": 2},
    }
    aliases = {f"of-{name}": {"filter": {"term": {"tenant": name}}} for name in ("ours", "theirs")}
    client.indices.create(
        index=INDEX,
        mappings={"properties": properties},
        settings={"number_of_replicas": 0},
        aliases={**aliases, "unfiltered": {}},
    )
    for number, (tenant, text) in enumerate(_TEXTS):
        entry = {"tenant": tenant, "text": text, "vector": [1, number]}
        client.index(index=INDEX, id=str(number), document=entry)
    client.indices.refresh(index=INDEX)


def require_untouched(server: EmbeddedElasticsearch) -> None:
    """Fail unless the server holds only this index, open and with all its entries."""
    with Elasticsearch(server.url) as client:
        listed = client.cluster.state(metric="metadata", expand_wildcards="all")["metadata"]
        assert {name: entry["state"] for name, entry in listed["indices"].items()} == {
            INDEX: "open"
        }
        assert client.count(index=INDEX)["count"] == len(_TEXTS)


def access_to(server: EmbeddedElasticsearch) -> Access:
    """Return the passwords of a server."""
    found = Access.load(server.directory / "server.json")
    assert found is not None
    return found


def authorization(value: str) -> str:
    """Return an Authorization header line."""
    return f"Authorization: {value}"


def basic(text: str) -> str:
    """Return the header line of a user name and a password."""
    return authorization("Basic " + base64.b64encode(text.encode()).decode())
