"""Tenants whose clock can be set forward, so that their documents age."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import psycopg
from psycopg import sql
from sqlalchemy import update

from rag_assets.common.clock import Clock
from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.retention import PruningReport, prune_tenant
from rag_assets.storage.catalog.records.model import PushedRecord
from rag_assets.storage.catalog.tables import documents
from tests.driving import Driver, drain
from tests.installation import FAST, Installation
from tests.records import put_record

Make: TypeAlias = "Callable[..., AgingTenant]"


def write_old(path: Path, text: str) -> None:
    """Write a file with an old modification time, so that one listing is enough."""
    path.write_text(text)
    age(path)


def age(path: Path, seconds: float = 3600.0) -> None:
    before = time.time() - seconds
    os.utime(path, (before, before))


@dataclass
class AgingTenant:
    """A tenant with files and pushed records, and a clock that can be set forward.

    Attributes:
        clock: the clock of all its work.
    """

    installation: Installation
    driver: Driver
    id: str
    clock: Clock = field(default_factory=Clock)

    @classmethod
    def made(
        cls, installation: Installation, driver: Driver, tenant_id: str, **config: Any
    ) -> AgingTenant:
        folder = installation.home.parent / "sources" / tenant_id
        folder.mkdir(parents=True, exist_ok=True)
        sources = [
            {"name": "files", "type": "files", "root": str(folder)},
            {"name": "pushed", "type": "records"},
        ]
        installation.add_tenant(tenant_id, **{**FAST, **config, "sources": sources})
        return cls(installation, driver, tenant_id)

    @property
    def folder(self) -> Path:
        return self.installation.home.parent / "sources" / self.id

    @contextmanager
    def within(self) -> Iterator[TenantContext]:
        with self.driver.locked(self.id) as ctx:
            yield replace(ctx, clock=self.clock)

    def write(self, name: str, text: str) -> None:
        write_old(self.folder / f"{name}.md", f"# About {name}\n\n{text}\n")

    def push(self, name: str, text: str, *, kind: str = "page", title: str | None = None) -> bool:
        record = PushedRecord(
            "pushed", kind, name, text, "text/markdown", SourceMetadata(title=title)
        )
        with self.within() as ctx:
            return put_record(ctx.catalog.records, ctx.ref, record, scope="public")

    def sync(self) -> Counter[str]:
        with self.within() as ctx:
            return drain(ctx, self.driver.scanner)

    def prune(self, **options: Any) -> PruningReport:
        with self.within() as ctx:
            return prune_tenant(ctx, by="a test", **options)

    def forward(self, **by: float) -> None:
        """Set the clock forward."""
        self.clock = replace(self.clock, ahead=self.clock.ahead + timedelta(**by))

    def embedded(self, at: datetime) -> None:
        """Set the time at which the present contents of all documents were embedded."""
        with self.driver.session.catalog.database.begin() as connection:
            connection.execute(
                update(documents).where(documents.c.tenant == self.id).values(embedded_at=at)
            )

    def uris(self) -> set[str]:
        """Return the URIs of the documents in the index."""
        return {uri for uri, _, _ in self.installation.entries(self.id).values()}

    def lake_texts(self) -> str:
        """Return all texts of documents and chunks in the lake."""
        with self.within() as ctx:
            parsed = ctx.lake.parsed(ctx.lake.read_parsed_keys())
            sets = ctx.lake._tables.chunks().keys()
            chunks = [c.text for row in ctx.lake.chunk_sets(sets).values() for c in row.chunks]
        return " ".join([*(row.parsed.text for row in parsed.values()), *chunks])

    def vectors(self) -> int:
        with self.within() as ctx:
            return len(ctx.lake.read_vector_hashes(ctx.embedder.embedder_id))

    def catalog_rows(self) -> str:
        """Return all rows of the tenant in the catalog."""
        url = self.installation.environment["RAG_ASSETS_DATABASE_URL"]
        with psycopg.connect(url) as connection:
            tables = connection.execute(
                "SELECT table_name FROM information_schema.columns WHERE column_name = 'tenant'"
                " AND table_schema = 'rag_catalog' ORDER BY 1"
            ).fetchall()
            rows = [
                row[0]
                for (table,) in tables
                for row in connection.execute(
                    sql.SQL("SELECT to_jsonb(t)::text FROM {} t WHERE tenant = %s").format(
                        sql.Identifier("rag_catalog", table)
                    ),
                    [self.id],
                ).fetchall()
            ]
        return "\n".join(rows)
