"""Index templates of an operator that would change new indexes: each is named in an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from tests.driving import tenant_named_after
from tests.installation import FAST, Installation


@contextmanager
def index_template(client: Elasticsearch, pattern: str, **template: Any) -> Iterator[str]:
    """Install an index template within the block; yield its name."""
    name = f"template-of-{pattern.rstrip('-*')}"
    client.indices.put_index_template(
        name=name, index_patterns=[pattern], priority=700, template=template
    )
    try:
        yield name
    finally:
        client.indices.delete_index_template(name=name)


@pytest.fixture
def client(shared_installation: Installation) -> Iterator[Elasticsearch]:
    with Elasticsearch(shared_installation.environment["RAG_ASSETS_ELASTICSEARCH_URL"]) as opened:
        yield opened


@pytest.mark.parametrize(
    ("template", "difference"),
    [
        ({"mappings": {"_source": {"excludes": ["text"]}}}, "`_source`"),
        ({"mappings": {"_source": {"enabled": False}}}, "`_source`"),
        ({"settings": {"index.blocks.write": True}}, "`index.blocks.write`"),
        ({"settings": {"index.final_pipeline": "drop-all"}}, "`index.final_pipeline`"),
    ],
    ids=["excludes", "disabled", "blocks", "pipeline"],
)
def test_first_build_under_changing_template_is_refused(
    shared_installation: Installation,
    client: Elasticsearch,
    request: pytest.FixtureRequest,
    template: dict[str, Any],
    difference: str,
) -> None:
    tenant = tenant_named_after(request)
    folder = shared_installation.add_tenant(tenant, index={"placement": "dedicated"}, **FAST)
    (folder / "page.md").write_text("# Page\n\nWords of a page.\n")
    prefix = shared_installation.environment["RAG_ASSETS_INDEX_PREFIX"]
    with index_template(client, f"{prefix}-own-*", **template) as name:
        failed = shared_installation.sync(tenant)
        assert failed.error is not None
        assert name in failed.error.message
        assert difference in failed.error.message
        assert "index_patterns" in (failed.error.hint or "")
        ctx = shared_installation.context(tenant)
        assert ctx.lake.is_empty() or not ctx.lake.read_vector_hashes(ctx.embedder.embedder_id)
        assert not client.indices.exists(index=f"{prefix}-own-*{tenant}", allow_no_indices=False)
    shared_installation.synced(tenant)
    assert shared_installation.search(tenant, "Words of a page.", mode="text")


def test_template_that_changes_nothing_of_an_entry_is_accepted(
    shared_installation: Installation, client: Elasticsearch, request: pytest.FixtureRequest
) -> None:
    tenant = tenant_named_after(request)
    folder = shared_installation.add_tenant(tenant, index={"placement": "dedicated"}, **FAST)
    (folder / "page.md").write_text("# Page\n\nWords of a page.\n")
    prefix = shared_installation.environment["RAG_ASSETS_INDEX_PREFIX"]
    settings = {"index.search.idle.after": "40s", "index.priority": 5}
    with index_template(client, f"{prefix}-own-*", settings=settings):
        shared_installation.synced(tenant)
    assert shared_installation.search(tenant, "Words of a page.", mode="text")


def test_serving_index_that_loses_texts_is_found_and_made_again(
    shared_installation: Installation,
    client: Elasticsearch,
    request: pytest.FixtureRequest,
    make_index_without_texts: Callable[[str], None],
) -> None:
    tenant = tenant_named_after(request)
    folder = shared_installation.add_tenant(tenant, index={"placement": "dedicated"}, **FAST)
    (folder / "page.md").write_text("# Page\n\nWords of a page.\n")
    shared_installation.synced(tenant)
    make_index_without_texts(tenant)
    shared_installation.synced(tenant, repair=True)
    assert shared_installation.search(tenant, "Words of a page.", mode="text")[0].text


@pytest.fixture
def make_index_without_texts(
    shared_installation: Installation, client: Elasticsearch
) -> Callable[[str], None]:
    """Return a function that gives a tenant an index made with a template."""

    def make(tenant: str) -> None:
        ctx = shared_installation.context(tenant)
        serving = ctx.catalog.generations.serving(tenant)
        assert serving is not None
        name = serving.index_name
        found = client.indices.get(index=name)[name]
        client.indices.delete(index=name)
        mappings = {**found["mappings"], "_source": {"excludes": ["text"]}}
        kept = ("number_of_shards", "auto_expand_replicas", "analysis", "mapping")
        settings = {key: found["settings"]["index"].get(key) for key in kept}
        client.indices.create(
            index=name, mappings=mappings, settings=settings, aliases=found["aliases"]
        )
        made = client.indices.get_settings(index=name)[name]["settings"]["index"]["uuid"]
        ctx.catalog.generations.move(ctx.ref, serving, name, made)

    return make
