import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_assets.common.errors import (
    DocumentRejected,
    DocumentTooLarge,
    DocumentVanished,
    ListingFailed,
)
from rag_assets.common.hashing import sha256_hex
from rag_assets.common.times import from_nanoseconds
from rag_assets.ingest.sources.diff import (
    Change,
    ChangeKind,
    Digest,
    KnownDocument,
    ListingComparison,
    are_deletions_suspicious,
    hash_documents,
)
from rag_assets.ingest.sources.files import FilesConfig, FilesSource
from rag_assets.ingest.sources.model import (
    RACY_NS,
    READ_AGAIN_NS,
    ListedDocument,
    ListingFacts,
    SourceMetadata,
    build_uri,
    compute_document_id,
    parse_path,
)

NOW = 1_000 * RACY_NS
LATER = from_nanoseconds(NOW) + timedelta(days=1)
FACTS = st.builds(
    ListingFacts,
    size=st.integers(0, 1),
    mtime_ns=st.sampled_from([0, NOW - RACY_NS, NOW - RACY_NS + 1, NOW + 5]),
    ctime_ns=st.integers(0, 1),
    inode=st.integers(0, 1),
)
PATHS = st.sampled_from([f"{n}.md" for n in range(6)])
OUTCOMES = st.sampled_from(["one", "two", "rejected", "vanished"])


def listed(path: str, facts: ListingFacts) -> ListedDocument:
    id_, uri = compute_document_id("s", path), build_uri("s", path)
    times = (facts.mtime_ns, facts.ctime_ns)
    return ListedDocument("s", path, id_, uri, None, facts.size, *times, facts.inode)


@dataclass(frozen=True)
class Compared:
    """A completed comparison, and all of its changes."""

    comparison: ListingComparison
    changes: list[Change]

    def of(self, kind: ChangeKind) -> list[Change]:
        return [change for change in self.changes if change.kind == kind]


def compared(
    found: Iterable[ListedDocument],
    rows: Iterable[KnownDocument],
    hash_all: Callable[[Iterator[ListedDocument]], Iterable[Digest]],
) -> Compared:
    comparison = ListingComparison(rows)
    changes = comparison.find_changes(hash_all(comparison.find_suspects(found)))
    return Compared(comparison, list(changes))


def known(path: str, facts: ListingFacts, sha: str | None, *, deleted: bool) -> KnownDocument:
    id_ = compute_document_id("s", path)
    return KnownDocument(id_, facts, sha, NOW, from_nanoseconds(0), deleted)


@pytest.mark.slow
@given(
    before=st.dictionaries(
        PATHS, st.tuples(FACTS, st.sampled_from(["one", "two", None]), st.booleans())
    ),
    after=st.dictionaries(PATHS, st.tuples(FACTS, OUTCOMES)),
)
@example(  # back, exactly as it was before it was deleted
    before={"0.md": (ListingFacts(0, 0, 0, 0), "one", True)},
    after={"0.md": (ListingFacts(0, 0, 0, 0), "one")},
)
@example(  # rejected before, and nothing about it has changed
    before={"0.md": (ListingFacts(0, 0, 0, 0), None, False)},
    after={"0.md": (ListingFacts(0, 0, 0, 0), "one")},
)
def test_every_document_is_accounted_for_once(
    before: dict[str, tuple[ListingFacts, str | None, bool]],
    after: dict[str, tuple[ListingFacts, str]],
) -> None:
    hashed: list[str] = []

    def hash_all(documents: Iterator[ListedDocument]) -> Iterator[Digest]:
        for document in documents:
            hashed.append(document.path)
            outcome = after[document.path][1]
            rejected = {"rejected": DocumentRejected("r"), "vanished": DocumentVanished("v")}
            yield document, rejected.get(outcome, outcome)

    rows = [known(path, facts, sha, deleted=gone) for path, (facts, sha, gone) in before.items()]
    found = [listed(path, facts) for path, (facts, _) in after.items()]
    diff = compared(found, rows, hash_all)

    there = {path: (facts, sha) for path, (facts, sha, gone) in before.items() if not gone}
    quiet = {
        path
        for path, (facts, _) in after.items()
        if path in there
        and there[path] == (facts, there[path][1] or "never")
        and NOW - facts.mtime_ns >= RACY_NS
    }
    assert set(hashed) == after.keys() - quiet
    assert len(hashed) == len(set(hashed))
    assert diff.comparison.unchanged_count == len(quiet)
    assert diff.comparison.list_removed() == {
        compute_document_id("s", path) for path in there.keys() - after.keys()
    }
    outcomes = {path: after[path][1] for path in hashed}
    read = {path: sha for path, sha in outcomes.items() if sha in ("one", "two")}
    assert {c.document.path: c.content_sha256 for c in diff.of("added")} == {
        path: sha for path, sha in read.items() if path not in there
    }
    assert {c.document.path: c.content_sha256 for c in diff.of("changed")} == {
        path: sha for path, sha in read.items() if path in there and there[path][1] != sha
    }
    assert {c.document.path for c in diff.of("touched")} == {
        path for path, sha in read.items() if path in there and there[path][1] == sha
    }
    assert {c.document.path for c in diff.of("rejected")} == {
        path for path, outcome in outcomes.items() if outcome == "rejected"
    }
    assert all(c.error and c.content_sha256 is None for c in diff.of("rejected"))
    assert len(diff.changes) == len(hashed) - list(outcomes.values()).count("vanished")


