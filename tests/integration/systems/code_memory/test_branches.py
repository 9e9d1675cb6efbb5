"""A tenant follows branch switches, rebases and the like while it is searched."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import pygit2
import pytest

from rag_assets.pipeline.listing import list_documents
from rag_assets.search import Retriever
from rag_assets.search.model import Caller, SearchRequest
from rag_assets.systems.code_memory.retrieval.walk import Walker
from tests.code_index import differences, index_of
from tests.driving import Driver, sync_before_verification
from tests.installation import FAST, Installation
from tests.repositories import MadeRepository

AWAY = 500
STEADY = {
    "steady/base.py": "class Steady:\n    pass\n",
    "steady/heir.py": (
        "from steady.base import Steady\n\n\nclass Heir(Steady):\n"
        "    def number_invoices(self):\n        return 1\n"
    ),
}


MOVED = "def lantern_keeper():\n    return 1\n"
"""Of a file that lies elsewhere on the other branch."""


def module(number: int, branch: str) -> str:
    return (
        f"from steady.base import Steady\n\n\nclass Part{number}(Steady):\n"
        f"    def of_{branch}(self):\n        return {number}\n"
    )


def add(
    installation: Installation, tenant: str, root: Path, ref: str = "HEAD", **more: object
) -> None:
    source = {"name": "repo", "type": "git", "root": str(root), "ref": ref, **more}
    installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=[source],
    )


@dataclass
class Asking:
    """Repeats a search, and records every answer that lacks an expected hit."""

    installation: Installation
    tenant: str
    asked: int = 0
    lacking: list[str] = field(default_factory=list)

    def run(self, ended: Event) -> None:
        session = self.installation.session()
        retriever = Retriever(session.catalog, session.store, session.embedders)
        walker = Walker(session.catalog)
        try:
            while not ended.is_set():
                self._ask(retriever, walker)
        finally:
            retriever.close()

    def _ask(self, retriever: Retriever, walker: Walker) -> None:
        for name in ("steady.heir.Heir", "parts.part7.Part7"):
            walk = walker.walk_from_name(self.tenant, Caller(), name, direction="out")
            self.asked += 1
            if ("extends", "steady.base.Steady") not in {
                (relation.kind, relation.target) for relation in walk.relations
            }:
                self.lacking.append(f"relations of {name}")
        for query in ("number_invoices", "Part7", "lantern_keeper"):
            self.asked += 1
            request = SearchRequest(query=query, mode="text" if query == "Part7" else None)
            hits = retriever.search(self.tenant, request).hits
            if not any(query in hit.text for hit in hits):
                self.lacking.append(f"{query}: {[hit.uri for hit in hits][:3]}")


@contextmanager
def asking(installation: Installation, tenant: str) -> Iterator[Asking]:
    """Search in another thread until the block ends."""
    found, ended = Asking(installation, tenant), Event()
    thread = Thread(target=found.run, args=(ended,))
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join(60)
        assert not thread.is_alive()


def assert_as_fresh(
    installation: Installation, driver: Driver, tenant: str, root: Path, ref: str = "HEAD"
) -> None:
    fresh = f"{tenant}-fresh"
    add(installation, fresh, root, ref)
    driver.sync(fresh)
    with driver.locked(fresh) as ctx:
        anew = index_of(ctx)
    with driver.locked(tenant) as ctx:
        differing = "\n".join(differences(index_of(ctx), anew))
    assert not differing, differing


@pytest.mark.timeout(900)
@pytest.mark.long
def test_back_from_a_branch_far_away_no_vector_is_paid_and_no_answer_is_empty(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "branches"
    made = MadeRepository(shared_installation.home.parent / "sources" / tenant)
    ours = {f"parts/part{number}.py": module(number, "ours") for number in range(AWAY)}
    made.commit({**STEADY, **ours, "quay/keeper.py": MOVED})
    made.git.branches.local.create("ours", made.git[made.git.head.target])
    theirs = {f"parts/part{number}.py": module(number, "theirs") for number in range(AWAY)}
    # In this branch a few files are missing, new or moved.
    for number in range(0, 60, 3):
        del theirs[f"parts/part{number}.py"]
        theirs[f"others/other{number}.py"] = module(number + AWAY, "theirs")
    shutil.rmtree(made.root / "parts")
    (made.root / "quay").rename(made.root / "pier")
    made.commit(theirs)
    theirs_id = made.git.head.target
    made.git.references.create("refs/heads/main", made.git.branches["ours"].target, force=True)
    add(shared_installation, tenant, made.root)
    assert driver.sync(tenant)["embedded"] > AWAY
    with asking(shared_installation, tenant) as asked:
        made.git.references.create("refs/heads/main", theirs_id, force=True)
        away = driver.sync(tenant)
        assert away["embedded"] > AWAY // 2
        made.git.references.create("refs/heads/main", made.git.branches["ours"].target, force=True)
        back = driver.sync(tenant, allow_deletes=True)
    assert back["embedded"] == 0, "every text had a vector before"
    assert back["upserted"] > AWAY
    assert asked.lacking == []
    assert asked.asked > 10
    assert_as_fresh(shared_installation, driver, tenant, made.root)


def test_a_search_during_which_a_file_moves_finds_its_definition(
    shared_installation: Installation, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = "moved-meanwhile"
    made = MadeRepository(shared_installation.home.parent / "sources" / tenant)
    made.commit({**STEADY, "quay/keeper.py": MOVED})
    add(shared_installation, tenant, made.root)
    driver.sync(tenant)
    (made.root / "quay").rename(made.root / "pier")
    made.commit()
    syncs = sync_before_verification(monkeypatch, driver, tenant)
    [hit, *_] = shared_installation.search(tenant, "lantern_keeper")
    assert (hit.uri, hit.symbol) == ("repo/pier/keeper.py", "lantern_keeper")
    assert syncs == [tenant]


def test_a_rebase_costs_what_its_texts_cost_and_a_lost_diff_decides_nothing(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "rebased"
    made = MadeRepository(shared_installation.home.parent / "sources" / tenant)
    first = made.commit(STEADY)
    made.commit({"own.py": module(1, "ours")})
    old = made.commit({"more.py": module(2, "ours")})
    add(shared_installation, tenant, made.root, "main")
    driver.sync(tenant)
    # The same two commits are rebased, and the old ones are lost with their objects.
    made.git.reset(pygit2.Oid(hex=first), pygit2.enums.ResetMode.HARD)
    made.commit({"base.py": module(3, "theirs")})
    made.commit({"own.py": module(1, "ours")})
    made.commit({"more.py": module(2, "ours")})
    (made.folder / "objects" / old[:2] / old[2:]).unlink()
    done = driver.sync(tenant)
    assert (done["added"], done["changed"], done["removed"]) == (1, 0, 0)
    assert 0 < done["embedded"] <= 2, "what the other commit brought"
    assert_as_fresh(shared_installation, driver, tenant, made.root, "main")


def test_a_shallow_clone_is_as_good_as_a_whole_one(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "shallow"
    made = MadeRepository(shared_installation.home.parent / "sources" / tenant)
    first = made.commit(STEADY)
    add(shared_installation, tenant, made.root)
    driver.sync(tenant)
    last = made.commit({"own.py": module(1, "ours")})
    (made.folder / "shallow").write_text(f"{last}\n")
    (made.folder / "objects" / first[:2] / first[2:]).unlink()
    done = driver.sync(tenant)
    assert (done["added"], done["removed"]) == (1, 0)
    assert_as_fresh(shared_installation, driver, tenant, made.root)


def test_bare_and_linked_are_followed_like_the_repository_itself(
    shared_installation: Installation, driver: Driver
) -> None:
    sources = shared_installation.home.parent / "sources"
    made = MadeRepository(sources / "whole")
    made.commit(STEADY)
    bare = pygit2.clone_repository(str(made.root), str(sources / "bare.git"), bare=True)
    linked = sources / "linked tree"
    made.git.branches.local.create("side", made.git[made.git.head.target])
    made.git.add_worktree("side", str(linked), made.git.branches["side"])
    for tenant, root, ref in (
        ("in-bare", Path(bare.path), "HEAD"),
        ("in-linked", linked, "HEAD"),
        ("in-linked-tree", linked, "worktree"),
    ):
        add(shared_installation, tenant, root, ref)
        driver.sync(tenant)
    # Each has a commit of its own.
    side = pygit2.Repository(str(linked))
    (linked / "own.py").write_text(module(1, "ours"))
    side.index.read()
    side.index.add_all()
    side.index.write()
    who = pygit2.Signature("Ada", "ada@example.org")
    tree = side.index.write_tree()
    side.create_commit("HEAD", who, who, "side", tree, [side.head.target])
    blob = bare.create_blob(module(2, "theirs").encode())
    builder = bare.TreeBuilder(bare.head.peel(pygit2.Tree))
    builder.insert("bare.py", blob, pygit2.enums.FileMode.BLOB)
    bare.create_commit("HEAD", who, who, "bare", builder.write(), [bare.head.target])
    for tenant, root, ref, name in (
        ("in-bare", Path(bare.path), "HEAD", "bare.Part2"),
        ("in-linked", linked, "HEAD", "own.Part1"),
        ("in-linked-tree", linked, "worktree", "own.Part1"),
    ):
        assert driver.sync(tenant)["added"] == 1, tenant
        walker = Walker(driver.session.catalog)
        told = walker.walk_from_name(tenant, Caller(), name, direction="out").relations
        assert {(one.kind, one.target) for one in told} >= {("extends", "steady.base.Steady")}
        assert_as_fresh(shared_installation, driver, tenant, root, ref)


@pytest.mark.parametrize("ref", ["HEAD", "worktree"])
def test_a_name_that_differs_in_case_alone_is_another_name_of_the_same(
    shared_installation: Installation, driver: Driver, ref: str
) -> None:
    tenant = f"case-{ref.lower()}"
    made = MadeRepository(shared_installation.home.parent / "sources" / tenant)
    made.commit({**STEADY, "parts/Part.py": module(1, "ours")})
    add(shared_installation, tenant, made.root, ref)
    driver.sync(tenant)
    (made.root / "parts" / "Part.py").rename(made.root / "parts" / "part.py")
    made.commit()
    done = driver.sync(tenant)
    assert (done["added"], done["removed"], done["embedded"]) == (1, 1, 0)
    walker = Walker(driver.session.catalog)
    [node] = walker.find_definitions(tenant, Caller(), name="Part1")
    assert (node.name, node.uri) == ("parts.part.Part1", "repo/parts/part.py")
    told = walker.walk_from_name(tenant, Caller(), "steady.base.Steady", direction="in").relations
    assert "parts.part.Part1" in {one.source for one in told}
    assert_as_fresh(shared_installation, driver, tenant, made.root, ref)


def test_line_ends_cost_no_vector_and_lead_to_the_same_lines(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "line-ends"
    made = MadeRepository(shared_installation.home.parent / "sources" / tenant)
    made.git.config["core.autocrlf"] = "true"
    made.commit({**STEADY, "own.py": module(1, "ours")})
    add(shared_installation, tenant, made.root, "worktree")
    driver.sync(tenant)
    before = [
        symbol.line_start
        for symbol in Walker(driver.session.catalog).find_definitions(
            tenant, Caller(), path="repo/own.py"
        )
    ]
    # A checkout on Windows writes these line ends, which is not a change.
    made.write({"own.py": module(1, "ours").replace("\n", "\r\n")})
    assert driver.sync(tenant)["changed"] == 0
    # If committed, they are new content with the same vectors, names and lines.
    made.git.config["core.autocrlf"] = "false"
    made.commit()
    done = driver.sync(tenant)
    assert done["changed"] == 1
    assert done["embedded"] == 0
    after = Walker(driver.session.catalog).find_definitions(tenant, Caller(), path="repo/own.py")
    assert [one.line_start for one in after] == before
    assert_as_fresh(shared_installation, driver, tenant, made.root, "worktree")


def test_a_listing_tells_what_was_renamed_whatever_became_of_the_former_commit(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "branches-renamed"
    made = MadeRepository(shared_installation.home.parent / "sources" / tenant)
    first = str(made.commit(STEADY))
    add(shared_installation, tenant, made.root)
    driver.sync(tenant)
    (made.root / "steady" / "heir.py").rename(made.root / "steady" / "child.py")
    (made.root / "steady" / "base.py").unlink()
    made.commit({"steady/other.py": "def other(): ...\n"})
    (made.folder / "objects" / first[:2] / first[2:]).unlink()
    with driver.locked(tenant) as ctx:
        report = list_documents(ctx, driver.scanner, allow_deletes=True)
    assert (report.added, report.removed, report.moved) == (2, 2, 1)
    told = {(one.kind, one.uri, one.former) for one in report.sample}
    assert told == {
        ("moved", "repo/steady/child.py", "repo/steady/heir.py"),
        ("added", "repo/steady/other.py", ""),
        ("removed", "repo/steady/base.py", ""),
    }
