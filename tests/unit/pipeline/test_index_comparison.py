"""compare_index and a model: exactly the random faults in a perfect index are found."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.pipeline.index_comparison import (
    Drift,
    compare_index,
    compare_vectors,
    find_suspects,
)
from rag_assets.storage.catalog.documents.versions import HeldVersion
from rag_assets.storage.index.model import (
    EntryVector,
    Owner,
    ScannedEntry,
    VersionCount,
    compute_checksum,
    entry_id,
    make_entry_id_function,
)

OWNER = Owner("acme", 7, 2)
held_versions = st.lists(
    st.builds(
        HeldVersion,
        document_id=st.sampled_from("abcdef"),
        indexed_key=st.sampled_from(["one", "two"]),
        chunk_count=st.integers(0, 4),
        access_scope=st.sampled_from(["public", "team"]),
    ),
    unique_by=lambda version: version.document_id,
)


def perfect(held: list[HeldVersion]) -> list[ScannedEntry]:
    return [
        ScannedEntry(
            id=entry_id(OWNER, v.document_id, v.indexed_key, ordinal), tenant=OWNER.tenant,
            incarnation=OWNER.incarnation, generation=OWNER.generation, document_id=v.document_id,
            index_key=v.indexed_key, ordinal=ordinal, access_scope=v.access_scope or "public",
            correctly_routed=True, intact=True,
        )
        for v in held
        for ordinal in range(v.chunk_count)
    ]  # fmt: skip


@pytest.mark.slow
@given(held=held_versions)
def test_a_perfect_index_shows_no_drift(held: list[HeldVersion]) -> None:
    drift = compare_index(held, perfect(held), OWNER)
    assert drift.is_empty
    assert drift.expected == drift.live == sum(v.chunk_count for v in held)


FAULTS = ("lost", "intact", "scope", "tenant", "routing", "id", "document", "key", "ordinal", "use")


@pytest.mark.slow
@given(held=held_versions, data=st.data())
def test_exactly_the_faults_are_found(held: list[HeldVersion], data: st.DataObject) -> None:
    missing, altered, orphans, foreign, displaced = (set[str]() for _ in range(5))
    live = []
    for entry in perfect(held):
        fault = data.draw(st.none() | st.sampled_from(FAULTS))
        if fault == "intact":
            live.append(replace(entry, intact=False))
            altered.add(entry.document_id)
        elif fault == "scope":
            live.append(replace(entry, access_scope="everybody"))
            altered.add(entry.document_id)
        elif fault is None:
            live.append(entry)
        else:
            if fault != "lost":
                live.append(spoilt(entry, fault))
            if fault in {"lost", "id"}:
                missing.add(entry.document_id)
            if fault == "id":
                orphans.add(live[-1].id)
            elif fault in {"tenant", "routing"}:
                foreign.add(entry.id)
                displaced.add(entry.document_id)
            elif fault != "lost":
                altered.add(entry.document_id)
    drift = compare_index(held, data.draw(st.permutations(live)), OWNER)
    assert set(drift.missing) == missing
    assert set(drift.altered) == altered
    assert set(drift.orphans) == orphans
    assert set(drift.foreign) == foreign
    assert set(drift.displaced) == displaced
    assert set(drift.damaged) == missing | altered | displaced
    assert drift.is_empty == (not (missing or altered or orphans or foreign))


def spoilt(entry: ScannedEntry, fault: str) -> ScannedEntry:
    changes: dict[str, dict[str, object]] = {
        "tenant": {"tenant": "somebody-else"}, "routing": {"correctly_routed": False},
        "id": {"id": "x" + entry.id}, "document": {"document_id": "nobody"},
        "key": {"index_key": "former"}, "ordinal": {"ordinal": 99}, "use": {"incarnation": 6},
    }  # fmt: skip
    return replace(entry, **changes[fault])  # type: ignore[arg-type]


def test_entries_of_another_live_build_are_left_to_that_one() -> None:
    entry = replace(perfect([HeldVersion("a", "one", 1, "public")])[0], generation=3)
    assert compare_index([], [entry], OWNER, others=[3]).is_empty
    assert compare_index([], [entry], OWNER).orphans == (entry.id,)
    former = replace(entry, incarnation=6)
    assert compare_index([], [former], OWNER, others=[3]).orphans == (former.id,)


def test_a_surplus_entry_does_not_make_up_for_a_lost_one() -> None:
    held = [HeldVersion("a", "one", 2, "public")]
    first, second = perfect(held)
    drift = compare_index(held, [first, replace(second, ordinal=5, id="other")], OWNER)
    assert drift.missing == ("a",)
    assert drift.orphans == ("other",)


def test_a_log_line_counts_what_drifted_and_lists_nothing() -> None:
    drift = Drift(20_000, 3, missing=tuple(f"document-{n}" for n in range(5_000)))
    assert str(drift) == (
        "3 of 20,000 entries; documents with entries missing: 5,000, altered: 0, altered"
        " vectors: 0; orphaned entries: 0, foreign: 0"
    )


def test_entries_of_what_was_just_deleted_are_no_drift() -> None:
    entry = perfect([HeldVersion("a", "one", 1, "public")])[0]
    assert compare_index([], [entry], OWNER, leaving={"a"}).is_empty
    assert compare_index([], [entry], OWNER, leaving={"b"}).orphans == (entry.id,)


def test_entries_of_a_record_that_was_pushed_anew_may_have_the_former_scope() -> None:
    [entry] = perfect([HeldVersion("a", "one", 1, "public")])
    assert compare_index([HeldVersion("a", "one", 1, "team")], [entry], OWNER).altered == ("a",)
    assert compare_index([HeldVersion("a", "one", 1, None)], [entry], OWNER).is_empty


def test_vectors_are_compared_only_where_both_have_one_of_the_same_version() -> None:
    first, second = np.array([1, 0], "<f4"), np.array([0, 1], "<f4")
    lake = {"a": first.tobytes(), "b": second.tobytes()}
    held = {"one": "v1", "two": "v1"}

    def found(document_id: str, text: str, vector: np.ndarray | None, **changes: Any) -> set[str]:
        live = EntryVector("id", document_id, "v1", text, vector, genuine=True)
        drift = compare_vectors(held, lake, [replace(live, **changes)])
        assert drift.doubtful == (set() if changes.get("genuine", True) else {document_id})
        return set(drift.altered)

    assert found("one", "a", first) == set()
    assert found("one", "a", first + np.float32(1e-7)) == set(), "rounding"
    assert found("one", "a", second) == {"one"}
    assert found("one", "a", None) == {"one"}
    assert found("one", "a", np.array([1, 0, 0], "<f4")) == {"one"}
    assert found("one", "c", second) == set(), "the lake's loss"
    assert found("one", "a", second, genuine=False) == set(), "an altered entry"
    assert found("one", "a", second, index_key="v0") == set(), "of another version"
    assert found("nobody", "a", second) == set()


def test_counts_tell_which_documents_have_to_be_read() -> None:
    held = [HeldVersion(id_, "v1", 2, "public") for id_ in "abcdefg"]
    counts = [
        *(VersionCount(id_, "v1", "public", 2) for id_ in "ab"),
        VersionCount("c", "v1", "public", 1),
        VersionCount("d", "v1", "public", 2),
        VersionCount("d", "v0", "public", 1),
        VersionCount("e", "v1", "public", 1),
        VersionCount("e", "v1", "everybody", 1),
        VersionCount("f", "v1", "public", 3),
        VersionCount("nobody", "v1", "public", 1),
        VersionCount("left", "v1", "public", 1),
        VersionCount(None, "v1", "public", 1),
    ]
    assert find_suspects(held, counts, {"left"}) == {"c", "d", "e", "f", "g", "nobody", None}
    scopeless = [HeldVersion("a", "v1", 1, None)]
    assert find_suspects(scopeless, [VersionCount("a", "v1", "former", 1)]) == set()


def test_as_many_entries_with_other_ids_are_told_apart() -> None:
    id_of = make_entry_id_function(OWNER)
    held = [HeldVersion(id_, "v1", 2, "public") for id_ in ("aa", "bb", "cc", "dd")]

    def count(document_id: str, *ids: str) -> VersionCount:
        return VersionCount(document_id, "v1", "public", len(ids), compute_checksum(ids))

    right = {one.document_id: [id_of(one.document_id, "v1", at) for at in (0, 1)] for one in held}
    aa, bb = count("aa", *right["aa"]), count("bb", right["bb"][0], "another")
    cc, dd = count("cc", *reversed(right["cc"])), count("dd", right["bb"][1], right["dd"][1])
    counts = [aa, bb, cc, dd]
    assert find_suspects(held, counts) == set(), "by their numbers alone"
    assert find_suspects(held, counts, ids=id_of) == {"bb", "cc", "dd"}