@pytest.mark.parametrize(
    ("content", "revision", "said", "kind", "made"),
    [
        ("same", None, None, "touched", from_nanoseconds(0)),
        ("other", None, None, "changed", from_nanoseconds(NOW)),
        ("same", 7, None, "changed", from_nanoseconds(0)),
        ("other", 7, None, "changed", from_nanoseconds(2 * NOW)),
        ("same", 7, LATER, "changed", LATER),
        ("other", 7, LATER, "changed", LATER),
    ],
)
def test_a_date_is_that_of_the_content(
    content: str, revision: int | None, said: datetime | None, kind: str, made: datetime
) -> None:
    row = known("a.md", ListingFacts(0, 0, 0, 0), "same", deleted=False)
    document = listed("a.md", ListingFacts(1, NOW, 2 * NOW, 1))
    metadata = SourceMetadata(modified_at=said)
    document = replace(document, revision=revision, source_metadata=metadata)
    [change] = ListingComparison([row]).find_changes([(document, content)])
    assert (change.kind, change.modified_at) == (kind, made)


@pytest.mark.slow
@given(facts=FACTS, listed_at=st.integers(0, 2 * NOW))
def test_equal_facts_count_only_when_two_seconds_old(facts: ListingFacts, listed_at: int) -> None:
    assert facts.is_unchanged_since(facts, listed_at) == (listed_at - facts.mtime_ns >= RACY_NS)
    other = ListingFacts(facts.size + 1, facts.mtime_ns, facts.ctime_ns, facts.inode)
    assert not facts.is_unchanged_since(other, listed_at)


def test_a_listing_that_fails_removes_nothing() -> None:
    row = known("a.md", ListingFacts(0, 0, 0, 0), "one", deleted=False)

    def broken() -> Iterator[ListedDocument]:
        yield listed("b.md", ListingFacts(0, 0, 0, 0))
        raise ListingFailed("away")

    comparison = ListingComparison([row])
    with pytest.raises(ListingFailed):
        list(comparison.find_suspects(broken()))
    with pytest.raises(RuntimeError, match="not read to its end"):
        comparison.list_removed()


@pytest.mark.parametrize(
    ("removed", "of", "held"),
    [(20, 20, False), (21, 21, True), (21, 70, False), (22, 73, True), (30, 100, False),
     (31, 100, True)],
)  # fmt: skip
def test_suspicious_deletions(removed: int, of: int, held: bool) -> None:
    assert are_deletions_suspicious(removed, of) is held


def synced(source: FilesSource, rows: dict[str, KnownDocument]) -> Compared:
    """Compare a real folder, then update the known rows as the catalog would."""
    began = time.time_ns()
    documents = list(source.list())
    diff = compared(documents, rows.values(), partial(hash_documents, source))
    facts = {document.document_id: document.facts for document in documents}
    for change in diff.changes:
        key = change.document.document_id
        rows[key] = KnownDocument(key, facts[key], change.content_sha256, began, change.modified_at)
    for key in diff.comparison.list_removed():
        del rows[key]
    return diff


