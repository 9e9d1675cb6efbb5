"""The servers that the installations of a walk share, and readers of their contents.

Each document has a unique word in its text and a unique label in its title, so that any remains can
be found.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import psycopg
from elasticsearch import Elasticsearch
from psycopg import sql

from tests.databases import execute

WORD = re.compile(r"(?:lantern|label)\d{5}")


class World:
    """The shared servers.

    Args:
        folder: for all files of the installations.
        postgres_url, elasticsearch_url: of the servers.
        stem: prefix of the names of all databases and indexes.
    """

    def __init__(self, folder: Path, postgres_url: str, elasticsearch_url: str, stem: str) -> None:
        self.folder = folder
        self.postgres_url = postgres_url
        self.stem = stem
        self.client = Elasticsearch(elasticsearch_url)
        self.commands = deque[str](maxlen=12)
        """The last commands with what they printed, for a failure."""
        self._words = count(1)
        self._numbers = count(1)
        self._words_of_files: dict[tuple[str, int, int], frozenset[str]] = {}

    def close(self) -> None:
        """Delete the indexes and databases of all installations."""
        for index_name in self.indexes():
            self.client.indices.delete(index=index_name)
        self.client.close()
        with psycopg.connect(self.postgres_url) as connection:
            names = connection.execute(
                "SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [self.stem]
            ).fetchall()
        for (name,) in names:
            execute(self.postgres_url, "DROP DATABASE {} WITH (FORCE)", name)

    def new_word(self) -> str:
        """Return a unique word for a document."""
        return f"lantern{next(self._words):05}"

    def new_name(self, stem: str) -> str:
        """Return a unique name."""
        return f"{stem}{self.new_number()}"

    def new_number(self) -> int:
        """Return a unique number."""
        return next(self._numbers)

    def indexes(self) -> dict[str, Any]:
        """Return all indexes of the installations, by name."""
        return dict(self.client.indices.get(index=f"{self.stem}*", expand_wildcards="all").body)

    def owned_indexes(self, installation: str) -> dict[str, Any]:
        """Return the indexes of one installation."""
        return {
            name: body for name, body in self.indexes().items() if owner_of(body) == installation
        }

    def words_behind(self, index: str) -> Counter[str]:
        """Return the words in an index or alias, with their numbers of entries."""
        self.client.indices.refresh(index=index)
        found = self.client.search(index=index, size=5000, source=["text"])["hits"]["hits"]
        texts = [hit["_source"]["text"] for hit in found]
        found = Counter(word for text in texts for word in set(WORD.findall(text)))
        return Counter({word: found[word] for word in found if word.startswith("lantern")})

    def delete_entries(self, index: str, tenant_id: str) -> None:
        """Delete a tenant's entries without the knowledge of the installation."""
        query = {"term": {"tenant": tenant_id}}
        found = self.client.search(index=index, query=query, size=5000, source=False)
        for hit in found["hits"]["hits"]:
            self.client.delete(index=index, id=hit["_id"], routing=hit["_routing"])
        self.client.indices.refresh(index=index)

    def words_in_database(self, url: str, words: Sequence[str]) -> dict[str, set[str]]:
        """Return the text before words that occur in each table, as text or as hexadecimals."""
        pattern = "|".join([*words, *(word.encode().hex() for word in words)])
        context = ".{0,200}(?:" + pattern + ")"
        tables = (
            "SELECT schemaname, tablename FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        of_table = sql.SQL(
            "SELECT {}, substring(row_::text from {}) FROM {} row_ WHERE row_::text ~ {}"
        )
        with psycopg.connect(url) as connection:
            queries = [
                of_table.format(".".join(name), context, sql.Identifier(*name), pattern)
                for name in connection.execute(tables)
            ]
            rows = connection.execute(sql.SQL(" UNION ALL ").join(queries)).fetchall()
        return {table: {word for name, word in rows if name == table} for table, _ in rows}

    def words_in_folder(self, folder: Path) -> dict[Path, frozenset[str]]:
        """Return the words in each file below a folder; files of the lake are decompressed."""
        return {path: self._words_in(path) for path in folder.rglob("*") if path.is_file()}

    def _words_in(self, path: Path) -> frozenset[str]:
        facts = path.stat()
        key = (str(path), facts.st_size, facts.st_mtime_ns)
        if key not in self._words_of_files:
            content = path.read_bytes().decode("utf-8", "replace")
            if path.suffix == ".parquet":
                content = " ".join(map(str, pl.read_parquet(path).iter_rows()))
            self._words_of_files[key] = frozenset(WORD.findall(content))
        return self._words_of_files[key]


def owner_of(index: Mapping[str, Any]) -> str | None:
    """Return the installation that an index's `_meta` names."""
    meta = index["mappings"].get("_meta", {}).get("rag_assets", {})
    return meta.get("installation")


def label_of(word: str) -> str:
    """Return the label for the title and file name of the document with this word."""
    return word.replace("lantern", "label")


def text_of(word: str) -> str:
    return f"# {label_of(word)}\n\nThe {word} hangs beside the door of the cellar.\n"
