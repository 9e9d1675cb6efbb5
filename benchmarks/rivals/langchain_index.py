"""LangChain: index() with a SQL record manager, into its Elasticsearch store.

- cleanup "full": of the three modes, the one that also removes the chunks of deleted files; faster
  than "incremental", which looks for former versions after each batch.
- 1,000 chunks per batch, since the documentation asks for batches as large as possible.
- One refresh at the end instead of one per batch; the record manager is in SQLite, as in the
  documentation, which saves a round trip per batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import elasticsearch
from langchain_classic.indexes import SQLRecordManager, index
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_elasticsearch import DenseVectorStrategy, ElasticsearchStore
from langchain_text_splitters import MarkdownTextSplitter

from benchmarks.corpus import MAX_TOKENS, OVERLAP
from benchmarks.rivals import common
from benchmarks.rivals.names import INDEX


class DeterministicEmbeddings(Embeddings):
    """The benchmark's embedder."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector per text."""
        return common.embed(texts)

    def embed_query(self, text: str) -> list[float]:
        """Return the vector that a document with this text has."""
        return common.embed([text])[0]


def split_files(task: common.RivalTask) -> Iterator[Document]:
    """Yield every chunk of every file."""
    splitter = MarkdownTextSplitter(
        chunk_size=MAX_TOKENS,
        chunk_overlap=OVERLAP,
        length_function=common.count_tokens,
    )
    for path, text in task.texts():
        yield from splitter.split_documents([Document(text, metadata={"source": path})])


def synchronise(task: common.RivalTask) -> dict[str, Any]:
    """Update the index from the files."""
    client = elasticsearch.Elasticsearch(common.get_elasticsearch_url(), request_timeout=120)
    store = ElasticsearchStore(
        index_name=INDEX,
        embedding=DeterministicEmbeddings(),
        client=client,
        strategy=DenseVectorStrategy(),
    )
    records = SQLRecordManager(
        f"elasticsearch/{INDEX}", db_url=f"sqlite:///{task.state}/records.db"
    )
    records.create_schema()
    report = index(
        split_files(task),
        records,
        store,
        batch_size=1_000,
        cleanup="full",
        source_id_key="source",
        key_encoder="blake2b",
        upsert_kwargs={"refresh_indices": False},
    )
    if report["num_added"] or report["num_deleted"]:
        client.indices.refresh(index=INDEX)
    return dict(report)


if __name__ == "__main__":
    common.run(synchronise)
