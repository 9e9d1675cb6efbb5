from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.ingest.sources.model import ListedDocument, document_id, uri_of
from rag_assets.pipeline.source_listing import ListingDigest


def listed(path: str, size: int = 1, mtime_ns: int = 2, ctime_ns: int = 3) -> ListedDocument:
    id_, uri = document_id("s", path), uri_of("s", path)
    return ListedDocument("s", path, id_, uri, None, size, mtime_ns, ctime_ns, 4)


def digest(documents: list[ListedDocument]) -> str:
    taken = ListingDigest()
    assert list(taken.through(documents)) == documents
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
