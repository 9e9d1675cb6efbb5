"""A process killed while it moves pages leaves the tree in the old or the new state."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from rag_assets.ingest.sources.records import EXCLUDED, ROOT, build_page_scope
from rag_assets.systems.workspace.tree import Page, compute_effective_access, order_pages
from tests.installation import Installation
from tests.integration.systems.workspace.test_page_table import Tree, tree

__all__ = ["tree"]  # a fixture

pytestmark = [pytest.mark.slow, pytest.mark.long]

PAGES = 1_500
MOVER = """
import sys
from rag_assets.cli.session import Session
from rag_assets.systems.workspace.page_table import TreeTable
from rag_assets.systems.workspace.tree import Page
with Session() as session:
    ref = session.catalog.tenants.get(sys.argv[1]).ref
    print("begun", flush=True)
    while True:
        closed = {"readers": ("bob",), "inherit": False}
        for said in ({"parent": "team"}, {}, closed, {"ai": False}):
            TreeTable(session.catalog.database).put(ref, Page(uuid="sub", **said))
"""


def wrong(tree: Tree) -> list[str]:
    """Return the rows that contradict the pages."""
    pages = dict(tree.lists.list_all(tree.ref.id))
    by_uuid = {page.uuid: page for page in pages}
    scopes = {page.uuid: scope for page, scope in pages.items()}
    path: list[Page] = []
    expected: dict[str, str] = {}
    ancestors: set[tuple[str, str]] = set()
    for page, depth in order_pages(pages):
        path = [*path[:depth], page]
        standing = compute_effective_access(path)
        expected[page.uuid] = standing.scope
        if page.has_own_scope:
            ancestors |= {(build_page_scope(page.uuid), one) for one in standing.scopes[1:]}
    found = [uuid for uuid in by_uuid if scopes[uuid] != expected[uuid]]
    found += [uuid for uuid, scope in tree.scopes().items() if scope != expected[uuid]]
    grants = {build_page_scope(p.uuid): sorted(p.readers) for p in pages if p.readers}
    found += ["grants"] if tree.catalog.access.grants(tree.ref.id) != grants else []
    return found + (["ancestors"] if tree.ancestors() != ancestors else [])


@pytest.mark.nightly
def test_nothing_is_half_moved(tree: Tree, shared_installation: Installation) -> None:
    rng = random.Random(5)
    tree.put("team", readers=("ada",))
    tree.put("sub")
    uuids = ["sub"]
    for number in range(PAGES):
        uuids.append(f"p{number}")
        readers = ("eve",) if number % 50 == 0 else ()
        tree.put(uuids[-1], rng.choice(uuids[:-1][-200:]), readers=readers)
    tree.hang(*uuids)
    assert wrong(tree) == []
    seen = set()
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", MOVER, tree.ref.id],
            env={**os.environ, **shared_installation.environment},
            stdout=subprocess.PIPE,
            text=True,
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            time.sleep(rng.uniform(0.2, 2.5))
            process.send_signal(signal.SIGKILL)
        # Postgres notices later that its client is gone, and rolls back.
        assert tree.put("other")[0] == build_page_scope(ROOT)
        assert wrong(tree) == []
        seen.add(tree.scopes()["sub"])
    assert seen <= {
        build_page_scope("team"),
        build_page_scope(ROOT),
        build_page_scope("sub"),
        EXCLUDED,
    }
    assert tree.put("sub")[0] == build_page_scope(ROOT)
    assert wrong(tree) == []


def test_the_check_finds_what_is_wrong(tree: Tree) -> None:
    tree.put("a", readers=("ada",))
    tree.hang("a")
    with tree.catalog.database.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE rag_catalog.documents SET access_scope = 'page:root' WHERE tenant = %s",
            (tree.ref.id,),
        )
    assert wrong(tree) == ["a"]