def test_a_real_folder_over_time(tmp_path: Path) -> None:
    old = time.time_ns() - 10 * RACY_NS
    for name in ("a.md", "b.md", "c.md"):
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, ns=(old, old))
    source = FilesSource(FilesConfig(name="s", root=tmp_path))
    rows: dict[str, KnownDocument] = {}
    first = synced(source, rows)
    assert [change.content_sha256 for change in first.of("added")] == [
        sha256_hex(name) for name in ("a.md", "b.md", "c.md")
    ]
    assert synced(source, rows).comparison.unchanged_count == 3

    (tmp_path / "a.md").write_text("A.md")  # same size
    os.utime(tmp_path / "a.md", ns=(old, old))  # and the mtime set back
    os.utime(tmp_path / "b.md")
    (tmp_path / "c.md").rename(tmp_path / "d.md")
    second = synced(source, rows)
    assert [change.document.path for change in second.of("changed")] == ["a.md"]
    assert [change.document.path for change in second.of("touched")] == ["b.md"]
    assert [change.document.path for change in second.of("added")] == ["d.md"]
    assert second.comparison.list_removed() == {compute_document_id("s", "c.md")}
    third = synced(source, rows)
    assert third.comparison.unchanged_count == 2
    assert [change.document.path for change in third.of("touched")] == ["b.md"]  # modified just now


def test_hashing_keeps_the_order_and_isolates_failures(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"{number:02}.md").write_bytes(b"%d" % number)
    source = FilesSource(FilesConfig(name="s", root=tmp_path, max_bytes=1000))
    documents = list(source.list())
    (tmp_path / "07.md").write_bytes(b"x" * 1001)
    (tmp_path / "08.md").unlink()
    (tmp_path / "09.md").unlink()
    (tmp_path / "09.md").symlink_to("/etc/passwd")
    results = list(hash_documents(source, documents, workers=3))
    assert [document for document, _ in results] == documents
    assert type(results[7][1]) is DocumentTooLarge
    assert type(results[8][1]) is DocumentVanished
    assert type(results[9][1]) is DocumentRejected
    assert [outcome for n, (_, outcome) in enumerate(results) if n not in (7, 8, 9)] == [
        sha256_hex(b"%d" % n) for n in range(50) if n not in (7, 8, 9)
    ]


def test_hashing_takes_no_more_documents_than_it_works_on(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a")
    source = FilesSource(FilesConfig(name="s", root=tmp_path))
    (document,) = source.list()
    taken = 0

    def endless() -> Iterator[ListedDocument]:
        nonlocal taken
        while True:
            taken += 1
            yield document

    results = hash_documents(source, endless(), workers=2)
    for _ in range(100):
        assert next(results) == (document, sha256_hex("a"))
    results.close()  # type: ignore[attr-defined]
    assert taken < 300


@pytest.mark.slow
@given(st.binary(min_size=1).filter(lambda raw: b"\0" not in raw), st.text(min_size=1))
def test_uris_are_printable_and_tell_the_path(raw: bytes, source: str) -> None:
    path = raw.decode("utf-8", "surrogateescape")
    source = source.encode("utf-8", "ignore").decode()
    uri = build_uri(source, path)
    assert uri.isascii()
    assert uri.isprintable()
    assert parse_path(uri) == path
    assert len(compute_document_id(source, path)) == 32


def test_a_version_decides_alone() -> None:
    one, same, other = (
        ListingFacts(5, 0, 0, 0, version="a" * 40),
        ListingFacts(6, NOW, NOW, 9, version="a" * 40),
        ListingFacts(5, 0, 0, 0, version="b" * 40),
    )
    plain = ListingFacts(5, 0, 0, 0)
    assert same.is_unchanged_since(one, NOW)
    assert not other.is_unchanged_since(one, NOW)
    assert not plain.is_unchanged_since(one, NOW)
    assert not one.is_unchanged_since(plain, NOW)
    assert not one.is_unchanged_since(one, READ_AGAIN_NS)


def test_a_version_is_no_inode_and_leaves_other_identities_as_they_were() -> None:
    assert ListingFacts(1, 2, 3, 4).identity == 4
    assert ListingFacts(1, 2, 3, 0, revision=7).identity == 7
    assert ListingFacts(1, 2, 3, 4, version="7").identity not in (7, "7")
