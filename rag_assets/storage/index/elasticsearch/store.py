"""The vector store in Elasticsearch."""

from __future__ import annotations

from functools import partial

from elasticsearch import Elasticsearch

from rag_assets.storage.index.connection import to_connection
from rag_assets.storage.index.elasticsearch.administration import ElasticsearchIndexes
from rag_assets.storage.index.elasticsearch.entries import ElasticsearchEntries
from rag_assets.storage.index.elasticsearch.errors import TRANSIENT
from rag_assets.storage.index.elasticsearch.mapping import IndexNames
from rag_assets.storage.index.elasticsearch.notes import ElasticsearchNotes
from rag_assets.storage.index.elasticsearch.ownership import Ownership
from rag_assets.storage.index.elasticsearch.searcher import ElasticsearchSearcher, json_serializers
from rag_assets.storage.index.store import StoreConfig, VectorStore


def open_store(config: StoreConfig) -> VectorStore:
    """Open the vector store in Elasticsearch, without connecting yet."""
    connection = to_connection(config.server)
    client = Elasticsearch(
        **connection.client_options(),
        request_timeout=60,
        max_retries=3,
        retry_on_status=TRANSIENT,
        retry_on_timeout=True,
        serializers=json_serializers(),
    )
    ownership = Ownership(client, config.installation)
    names = IndexNames(config.prefix, config.former_prefixes)
    return VectorStore(
        entries=ElasticsearchEntries(client, ownership),
        indexes=ElasticsearchIndexes(client, names, config.shared_limit, ownership, config.layout),
        searcher=partial(ElasticsearchSearcher, connection),
        notes=ElasticsearchNotes(client, names.marks, ownership, config.installation),
        close=client.close,
    )
