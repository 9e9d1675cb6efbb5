"""The vector store in Elasticsearch, and its notes: a small index, one document per note."""

from __future__ import annotations

from functools import partial
from typing import Any, Final
from uuid import UUID

from elasticsearch import Elasticsearch, NotFoundError

from rag_assets.storage.index.connection import to_connection
from rag_assets.storage.index.elasticsearch.administration import ElasticsearchIndexes
from rag_assets.storage.index.elasticsearch.entries import ElasticsearchEntries
from rag_assets.storage.index.elasticsearch.errors import TRANSIENT, translated_errors
from rag_assets.storage.index.elasticsearch.mapping import IndexNames, create_index
from rag_assets.storage.index.elasticsearch.ownership import Ownership
from rag_assets.storage.index.elasticsearch.searcher import ElasticsearchSearcher, json_serializers
from rag_assets.storage.index.store import StoreConfig, VectorStore

_SECONDS: Final = 5
_UNINDEXED: Final = {"type": "keyword", "index": False, "doc_values": False}


class ElasticsearchNotes:
    """Reads and writes notes (see NoteStore), always by id, so that no refresh is needed.

    Args:
        index_name: name of the index, which is created if necessary.
        installation: the owner of the notes; a copy of the installation has separate notes.
    """

    def __init__(
        self,
        client: Elasticsearch,
        index_name: str,
        ownership: Ownership,
        installation: UUID | None,
    ) -> None:
        self._client = client.options(request_timeout=_SECONDS, max_retries=1)
        self._index = index_name
        self._ownership = ownership
        self._installation = str(installation)

    def read(self, name: str) -> str | None:
        with translated_errors():
            try:
                found = self._client.get(index=self._index, id=self._id(name))
            except NotFoundError:
                return None
        return str(found["_source"]["text"])

    def write(self, name: str, text: str) -> None:
        with translated_errors():
            self._require_index()
            document = {"installation": self._installation, "name": name, "text": text}
            self._client.index(index=self._index, id=self._id(name), document=document)

    def delete(self, name: str) -> None:
        with translated_errors():
            try:
                self._client.delete(index=self._index, id=self._id(name))
            except NotFoundError:
                return

    def _require_index(self) -> None:
        # A write to a missing index would create it with a guessed mapping.
        if not self._client.indices.exists(index=self._index):
            is_serverless = self._ownership.server.is_serverless
            body = _index_body(self._ownership.meta, is_serverless=is_serverless)
            create_index(self._client, self._index, body)
        self._ownership.require(self._index)

    def _id(self, name: str) -> str:
        return f"{self._installation}/{name}"


def _index_body(meta: dict[str, Any], *, is_serverless: bool) -> dict[str, Any]:
    shards = {} if is_serverless else {"number_of_shards": 1, "auto_expand_replicas": "0-1"}
    fields = {"installation": _UNINDEXED, "name": _UNINDEXED, "text": _UNINDEXED}
    return {
        "settings": {"index": {**shards, "refresh_interval": "-1"}},
        "mappings": {"dynamic": "strict", "_meta": meta, "properties": fields},
    }


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
