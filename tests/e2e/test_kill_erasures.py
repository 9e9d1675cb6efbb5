"""kill -9 in a prune, a purge, a removal, a discard and a scan by new rules; then the next run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from rag_assets.cli.session import Session
from rag_assets.storage.catalog.erasure.receipts import Receipt
from tests.e2e.killing import KILLED, ForkServer, Outcome, fork_server, kills
from tests.installation import FAST, Installation
from tests.integration.aging import write_old
from tests.newer_rules import ALSO_FOUND, NO_WAIT

KILLS = kills(1)
"""In each kind of erasure, at moments all over its way."""
TOKEN = "zebra-4471-stripe"
TEXTS = {
    "door": f"The door opens with {TOKEN} at night.",
    "garden": "The garden has a fence.",
    "roof": "The roof is made of slate.",
}


@pytest.fixture(scope="module")
def server(shared_installation: Installation) -> Iterator[ForkServer]:
    with fork_server(shared_installation.environment) as started:
        yield started


@pytest.fixture(scope="module")
def reader(shared_installation: Installation) -> Session:
    return shared_installation.session()


@dataclass
class Erased:
    """A tenant with an erasure.

    Attributes:
        kind: of the erasure.
        reader: inspects the result, over the same connections for all tenants.
        ready: whether it is prepared, and rules find more than before.
    """

    kind: str
    number: int
    server: ForkServer
    installation: Installation
    reader: Session
    ready: bool = False

    @property
    def id(self) -> str:
        return f"{self.kind}-{self.number}"

    def prepare(self) -> None:
        config: dict[str, Any] = {"retention_days": 30} if self.kind == "prune" else {}
        sources = [{"name": "files", "type": "files", "root": f"docs/{self.id}"}]
        folder = self.installation.home / "docs" / self.id
        folder.mkdir(parents=True)
        self.installation.add_tenant(self.id, **{**FAST, **config, "sources": sources})
        for name, text in TEXTS.items():
            write_old(folder / f"{name}.md", f"# About it\n\n{text}\n")
        assert self.run("sync", self.id).code == 0
        if self.kind == "discard":
            chunker = {"chunker": "heading", "max_tokens": 40, "overlap": 0}
            self.installation.configure(self.id, chunker=chunker)
            assert self.run("sync", self.id).code == 0
        if self.kind == "prune":
            with psycopg.connect(
                self.installation.environment["RAG_ASSETS_DATABASE_URL"]
            ) as connection:
                connection.execute(
                    "UPDATE rag_catalog.documents SET embedded_at = now() - interval '31 days'"
                    " WHERE tenant = %s AND uri = 'files/door.md'",
                    [self.id],
                )

    def erase(self, kill_before: int | None = None) -> Outcome:
        return self.run(*self.command, kill_before=kill_before)

    @property
    def command(self) -> tuple[str, ...]:
        if self.kind == "purge":
            return ("purge", self.id, "--document", self.door, "--yes")
        return {
            "prune": ("prune", self.id),
            "removal": ("tenants", "remove", self.id, "--yes"),
            "discard": ("generations", "discard", self.id, "1"),
            "secrets": ("sync", self.id),
        }[self.kind]

    def end(self) -> Outcome:
        """Complete the erasure: repeat a removal, otherwise sync."""
        return self.run(*self.command) if self.kind == "removal" else self.run("sync", self.id)

    def run(self, *arguments: str, kill_before: int | None = None) -> Outcome:
        variables = {NO_WAIT: "1"}
        if self.kind == "secrets" and self.ready:
            variables[ALSO_FOUND] = TOKEN
        return self.server.run(*arguments, kill_before=kill_before, **variables)

    @property
    def door(self) -> str:
        ctx = self.installation.context(self.id, self.reader)
        return next(d.document_id for d in ctx.catalog.documents.all(self.id) if "door" in d.uri)

    def receipts(self) -> list[Receipt]:
        return self.reader.catalog.receipts.all(self.id)

    def state(self) -> dict[str, Any]:
        """Return what is left, and the receipt without times and numbers."""
        catalog = self.reader.catalog
        (receipt,) = self.receipts()
        assert catalog.receipts.verify().broken == ()
        assert catalog.erasures.list_open(self.id) == []
        found = {
            "receipt": (receipt.kind, receipt.rule, receipt.counts, receipt.documents),
            "found": receipt.proof.get("found"),
            "searched for": receipt.proof.get("searched for"),
        }
        if self.kind == "removal":
            assert catalog.tenants.find(self.id) is None
            return found
        ctx = self.installation.context(self.id, self.reader)
        parsed = ctx.lake.parsed(ctx.lake.read_parsed_keys()).values()
        return {
            **found,
            "entries": sorted(
                uri for uri, _, _ in self.installation.entries(self.id, self.reader).values()
            ),
            "texts": sorted(row.parsed.text for row in parsed),
            "vectors": len(ctx.lake.read_vector_hashes(ctx.embedder.embedder_id)),
            "documents": catalog.documents.count_by_status(self.id),
            "builds": [g.state for g in catalog.generations.live(self.id)],
        }


def prepared(
    kind: str, number: int, server: ForkServer, installation: Installation, reader: Session
) -> Erased:
    tenant = Erased(kind, number, server, installation, reader)
    tenant.prepare()
    tenant.ready = True
    return tenant


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", ["prune", "purge", "removal", "discard", "secrets"])
def test_an_erasure_that_was_killed_is_ended_by_the_next_run(
    shared_installation: Installation, server: ForkServer, reader: Session, kind: str
) -> None:
    undisturbed = prepared(kind, 0, server, shared_installation, reader)
    done = undisturbed.erase(kill_before=0)
    # Deleted entries may remain in files that were not waited for, which a purge reports.
    assert done.code == 0 or kind == "purge", done.err
    if kind != "removal":
        assert undisturbed.end().code == 0
    expected = undisturbed.state()
    assert not any((expected["found"] or {}).values())
    assert TOKEN not in json.dumps(expected.get("texts", [])) or kind == "discard"
    count = len(done.boundaries)
    for kill in range(KILLS):
        tenant = prepared(kind, kill + 1, server, shared_installation, reader)
        killed = tenant.erase(kill_before=1 + (2 * kill + 1) * count // (2 * KILLS))
        assert killed.code == KILLED, (killed.code, count)
        if kind != "removal" or not tenant.receipts():
            again = tenant.end()
            assert again.code == 0, (again.err, killed.boundaries)
        if not tenant.receipts():  # it was killed before it recorded its decision
            assert tenant.erase().code == 0 or kind == "purge", killed.boundaries
            tenant.end()
        assert tenant.state() == expected, killed.boundaries
