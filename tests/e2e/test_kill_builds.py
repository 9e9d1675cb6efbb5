"""kill -9 while a build is made, judged and published and its documents are edited; then a sync."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rag_assets.pipeline.drift import inspect_index
from tests.e2e.killing import KILLED, ForkServer, Outcome, fork_server, kills
from tests.installation import FAST, Installation

KILLS = kills(3)
DOCUMENTS = 4


def document(name: str, version: int) -> str:
    lines = " ".join(f"Line {n} of {name} in version {version} tells of {n}." for n in range(8))
    return f"# {name}\n\n{lines}\n"


@pytest.fixture(scope="module")
def server(shared_installation: Installation) -> Iterator[ForkServer]:
    with fork_server(shared_installation.environment) as started:
        yield started


@dataclass
class Tenant:
    """A tenant that gets another chunker and an edited document in every round."""

    id: str
    folder: Path
    server: ForkServer
    installation: Installation
    round: int = 0

    def change(self) -> None:
        """Configure another chunker, and edit a document."""
        self.round += 1
        chunker = {"chunker": "heading", "max_tokens": 40 + self.round, "overlap": 0}
        self.installation.configure(self.id, chunker=chunker)
        (self.folder / "0.md").write_text(document("0", self.round))

    def sync(self, kill_before: int | None = None) -> Outcome:
        return self.server.run("sync", self.id, "--json", kill_before=kill_before)

    def inspect(self, again: Outcome, before: set[str], boundaries: list[str]) -> None:
        """Fail unless all is as after an undisturbed sync, and no text was embedded twice."""
        assert again.code == 0, (again.err, boundaries)
        ctx = self.installation.context(self.id)
        live = ctx.catalog.generations.live(self.id)
        assert {g.state: g.reason for g in live} == {"SERVING": None, "RETIRED": None}, boundaries
        (serving,) = [g for g in live if g.state == "SERVING"]
        assert serving.recipe is not None
        assert serving.recipe["chunker"]["max_tokens"] == 40 + self.round, boundaries
        assert all(state.is_healthy for state in inspect_index(ctx)), boundaries
        hits = self.installation.search(self.id, f"version {self.round} tells", mode="text")
        assert any(f"in version {self.round} tells" in hit.text for hit in hits)
        after = ctx.lake.read_vector_hashes(ctx.embedder.embedder_id)
        assert again.json["stages"]["embeddings"]["embedded"] == len(after - before), boundaries
        sizes = ctx.lake.size()
        rows = sum(size.rows for name, size in sizes.items() if name.startswith("embeddings"))
        assert rows == len(after), boundaries
        assert ctx.catalog.documents.count_by_status(self.id) == {"READY": DOCUMENTS}


@pytest.mark.timeout(1200)
def test_a_build_killed_at_moments_all_over_its_way(
    shared_installation: Installation, server: ForkServer
) -> None:
    folder = shared_installation.add_tenant("builds", **FAST)
    for number in range(DOCUMENTS):
        (folder / f"{number}.md").write_text(document(str(number), 0))
    tenant = Tenant("builds", folder, server, shared_installation)
    assert tenant.sync().code == 0
    tenant.change()
    undisturbed = tenant.sync(kill_before=0)
    assert undisturbed.code == 0, undisturbed.err
    count = len(undisturbed.boundaries)
    assert "catalog rag_catalog.generations" in undisturbed.boundaries
    for kill in range(KILLS):
        tenant.change()
        killed = tenant.sync(kill_before=1 + kill * count // KILLS)
        assert killed.code == KILLED
        ctx = shared_installation.context("builds")
        before = ctx.lake.read_vector_hashes(ctx.embedder.embedder_id)
        tenant.inspect(tenant.sync(), before, killed.boundaries)
