"""Write the entries of a sync into Elasticsearch alone, as the lower bound of a sync's cost.

    python -m benchmarks.bare dump FILE TENANT   entries of a tenant, as the project writes them
    python -m benchmarks.bare load FILE INDEX    makes an index, and times writing them into it
    python -m benchmarks.bare graphs FILE INDEX  the same with graphs, as Elasticsearch makes them

The timed part is the official client with two bulk threads and a refresh: serializing, sending and
indexing. The file is read and the vectors are packed beforehand. The mapping is the project's;
`graphs` leaves out its `flat_index_threshold`, so that Elasticsearch builds HNSW graphs.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elasticsearch import Elasticsearch
from elasticsearch.helpers import parallel_bulk

_THREADS = 2
_CHUNK = 500
_BYTES = 8 * 1024 * 1024


def dump_entries(path: Path, tenant_id: str) -> None:
    """Write one JSON line for each entry of a tenant's serving generation."""
    with path.open("w") as lines:
        for action in _list_actions(tenant_id):
            lines.write(json.dumps(action) + "\n")


def _list_actions(tenant_id: str) -> Iterator[dict[str, Any]]:
    from elasticsearch.helpers import pack_dense_vector

    from rag_assets.cli.session import Session
    from rag_assets.storage.index.model import Owner

    session = Session()
    record = session.catalog.tenants.get(tenant_id)
    serving = session.catalog.generations.serving(tenant_id)
    if serving is None:
        sys.exit(f"{tenant_id} has no serving build: sync it first")
    owner = Owner(record.id, record.incarnation, serving.number)
    hits = list(session.store.entries.stored(serving.index_name, owner))
    rows = session.lake.tenant(record.id, record.incarnation).vectors(
        serving.embedder_id, {hit.fields["text_sha256"] for hit in hits}
    )
    vectors = dict(zip(rows.hashes, rows.vectors, strict=True))
    for hit in hits:
        packed = pack_dense_vector(vectors[hit.fields["text_sha256"]])
        source = {**hit.fields, "vector": packed}
        yield {"_id": hit.id, "routing": record.id, "_source": source}


def load_entries(path: Path, index_name: str, url: str, *, graphs: bool) -> dict[str, float]:
    """Write the entries into a new index; return seconds, CPU seconds and the number of entries."""
    from rag_assets.storage.index.elasticsearch.mapping import build_index_body
    from rag_assets.storage.index.model import IndexSpec, choose_vector_index

    with path.open() as lines:
        actions = [{"_index": index_name, **json.loads(line)} for line in lines]
    body = build_index_body(IndexSpec(384, choose_vector_index(384)))
    if graphs:
        del body["mappings"]["properties"]["vector"]["index_options"]["flat_index_threshold"]
    with Elasticsearch(url, request_timeout=120) as client:
        client.indices.create(index=index_name, **body)
        started, cpu = time.perf_counter(), time.process_time()
        # Raises if an entry is refused.
        results = parallel_bulk(
            client,
            actions,
            thread_count=_THREADS,
            chunk_size=_CHUNK,
            max_chunk_bytes=_BYTES,
        )
        deque(results, maxlen=0)
        client.indices.refresh(index=index_name)
        return {
            "inside": time.perf_counter() - started,
            "cpu": time.process_time() - cpu,
            "entries": len(actions),
        }


def main() -> None:
    """Run the command that the arguments name."""
    command, path, name = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    if command == "dump":
        dump_entries(path, name)
    else:
        url = os.environ["RAG_ASSETS_ELASTICSEARCH_URL"]
        print(json.dumps(load_entries(path, name, url, graphs=command == "graphs")))


if __name__ == "__main__":
    main()
