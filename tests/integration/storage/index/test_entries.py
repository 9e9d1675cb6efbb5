"""Conformance of vector stores: writing and reading entries (see EntryStore)."""

from __future__ import annotations

import numpy as np
import pytest

from rag_assets.common.errors import IndexInconsistent, TenantLocked
from rag_assets.common.hashing import HashRange
from rag_assets.storage.index.model import IndexSpec, Owner, RankingRequest, VectorIndex
from rag_assets.storage.index.store import VectorStore
from tests.vector_stores import KEY, Opened, entry, owner_of, unit


def holds_lock() -> None:
    """Pass, like a guard whose writer holds its lock."""


def lost_lock() -> None:
    """Fail, like a guard whose writer has lost its lock."""
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
    assert list(opened.store.entries.iter_ids_without_vector(opened.name, owner)) == []


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
    found = [*opened.store.entries.of_documents(opened.name, owner, ["pump", "absent"])]
    assert sorted(stored.fields["ordinal"] for stored in found) == [0, 1]
    both = opened.store.entries.of_documents(opened.name, owner, ["pump", "valve"])
    assert sorted(stored.fields["document_id"] for stored in both) == ["pump", "pump", "valve"]
    assert [*opened.store.entries.of_documents(opened.name, owner, ["absent"])] == []


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
    assert list(entries.iter_ids_without_vector(gone, owner)) == []
    assert [*entries.of_documents(gone, owner, ["pump"])] == []
    assert entries.count(gone, owner) == 0
    assert entries.delete_other_versions(gone, owner, {"pump": None}, guard=holds_lock) == 0
    assert entries.set_scopes(gone, owner, {"pump": "crew"}, guard=holds_lock) == 0
    with pytest.raises(IndexInconsistent):
        opened.ask(lambda s: s.rankings(gone, owner, [RankingRequest("pump", 3)]))


def test_vectors_are_read_by_texts_and_by_ranges(opened: Opened, owner: Owner) -> None:
    first, second = (
        entry(owner, name, vector=unit(*numbers))
        for name, numbers in (("2f", (1, 2, 3, 4)), ("c0", (4, 3, 2, 1)))
    )
    opened.write(first, second, entry(owner_of(owner.tenant, generation=2), "2f"))
    read = opened.store.entries.vectors
    found = {one.text_sha256: one for one in read(opened.name, owner, ["2f-0", "c0-0", "absent"])}
    assert set(found) == {"2f-0", "c0-0"}
    of_first = found["2f-0"]
    assert (of_first.id, of_first.document_id, of_first.index_key) == (first.id, "2f", "v1")
    assert of_first.genuine
    low, high = HashRange().parts(2)
    assert [one.document_id for one in read(opened.name, owner, low)] == ["2f"]
    assert [one.document_id for one in read(opened.name, owner, high)] == ["c0"]
    assert list(read("absent", owner, low)) == []


@pytest.mark.parametrize("kind", ["int8_hnsw", "hnsw", "bbq_hnsw"])
def test_a_vector_is_read_bit_by_bit_as_it_was_written(
    module_store: VectorStore, owner: Owner, kind: VectorIndex
) -> None:
    spec = IndexSpec(64, kind)
    index = module_store.indexes.place(spec, owner.tenant, "dedicated")
    numbers = np.random.default_rng(3).standard_normal((20, 64), dtype=np.float32)
    vectors = numbers / np.linalg.norm(numbers, axis=1, keepdims=True)
    written = [entry(owner, f"{n:02x}", vector=vector) for n, vector in enumerate(vectors)]
    module_store.entries.write(index.name, written)
    found = {one.id: one for one in module_store.entries.vectors(index.name, owner, HashRange())}
    for one in written:
        vector = found[one.id].vector
        assert vector is not None
        assert vector.tobytes() == one.vector.tobytes()
    assert module_store.indexes.fits(index.name, spec)
    assert not module_store.indexes.fits(index.name, IndexSpec(65, kind))
    assert module_store.indexes.fits("absent", spec)
    module_store.indexes.drop(index.name)


def test_entries_are_counted_by_version_and_strangers_are_told_apart(
    opened: Opened, owner: Owner
) -> None:
    beside = owner_of(owner.tenant, generation=2)
    former = owner_of(owner.tenant, incarnation=7)
    opened.write(
        entry(owner, "one"),
        entry(owner, "one", ordinal=1),
        entry(owner, "one", version="v2"),
        entry(owner, "two", access_scope="team"),
        entry(beside, "one"),
        entry(former, "one"),
    )
    counts = {
        (count.document_id, count.index_key, count.access_scope): count.count
        for count in opened.store.entries.iter_version_counts(opened.name, owner)
    }
    assert counts == {
        ("one", "v1", "public"): 2,
        ("one", "v2", "public"): 1,
        ("two", "v1", "team"): 1,
    }
    found = opened.store.entries.iter_unowned_entries(opened.name, owner.tenant, [owner, beside])
    assert [stranger.incarnation for stranger in found] == [7]
    of_two = opened.store.entries.scan(opened.name, owner.tenant, KEY, ["two", "absent"])
    assert [(one.document_id, one.intact) for one in of_two] == [("two", True)]
    assert list(opened.store.entries.iter_version_counts("absent", owner)) == []
    assert list(opened.store.entries.iter_unowned_entries("absent", owner.tenant, [owner])) == []
