from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.sources.model import (
    ListedDocument,
    ListingFacts,
    build_uri,
    compute_document_id,
)
from rag_assets.pipeline.source_listing import ListingDigest
from rag_assets.pipeline.source_plans import Deletions, decide_deletions, require_any_listed
from rag_assets.storage.catalog.documents.model import DocumentChange


def listed(path: str, size: int = 1, mtime_ns: int = 2, ctime_ns: int = 3) -> ListedDocument:
    id_, uri = compute_document_id("s", path), build_uri("s", path)
    return ListedDocument("s", path, id_, uri, None, size, mtime_ns, ctime_ns, 4)


def digest(documents: list[ListedDocument]) -> str:
    taken = ListingDigest()
    assert list(taken.track(documents)) == documents
    return taken.hexdigest()


listings = st.lists(
    st.builds(listed, st.sampled_from("abcd"), st.integers(0, 1), st.integers(0, 1)),
    unique_by=lambda document: document.path,
)


@pytest.mark.slow
@given(documents=listings, data=st.data())
def test_the_order_does_not_count(documents: list[ListedDocument], data: st.DataObject) -> None:
    assert digest(data.draw(st.permutations(documents))) == digest(documents)


@pytest.mark.slow
@given(one=listings, other=listings)
def test_everything_else_does(one: list[ListedDocument], other: list[ListedDocument]) -> None:
    by_path = {d.path: d for d in one} == {d.path: d for d in other}
    assert (digest(one) == digest(other)) == by_path


def test_each_fact_counts() -> None:
    document = listed("a")
    for fact in ("size", "mtime_ns", "ctime_ns", "inode"):
        assert digest([replace(document, **{fact: 9})]) != digest([document])  # type: ignore[arg-type]


def test_what_two_documents_swap_is_noticed() -> None:
    assert digest([listed("a", 1), listed("b", 2)]) != digest([listed("a", 2), listed("b", 1)])


def test_a_version_counts_and_documents_without_one_keep_their_digest_and_key() -> None:
    # As the versions before documents had any made them.
    document = ListedDocument("s", "a", "id", "s/a", None, 1, 2, 3, 4)
    assert digest([document]) == "1-70728fcb5888d3b70422f76d3ab737f0"
    assert digest([replace(document, version="b1")]) != digest([document])
    unread = DocumentChange(
        *("id", "s", "file", b"a", "s/a", ListingFacts(1, 2, 3, 4), 0, None),
        modified_at=datetime(2020, 1, 1, tzinfo=UTC),
    )
    assert unread.document_key == "486886aae8a204ab9f2f42dfbf81f35f"
    versions = [replace(unread, facts=replace(unread.facts, version=v)) for v in ("b1", "b2")]
    assert len({unread.document_key, *(change.document_key for change in versions)}) == 3


@pytest.mark.parametrize(
    ("vanished", "lost", "known", "is_held"),
    [
        (20, 20, 20, False),
        (21, 21, 21, True),
        (21, 20, 21, False),  # one of them was found at another place
        (30, 30, 100, False),
        (31, 31, 100, True),
        (0, 0, 0, False),
    ],
)
@pytest.mark.parametrize("allow", [False, True])
def test_vanished_documents_are_all_removed_or_all_held(
    vanished: int, lost: int, known: int, *, is_held: bool, allow: bool
) -> None:
    ids = tuple(sorted(map(str, range(vanished))))
    found = decide_deletions(ids, lost=lost, known=known, allow_deletes=allow)
    if is_held and not allow:
        reason = f"{lost} of {known} documents disappeared at once"
        assert found == Deletions(held=ids, reason=reason)
    else:
        assert found == Deletions(removed=ids)


def test_some_sources_may_fail_but_not_all() -> None:
    failures = [ListingFailed("source 'a' is gone", hint="mount it"), ListingFailed("b is gone")]
    require_any_listed([], 0)
    require_any_listed([], 2)
    require_any_listed(failures[:1], 2)
    with pytest.raises(ListingFailed, match=r"^source 'a' is gone$") as alone:
        require_any_listed(failures[:1], 1)
    assert alone.value.hint == "mount it"
    with pytest.raises(ListingFailed, match="source 'a' is gone; b is gone"):
        require_any_listed(failures, 2)
