"""Folders and servers of an installation, from environment variables.

| variable | default | meaning |
|---|---|---|
| RAG_ASSETS_HOME | the project's folder | holds tenants.yaml, dagster.yaml and .local |
| DATABASE_URL | embedded Postgres | the catalog and Dagster's storage |
| ELASTICSEARCH_URL | embedded Elasticsearch | the vector store; may carry name:password@ |
| RAG_ASSETS_ELASTICSEARCH_HEAP | 1g | largest Java heap of the embedded Elasticsearch |
| RAG_ASSETS_DAGSTER_PORT | 3000 | of the Dagster UI; the next free one if it is taken |
| RAG_ASSETS_LAKE_URL | .local/lake | folder or object store of the lake |
| RAG_ASSETS_BLOBS_URL | .local/blobs | folder or object store of uploaded files |
| RAG_ASSETS_PGVECTOR_URL | the catalog's | Postgres of tenants that search vectors in pgvector |
| RAG_ASSETS_INDEX_PREFIX | rag | distinguishes installations that share an Elasticsearch |
| RAG_ASSETS_ALLOWED_ROOTS | any folder | os.pathsep-separated folders that sources may lie in |
| RAG_ASSETS_MASTER_KEY | the file's | encrypts stored provider keys: 32 bytes as base64 |
| RAG_ASSETS_MASTER_KEY_PREVIOUS | none | the key before, until `rag-assets keys rotate` is done |
| RAG_ASSETS_MASTER_KEY_FILE | in ~/.config/rag-assets | holds the master key; made at need |
| RAG_ASSETS_FORK_SERVER | used if it runs | 0: each command and run imports for itself |
| RAG_ASSETS_PRIVATE_ENDPOINTS | none | host:port, host or CIDR, by commas; see providers.md |
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.private_endpoints import PrivateEndpoints

PROJECT_ROOT = Path(__file__).resolve().parents[2]
_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Settings:
    """One installation: its folder and its external servers (None: embedded)."""

    home: Path
    database_url: str | None = None
    elasticsearch_url: str | None = None
    lake_url: str = ""
    blobs_url: str = ""
    allowed_roots: tuple[Path, ...] = ()
    elasticsearch_heap: str = "1g"
    dagster_port: int = 3000
    index_prefix: str = "rag"
    vectors_url: str | None = None
    master_key_file: Path | None = None
    private_endpoints: PrivateEndpoints = field(default_factory=PrivateEndpoints)

    @property
    def local(self) -> Path:
        """The folder of data, logs and process ids."""
        return self.home / ".local"

    @property
    def data_docs(self) -> Path:
        """The folder of the expectations check's pages, with one folder per tenant."""
        return self.local / "data_docs"

    @property
    def tenants_file(self) -> Path:
        """The operator's list of tenants."""
        return self.home / "tenants.yaml"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read the settings.

        Raises:
            ConfigurationError: RAG_ASSETS_HOME does not name a folder, or a value is malformed.
        """
        env = os.environ if environ is None else environ
        home = Path(env.get("RAG_ASSETS_HOME") or PROJECT_ROOT).expanduser().resolve()
        # Not Path.is_dir, which raises for a folder in one that the process may not open.
        if not os.path.isdir(home) or not os.access(home, os.X_OK):  # noqa: PTH112
            raise ConfigurationError(
                f"RAG_ASSETS_HOME is not a folder that can be opened: {home}",
                hint="create the folder, or unset the variable to use the project's own",
            )
        roots = tuple(
            Path(root).expanduser().resolve()
            for root in env.get("RAG_ASSETS_ALLOWED_ROOTS", "").split(os.pathsep)
            if root
        )
        key_file = env.get("RAG_ASSETS_MASTER_KEY_FILE")
        return cls(
            home=home,
            database_url=env.get("DATABASE_URL") or None,
            elasticsearch_url=env.get("ELASTICSEARCH_URL") or None,
            lake_url=env.get("RAG_ASSETS_LAKE_URL") or str(home / ".local" / "lake"),
            blobs_url=_blobs_url(env.get("RAG_ASSETS_BLOBS_URL") or str(home / ".local" / "blobs")),
            allowed_roots=roots,
            elasticsearch_heap=_heap(env.get("RAG_ASSETS_ELASTICSEARCH_HEAP") or "1g"),
            index_prefix=env.get("RAG_ASSETS_INDEX_PREFIX") or "rag",
            vectors_url=env.get("RAG_ASSETS_PGVECTOR_URL") or None,
            dagster_port=_port(env.get("RAG_ASSETS_DAGSTER_PORT") or "3000"),
            master_key_file=Path(key_file).expanduser().absolute() if key_file else None,
            private_endpoints=PrivateEndpoints.parse(env.get("RAG_ASSETS_PRIVATE_ENDPOINTS") or ""),
        )


def _blobs_url(text: str) -> str:
    """An object store's address as it is, or the absolute path of a folder."""
    path = text.removeprefix("file://")
    return path.rstrip("/") if "://" in path else str(Path(path).expanduser().absolute())


def _heap(text: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]*[kKmMgG]", text):
        raise ConfigurationError(
            f"RAG_ASSETS_ELASTICSEARCH_HEAP is not a size: {text}",
            hint="a number and a unit, as in 512m or 2g",
        )
    return text


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _LAST_PORT:
        raise ConfigurationError(
            f"RAG_ASSETS_DAGSTER_PORT is not a port: {text}", hint="a number from 1 to 65535"
        )
    return int(text)
