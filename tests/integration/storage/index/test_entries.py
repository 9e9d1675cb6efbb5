"""Conformance of vector stores: entries are written and read (see EntryStore)."""

from __future__ import annotations

import pytest

from rag_assets.common.errors import IndexInconsistent, TenantLocked
from rag_assets.storage.index.model import Owner, RankingRequest
from tests.vector_stores import KEY, Opened, entry, owner_of


def holds_lock() -> None:
    """A guard that passes: the writer holds its lock."""


def lost_lock() -> None:
    """A guard that fails."""
    raise TenantLocked("the lock was lost")


def test_an_entry_is_found_and_read_as_written(opened: Opened, owner: Owner) -> None:
    written = entry(owner, "pump", "Prime the pump.", title="Pumps", tags=("b", "a"))
    assert opened.write(written) == 1
    [stored] = opened.store.entries.stored(opened.name, owner)
    assert (stored.id, stored.index_key, stored.intact) == (written.id, "v1", True)
    assert stored.fields["text"] == "Prime the pump."
    assert stored.fields["title"] == "Pumps"
    assert stored.fields["tags"] == ["b", "a"]
    assert opened.found(owner) == ["pump"]
    assert opened.store.entries.count(opened.name, owner) == 1
    assert list(opened.store.entries.without_vector(opened.name, owner)) == []


def test_writing_an_entry_again_replaces_it(opened: Opened, owner: Owner) -> None:
    opened.write(entry(owner, "pump", "Prime the pump."))
    opened.write(entry(owner, "pump", "Drain the pump."))
    [stored] = opened.store.entries.stored(opened.name, owner)
    assert stored.fields["text"] == "Drain the pump."


def test_a_deleted_entry_is_not_found(opened: Opened, owner: Owner) -> None:
    first, second = entry(owner, "first"), entry(owner, "second")
    opened.write(first, second)
    assert opened.store.entries.delete(opened.name, owner.tenant, [first.id, "absent"]) == 2
    assert opened.found(owner) == ["second"]
    assert opened.store.entries.count(opened.name, owner) == 1


def test_only_other_versions_are_deleted(opened: Opened, owner: Owner) -> None:
    neighbour = owner_of(owner.tenant, generation=2)
    opened.write(
        *(entry(owner, "changed", version=version) for version in ("v1", "v2")),
        entry(owner, "removed"),
        entry(owner, "other"),
        entry(neighbour, "changed"),
    )
    kept = {"changed": "v2", "removed": None, "absent": None}
    entries = opened.store.entries
    assert entries.delete_other_versions(opened.name, owner, kept, guard=holds_lock) == 2
    left = {(e.fields["document_id"], e.index_key) for e in entries.stored(opened.name, owner)}
    assert left == {("changed", "v2"), ("other", "v1")}
    assert opened.uris(neighbour) == ["files/changed.md"]
    assert opened.found(owner) == ["changed", "other"]


def test_a_writer_without_its_lock_changes_nothing(opened: Opened, owner: Owner) -> None:
    opened.write(entry(owner, "pump"))
    entries = opened.store.entries
    with pytest.raises(TenantLocked):
        entries.delete_other_versions(opened.name, owner, {"pump": None}, guard=lost_lock)
    with pytest.raises(TenantLocked):
        entries.set_scopes(opened.name, owner, {"pump": "crew"}, guard=lost_lock)
    [stored] = entries.stored(opened.name, owner)
    assert stored.fields["access_scope"] == "public"


def test_a_new_scope_applies_at_once_and_entries_stay_intact(opened: Opened, owner: Owner) -> None:
    opened.write(entry(owner, "pump"), entry(owner, "valve"), entry(owner, "map"))
    scopes = {"pump": "crew", "valve": "public"}
    entries = opened.store.entries
    assert entries.set_scopes(opened.name, owner, scopes, guard=holds_lock) == 1
    assert opened.found(owner, scopes=frozenset({"crew"})) == ["pump"]
    assert opened.found(owner, scopes=frozenset({"public"})) == ["map", "valve"]
    assert all(stored.intact for stored in entries.stored(opened.name, owner))
    assert entries.set_scopes(opened.name, owner, scopes, guard=holds_lock) == 0


def test_entries_of_one_document_are_read(opened: Opened, owner: Owner) -> None:
    opened.write(entry(owner, "pump", ordinal=0), entry(owner, "pump", ordinal=1))
    opened.write(entry(owner, "valve"), entry(owner_of("elsewhere"), "pump"))
    found = opened.store.entries.of_document(opened.name, owner, "pump")
    assert sorted(stored.fields["ordinal"] for stored in found) == [0, 1]
    assert opened.store.entries.of_document(opened.name, owner, "absent") == []


def test_a_scan_finds_all_generations_and_incarnations_of_one_tenant(
    opened: Opened, owner: Owner
) -> None:
    later = owner_of(owner.tenant, generation=2)
    former = owner_of(owner.tenant, incarnation=9)
    mine = [entry(whose, "pump") for whose in (owner, later, former)]
    opened.write(*mine, entry(owner_of(f"{owner.tenant}-other"), "pump"))
    scanned = list(opened.store.entries.scan(opened.name, owner.tenant, KEY))
    assert sorted(found.id for found in scanned) == sorted(written.id for written in mine)
    assert all(found.intact and found.correctly_routed for found in scanned)
    assert {(found.incarnation, found.generation) for found in scanned} == {(1, 1), (1, 2), (9, 1)}
    for found in opened.store.entries.scan(opened.name, owner.tenant, b"x" * 32):
        assert not found.intact


def test_a_missing_index_reads_as_empty_and_cannot_be_searched(
    opened: Opened, owner: Owner
) -> None:
    entries, gone = opened.store.entries, f"{opened.name}-gone"
    assert list(entries.scan(gone, owner.tenant)) == []
    assert list(entries.stored(gone, owner)) == []
    assert list(entries.without_vector(gone, owner)) == []
    assert entries.of_document(gone, owner, "pump") == []
    assert entries.count(gone, owner) == 0
    assert entries.delete_other_versions(gone, owner, {"pump": None}, guard=holds_lock) == 0
    assert entries.set_scopes(gone, owner, {"pump": "crew"}, guard=holds_lock) == 0
    with pytest.raises(IndexInconsistent):
        opened.ask(lambda s: s.rankings(gone, owner, [RankingRequest("pump", 3)]))
