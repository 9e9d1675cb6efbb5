"""A preview and the following sync agree on what a listing changes, deletes and keeps."""

from __future__ import annotations

import shutil
from collections import Counter
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_assets.common.errors import ListingFailed
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.listing import list_documents
from rag_assets.pipeline.preview import preview_sync
from rag_assets.privacy.secrets.scanner import SecretScanner
from tests.driving import Driver
from tests.installation import FAST, Installation

SOURCES = ("one", "two", "three")
CONTENTS = ("The valve opens.\n", "The pump is greased.\n")

# Per source: not configured, not mounted, or so many files of a name and a content. Counts lie
# around the rule's limits: over 20 documents, and over 30 % of those that were there.
source_states = st.one_of(
    st.just("unconfigured"),
    st.just("unmounted"),
    st.tuples(st.sampled_from([0, 3, 25, 40, 60]), st.sampled_from("ab"), st.integers(0, 1)),
)
states = st.fixed_dictionaries(dict.fromkeys(SOURCES, source_states)).filter(
    lambda state: set(state.values()) != {"unconfigured"}
)
_numbers = count()


@cache
def scanner_of(local: Path) -> SecretScanner:
    return SecretScanner(local / "cache")


@settings(
    max_examples=8,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=st.lists(states, min_size=2, max_size=3))
@pytest.mark.long
def test_a_preview_equals_the_sync_after_it(
    shared_installation: Installation, driver: Driver, history: list[dict[str, Any]]
) -> None:
    tenant = f"previewed-{next(_numbers)}"
    folder = shared_installation.home.parent / "sources" / tenant
    first: dict[str, Any] = {"one": (3, "a", 0), "two": (3, "a", 1), "three": (40, "a", 0)}
    shared_installation.add_tenant(tenant, **FAST, sources=arranged(folder, first))
    driver.sync(tenant)
    scanner = scanner_of(driver.session.settings.local)
    for state in history:
        shared_installation.configure(tenant, sources=arranged(folder, state))
        with driver.locked(tenant) as ctx:
            expected = previewed(ctx)
            assert expected == listed(ctx, scanner)


def arranged(folder: Path, state: dict[str, Any]) -> list[dict[str, Any]]:
    """Bring a tenant's folders into a state; return the configuration of its sources."""
    for name, of_source in state.items():
        shutil.rmtree(folder / name, ignore_errors=True)
        if isinstance(of_source, tuple):
            (folder / name).mkdir(parents=True)
            files, prefix, content = of_source
            for number in range(files):
                (folder / name / f"{prefix}{number}.md").write_text(CONTENTS[content])
    return [
        {"name": name, "root": str(folder / name)}
        for name, of_source in state.items()
        if of_source != "unconfigured"
    ]


def previewed(ctx: TenantContext) -> Counter[str] | str:
    try:
        found = preview_sync(ctx)
    except ListingFailed as error:
        return error.message
    counts = Counter(
        added=found.added, changed=found.changed, removed=found.removed, held=found.held
    )
    return counts + Counter(found.unlisted)


def present(ctx: TenantContext) -> set[str]:
    """Return the documents that sources had at their path in the last listing."""
    tables = ctx.catalog.documents
    return {
        row.document_id
        for source in tables.sources(ctx.ref.id)
        for row in tables.stream(ctx.ref.id, source)
        if row.status != "DELETED"
    }


def listed(ctx: TenantContext, scanner: SecretScanner) -> Counter[str] | str:
    """Return what a listing does, by its report and by the rows it marks deleted or moved.

    It lists like the first run of a sync: later runs may reuse its listing.
    """
    before = present(ctx)
    try:
        report = list_documents(ctx, scanner, reuse_listings=False)
    except ListingFailed as error:
        return error.message
    gone = len(before - present(ctx))
    assert gone == report.removed
    counts = Counter(added=report.added, changed=report.changed, removed=gone, held=report.held)
    return counts + Counter(report.unlisted)
