"""Edits are found before a large page or a bulk import that a slow embedder is processing."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from rag_assets.common.batches import batched
from tests.driving import Driver
from tests.installation import Installation
from tests.integration.systems.workspace.site import Site, workspace

SLOW = {"provider": "deterministic", "seconds_per_text": 0.1}
"""Forty texts a second in four calls: a model on a few cores."""


@contextmanager
def followed(site: Site) -> Iterator[Callable[[], None]]:
    """Sync continuously, as the change watcher does; yield a function that reports a change."""
    changed, stopped = Event(), Event()
    driver = Driver(site.installation, has_changed=changed.is_set)
    errors: list[BaseException] = []

    def follow() -> None:
        while not stopped.is_set():
            changed.clear()
            try:
                driver.run_once(site.id)
            except BaseException as error:
                errors.append(error)
                return
            stopped.wait(0.05)

    thread = Thread(target=follow)
    thread.start()
    try:
        yield changed.set
    finally:
        stopped.set()
        thread.join()
    assert not errors


def edit(site: Site, tell: Callable[[], None], count: int) -> None:
    """Push comments one by one at random moments, and wait until each is found."""
    chance = random.Random(7)
    for number in range(count):
        time.sleep(chance.uniform(0.0, 3.0))
        word = "".join(chance.choices("bcdfghklmnprst", k=12))
        site.put("comment", f"edit-{number}", {"page_uuid": "p", "text": f"About {word}."})
        tell()
        started = time.monotonic()
        while f"edit-{number}" not in {hit["source_id"] for hit in site.hits(word)}:
            assert time.monotonic() - started < 120
            time.sleep(0.2)


def put_page(site: Site, blocks: int) -> None:
    body = [
        {
            "block_id": f"b-{n}",
            "type": "paragraph",
            "text": f"Dotterel {n} flies to place {n}. " * 12,
        }
        for n in range(blocks)
    ]
    site.put("page", "large", {"title": "Large", "blocks": body})


def put_lines(site: Site, count: int) -> None:
    line = {"op": "put", "type": "comment", "page_uuid": "p"}
    lines = [{**line, "id": f"c-{n}", "text": f"Dunlin {n} wades."} for n in range(count)]
    for part in batched(lines, 1_000):
        assert all(one["outcome"] == "queued" for one in site.lines(part))


@pytest.mark.long
@pytest.mark.parametrize("load_kind", ["page", pytest.param("lines", marks=pytest.mark.nightly)])
def test_edits_are_found_before_what_takes_long(
    shared_installation: Installation, load_kind: str
) -> None:
    tenant = f"fair-{load_kind}"
    with workspace(shared_installation, tenant, embedder=SLOW) as site:
        site.grant("p", "large")
        site.put("comment", "first", {"page_uuid": "p", "text": "The first one."})
        site.sync()
        put_page(site, 2_000) if load_kind == "page" else put_lines(site, 2_000)
        with followed(site) as tell:
            time.sleep(1.0)
            edit(site, tell, 3)
            found = len(site.hits("dotterel", top_k=20))
            counts = site.installation.session().catalog.documents.count_by_status(site.id)
        assert counts["PROCESSING"] > 0, "the rest goes on"
        assert not found, "a large page is published whole"
        shared_installation.configure(tenant, embedder={**SLOW, "seconds_per_text": 0})
        site.sync()
        assert site.hits("dotterel" if load_kind == "page" else "dunlin")
