"""The rows of entries: the fields that filters and verification need, and the vector."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
from psycopg.types.json import Jsonb

from rag_assets.storage.index import fields
from rag_assets.storage.index.model import Entry

COLUMNS = (
    "entry_id",
    "document_id",
    "index_key",
    "ordinal",
    "within",
    "access_scope",
    "text_key",
    "text_sha256",
    "source",
    "source_type",
    "uri",
    "language",
    "page_uuid",
    "modified_at",
    "tags",
    "metadata",
)


def build_row(entry: Entry) -> dict[str, Any]:
    """Return the row of an entry to write."""
    return build_row_of_stored(entry.id, fields.entry_source(entry), entry.vector)


def build_row_of_stored(
    id_: str, stored: Mapping[str, Any], vector: npt.NDArray[np.float32]
) -> dict[str, Any]:
    """Return the row of an entry from its stored fields.

    Args:
        id_: id of the entry.
        stored: the entry's fields, as in the index.
        vector: the entry's vector, of shape (dimensions,).
    """
    row = {name: stored.get(name) for name in COLUMNS}
    row["entry_id"] = id_
    row["metadata"] = Jsonb(dict(_flat(stored.get("metadata") or {})))
    row["embedding"] = format_vector(vector)
    return row


def format_vector(vector: npt.NDArray[np.float32]) -> str:
    """Return a vector in the format of the extension."""
    numbers = np.ascontiguousarray(vector, dtype=np.float32)
    return orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def _flat(metadata: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield metadata flattened as in Elasticsearch: values by dotted keys, without empty values."""
    for key, value in metadata.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
            continue
        values = value if isinstance(value, list | tuple) else [value]
        words = [_word(one) for one in values if one is not None]
        if words:
            yield name, words


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
