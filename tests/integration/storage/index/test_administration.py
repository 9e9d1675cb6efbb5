"""Conformance of vector stores: administration of indexes (see IndexAdministration)."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from threading import Timer
from uuid import uuid4

import pytest
from elasticsearch import Elasticsearch

from rag_assets.common.errors import IndexInconsistent
from rag_assets.storage.index.elasticsearch.mapping import build_index_body
from rag_assets.storage.index.model import Owner
from rag_assets.storage.index.store import StoreConfig, open_store
from tests.vector_stores import SPEC, Opened, entry, owner_of


def test_generations_of_equal_spec_share_an_index(opened: Opened, tenant: str) -> None:
    indexes = opened.store.indexes
    assert indexes.place(SPEC, tenant, "shared") == opened.index
    other = indexes.place(replace(SPEC, dimensions=8), tenant, "shared")
    assert other.name != opened.name
    assert {other.name, opened.name} <= set(indexes.names())
    assert (indexes.vector_length(opened.name), indexes.vector_length(other.name)) == (4, 8)
    assert indexes.vector_length("absent") is None


def test_a_full_shared_index_is_followed_by_another(config: StoreConfig) -> None:
    store = open_store(replace(config, prefix=f"{config.prefix}full", shared_limit=1))
    try:
        first = store.indexes.place(SPEC, "a", "shared")
        store.entries.write(first.name, [entry(owner_of("a"), "pump")])
        second = store.indexes.place(SPEC, "b", "shared")
        assert second.name != first.name
        assert store.indexes.names() == sorted([first.name, second.name])
    finally:
        for name in store.indexes.names():
            store.indexes.drop(name)
        store.close()


def test_a_dedicated_index_belongs_to_its_tenant(opened: Opened, tenant: str) -> None:
    indexes = opened.store.indexes
    own = indexes.place(SPEC, tenant, "dedicated")
    assert indexes.dedicated(tenant) == [own.name]
    assert indexes.dedicated(tenant[1:]) == []
    assert indexes.place(SPEC, tenant, "dedicated") == own
    indexes.drop(own.name)
    indexes.drop(own.name)
    assert indexes.dedicated(tenant) == []


def test_a_recreated_index_has_another_identity(opened: Opened, tenant: str) -> None:
    indexes = opened.store.indexes
    made = indexes.place(SPEC, tenant, "dedicated")
    assert indexes.presence(made) == "present"
    assert opened.ask(lambda s: s.presence(made)) == "present"
    indexes.drop(made.name)
    assert indexes.presence(made) == "missing"
    assert opened.ask(lambda s: s.presence(made)) == "missing"
    again = indexes.place(SPEC, tenant, "dedicated")
    assert again.name == made.name
    assert indexes.presence(made) == "replaced"
    assert opened.ask(lambda s: s.presence(made)) == "replaced"
    assert indexes.presence(again) == "present"
    indexes.drop(made.name)


def test_owners_lists_tenants_and_incarnations(opened: Opened, owner: Owner) -> None:
    opened.write(entry(owner, "pump"), entry(replace(owner, incarnation=2), "pump"))
    owners = [
        found for found in opened.store.indexes.owners(opened.name) if found[0] == owner.tenant
    ]
    assert owners == [(owner.tenant, 1), (owner.tenant, 2)]


def test_a_view_shows_exactly_one_generation(opened: Opened, owner: Owner) -> None:
    indexes, later = opened.store.indexes, replace(owner, generation=2)
    opened.write(entry(owner, "pump"), entry(later, "pump"))
    assert indexes.view(owner.tenant) is None
    assert not indexes.is_published(opened.name, owner)
    indexes.publish(opened.name, owner)
    assert indexes.is_published(opened.name, owner)
    indexes.publish(opened.name, later)
    assert indexes.is_published(opened.name, later)
    assert not indexes.is_published(opened.name, owner)
    shown = indexes.view(owner.tenant)
    assert shown is not None
    assert (shown.name, shown.restricted) == (indexes.view_name(owner.tenant), True)
    assert shown.tenants == (owner.tenant,)
    indexes.withdraw(owner.tenant)
    indexes.withdraw(owner.tenant)
    assert indexes.view(owner.tenant) is None


def test_an_index_that_another_process_has_only_just_made_is_waited_for(
    elasticsearch_url: str,
) -> None:
    store = open_store(StoreConfig(elasticsearch_url, prefix=f"slow{uuid4().hex[:8]}"))
    nowhere = {"index.routing.allocation.require.zone": "nowhere"}
    with Elasticsearch(elasticsearch_url) as client:
        made = store.indexes.place(SPEC, "a", "shared")
        store.indexes.drop(made.name)
        body = build_index_body(SPEC)
        body["settings"] = {**body["settings"], **nowhere}
        client.indices.create(index=made.name, **body, wait_for_active_shards="0")
        anywhere = Timer(
            0.7,
            client.indices.put_settings,
            kwargs={"index": made.name, "settings": dict.fromkeys(nowhere)},
        )
        anywhere.start()
        try:
            assert store.indexes.place(SPEC, "b", "shared").name == made.name
        finally:
            anywhere.join()
            store.indexes.drop(made.name)
            store.close()


def test_an_index_that_was_deleted_is_not_created_again_by_a_write(
    elasticsearch_url: str, tenant: str
) -> None:
    config = StoreConfig(elasticsearch_url, prefix=f"gone{uuid4().hex[:8]}")
    store, owner = open_store(config), owner_of(tenant)
    with Elasticsearch(elasticsearch_url) as client, closing(store):
        name = store.indexes.place(SPEC, "any", "shared").name
        assert store.entries.write(name, [entry(owner, "pump")]) == 1
        client.indices.delete(index=name)
        with pytest.raises(IndexInconsistent, match="is gone"):
            store.entries.write(name, [entry(owner, "pump")])
        assert not client.indices.exists(index=name)


def test_an_index_of_an_earlier_version_is_written_by_a_new_alias(
    elasticsearch_url: str, tenant: str
) -> None:
    config = StoreConfig(elasticsearch_url, prefix=f"old{uuid4().hex[:8]}")
    owner = owner_of(tenant)
    with Elasticsearch(elasticsearch_url) as client:
        with closing(open_store(config)) as store:
            name = store.indexes.place(SPEC, "any", "shared").name
        client.indices.delete_alias(index=name, name="*")
        with closing(open_store(config)) as store:
            assert store.entries.write(name, [entry(owner, "pump")]) == 1
            assert store.entries.count(name, owner) == 1
            store.indexes.drop(name)


def test_an_entry_is_deleted_from_an_index_without_its_alias(
    elasticsearch_url: str, tenant: str
) -> None:
    config = StoreConfig(elasticsearch_url, prefix=f"bare{uuid4().hex[:8]}")
    owner = owner_of(tenant)
    with Elasticsearch(elasticsearch_url) as client, closing(open_store(config)) as store:
        name = store.indexes.place(SPEC, "any", "shared").name
        held = entry(owner, "pump")
        store.entries.write(name, [held])
        client.indices.delete_alias(index=name, name="*")
        assert store.entries.delete(name, tenant, [held.id, "absent"]) == 2
        assert store.entries.count(name, owner) == 0
        client.indices.delete(index=name)
        assert store.entries.delete(name, tenant, [held.id]) == 1, "gone with its index"
        assert not client.indices.exists(index=name)
