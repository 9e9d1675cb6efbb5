"""LlamaIndex: an IngestionPipeline with a docstore, into its Elasticsearch store.

- Strategy "upserts and delete", so that deleted files are removed as well.
- The docstore also keeps texts, because without them it cannot delete a removed file. The cache of
  transformations is off: it is a JSON file of all vectors, rewritten as a whole, and would cost
  more than it saves.
- Its store deletes by query, which this benchmark's bare Elasticsearch server does not support:
  the ids are looked up and deleted in bulk instead, with the same refresh.
- Asynchronous (`arun`), in one process: starting more costs more than splitting this corpus.
"""

from __future__ import annotations

import asyncio
from typing import Any

from elasticsearch import AsyncElasticsearch
from elasticsearch.helpers import async_bulk
from llama_index.core import Document
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.vector_stores.elasticsearch import ElasticsearchStore

from benchmarks.corpus import MAX_TOKENS, OVERLAP
from benchmarks.rivals import common
from benchmarks.rivals.names import INDEX
from rag_assets.models.providers.local import DeterministicEmbedder


class DeterministicEmbedding(BaseEmbedding):
    """The benchmark's embedder."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return common.embed([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return common.embed([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return (await self._aget_text_embeddings([query]))[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        answer = await DeterministicEmbedder(common.DIMENSIONS).embed(texts)
        return [vector.tolist() for vector in answer.vectors]


class BulkDeletingStore(ElasticsearchStore):
    """LlamaIndex's Elasticsearch store, which deletes without a query."""

    async def adelete(self, ref_doc_id: str, **_: Any) -> None:
        """Delete a document's nodes."""
        query = {"term": {"metadata.ref_doc_id": ref_doc_id}}
        response = await self.client.search(
            index=self.index_name, query=query, size=10_000, source=False
        )
        ids = [hit["_id"] for hit in response["hits"]["hits"]]
        actions = [{"_op_type": "delete", "_index": self.index_name, "_id": id_} for id_ in ids]
        await async_bulk(self.client, actions, refresh=True)


async def _synchronise(task: common.RivalTask) -> dict[str, Any]:
    remembered = task.state / "docstore.json"
    docstore = SimpleDocumentStore()
    if remembered.exists():
        docstore = SimpleDocumentStore.from_persist_path(str(remembered))
    store = BulkDeletingStore(
        index_name=INDEX,
        es_client=AsyncElasticsearch(common.get_elasticsearch_url(), request_timeout=120),
        batch_size=500,
    )
    splitter = SentenceSplitter(
        chunk_size=MAX_TOKENS,
        chunk_overlap=OVERLAP,
        # The splitter uses only the number of tokens.
        tokenizer=lambda text: range(common.count_tokens(text)),
    )
    pipeline = IngestionPipeline(
        transformations=[splitter, DeterministicEmbedding(embed_batch_size=100)],
        docstore=docstore,
        docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
        vector_store=store,
        disable_cache=True,
    )
    documents = [
        Document(text=text, id_=path, metadata={"source": path}) for path, text in task.texts()
    ]
    nodes = await pipeline.arun(documents=documents)
    docstore.persist(str(remembered))
    await store.client.close()
    return {"nodes": len(nodes)}


def synchronise(task: common.RivalTask) -> dict[str, Any]:
    """Update the index from the files."""
    return asyncio.run(_synchronise(task))


if __name__ == "__main__":
    common.run(synchronise)
