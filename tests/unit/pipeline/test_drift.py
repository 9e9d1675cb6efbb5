"""compare_index against a model: random faults in a perfect index are found, and only they."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.pipeline.drift import Drift, compare_index
from rag_assets.storage.catalog.index_rows import HeldVersion
from rag_assets.storage.index.model import Owner, ScannedEntry, entry_id

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
            id=entry_id(OWNER, v.document_id, v.indexed_key, ordinal),
            tenant=OWNER.tenant,
            incarnation=OWNER.incarnation,
            generation=OWNER.generation,
            document_id=v.document_id,
            index_key=v.indexed_key,
            ordinal=ordinal,
            access_scope=v.access_scope or "public",
            correctly_routed=True,
            intact=True,
        )
        for v in held
        for ordinal in range(v.chunk_count)
    ]


@pytest.mark.slow
@given(held=held_versions)
def test_a_perfect_index_shows_no_drift(held: list[HeldVersion]) -> None:
    drift = compare_index(held, perfect(held), OWNER)
    assert drift.none
    assert drift.expected == drift.live == sum(v.chunk_count for v in held)


FAULTS = ("lost", "intact", "scope", "tenant", "routing", "id", "document", "key", "ordinal", "use")


@pytest.mark.slow
@given(held=held_versions, data=st.data())
def test_exactly_the_faults_are_found(held: list[HeldVersion], data: st.DataObject) -> None:
    missing, altered, orphans, foreign = set(), set(), set(), set()
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
            missing.add(entry.document_id)
            if fault != "lost":
                live.append(spoilt(entry, fault))
                (foreign if fault in {"tenant", "routing"} else orphans).add(live[-1].id)
    drift = compare_index(held, data.draw(st.permutations(live)), OWNER)
    assert set(drift.missing) == missing
    assert set(drift.altered) == altered
    assert set(drift.orphans) == orphans
    assert set(drift.foreign) == foreign
    assert drift.none == (not (missing or altered or orphans or foreign))


def spoilt(entry: ScannedEntry, fault: str) -> ScannedEntry:
    changes: dict[str, dict[str, object]] = {
        "tenant": {"tenant": "somebody-else"},
        "routing": {"correctly_routed": False},
        "id": {"id": "x" + entry.id},
        "document": {"document_id": "nobody"},
        "key": {"index_key": "former"},
        "ordinal": {"ordinal": 99},
        "use": {"incarnation": 6},
    }
    return replace(entry, **changes[fault])  # type: ignore[arg-type]


def test_entries_of_another_live_build_are_left_to_that_one() -> None:
    entry = replace(perfect([HeldVersion("a", "one", 1, "public")])[0], generation=3)
    assert compare_index([], [entry], OWNER, others=[3]).none
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
        "3 of 20,000 entries; documents with entries missing: 5,000, altered: 0;"
        " orphaned entries: 0, foreign: 0"
    )


def test_entries_of_what_was_just_deleted_are_no_drift() -> None:
    entry = perfect([HeldVersion("a", "one", 1, "public")])[0]
    assert compare_index([], [entry], OWNER, leaving={"a"}).none
    assert compare_index([], [entry], OWNER, leaving={"b"}).orphans == (entry.id,)


def test_entries_of_a_record_that_was_pushed_anew_may_have_the_former_scope() -> None:
    [entry] = perfect([HeldVersion("a", "one", 1, "public")])
    assert compare_index([HeldVersion("a", "one", 1, "team")], [entry], OWNER).altered == ("a",)
    assert compare_index([HeldVersion("a", "one", 1, None)], [entry], OWNER).none
