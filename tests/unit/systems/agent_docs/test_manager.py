"""The manager of passages."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from rag_assets.common.errors import InputRejected, ProviderUnavailable
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.models.embedding.protocol import Answer, Purpose
from rag_assets.models.providers.local import DeterministicEmbedder
from rag_assets.systems.agent_docs.file_store import FileStore
from rag_assets.systems.agent_docs.manager import IndexReport, RagIndexManager, WordIndex
from rag_assets.systems.agent_docs.passages import Chunking
from rag_assets.systems.agent_docs.sqlite_store import SqliteStore
from rag_assets.systems.agent_docs.stores import DocChunk, MemoryStore, PassageStore


class Counting(DeterministicEmbedder):
    """An embedder that counts its texts, and fails or rejects texts on request."""

    def __init__(self) -> None:
        super().__init__(16)
        self.texts: list[str] = []
        self.embedder_id = "one"
        self.broken = False
        self.refused = "\0"

    async def embed(
        self,
        texts: Sequence[str],
        *,
        purpose: Purpose = "document",
        deadline: float | None = None,
        is_bulk: bool = False,
    ) -> Answer:
        if self.broken:
            raise ProviderUnavailable("it is gone")
        if any(self.refused in text for text in texts):
            raise InputRejected("one of them")
        self.texts += texts if purpose == "document" else []
        return await super().embed(texts, purpose=purpose, deadline=deadline, is_bulk=is_bulk)


def plain(parsed: ParsedText) -> ParsedText:
    return parsed


class Work:
    def __init__(self, folder: Path, store: PassageStore) -> None:
        self.folder, self.store, self.embedder = folder, store, Counting()
        self.manager = RagIndexManager(self.embedder, store, Chunking(200, 20), mask=plain)
        for name in ("a", "b", "c"):
            self.write(f"{name}.md", f"# {name}\n\n" + f"Sentence about {name}. " * 30)

    def write(self, name: str, text: str, *, age: float = 60.0) -> None:
        path = self.folder / name
        path.write_text(text)
        os.utime(path, (time.time() - age,) * 2)

    def ensure(self) -> IndexReport:
        self.embedder.texts.clear()
        return self.manager.ensure_index("x", ["*.md"], self.folder)


@pytest.fixture(params=["memory", "file", "sqlite"])
def work(request: pytest.FixtureRequest, tmp_path: Path) -> Work:
    stores = {
        "memory": MemoryStore,
        "file": lambda: FileStore(tmp_path / "rag"),
        "sqlite": lambda: SqliteStore(tmp_path / "rag.db"),
    }
    folder = tmp_path / "docs"
    folder.mkdir()
    return Work(folder, stores[request.param]())


def test_an_index_is_built_once(work: Work) -> None:
    first = work.ensure()
    assert (first.files, first.built, first.embedded) == (3, True, len(work.embedder.texts))
    assert first.chunks == len(work.store.chunks("x")) == 9
    again = work.ensure()
    assert (again.built, again.embedded, again.chunks) == (False, 0, first.chunks)
    assert work.embedder.texts == []
    assert work.manager.is_current("x", ["*.md"], work.folder)


def test_only_what_changed_is_embedded(work: Work) -> None:
    work.ensure()
    text = (work.folder / "b.md").read_text()
    work.write("b.md", text + "\n\nA new paragraph at its end, about something else. " * 4, age=30)
    report = work.ensure()
    assert report.built
    assert 0 < report.embedded < 6
    assert any("new paragraph" in chunk.content for chunk in work.store.chunks("x"))


def test_a_passage_without_its_comments_is_found_until_its_file_changes(work: Work) -> None:
    page = "# Tides\n\nThe tide turns. <!-- a secret -->\n\n<!-- x -->\nIt turns twice a day.\n"
    work.write("tides.md", page)
    work.ensure()

    def search() -> list[str]:
        found = work.manager.search("x", "tides", 100)
        return [r.chunk.content for r in found if r.chunk.source_path == "tides.md"]

    assert search() == ["# Tides\n\nThe tide turns. \n\n\nIt turns twice a day."]
    work.write("tides.md", page.replace("twice", "never"))
    assert search() == []


def test_added_removed_and_renamed_files_are_followed(work: Work) -> None:
    before = work.ensure()
    (work.folder / "a.md").unlink()
    work.write("d.md", "Only one sentence about d.")
    report = work.ensure()
    assert (report.files, report.embedded) == (3, 1)
    assert {chunk.source_path for chunk in work.store.chunks("x")} == {"b.md", "c.md", "d.md"}
    assert before.chunks != report.chunks
    (work.folder / "b.md").rename(work.folder / "z.md")
    assert work.ensure().built
    assert work.embedder.texts == [], "a renamed file is not embedded again"
    assert {chunk.source_path for chunk in work.store.chunks("x")} == {"c.md", "d.md", "z.md"}


def test_a_touched_file_is_only_hashed_again(work: Work) -> None:
    work.ensure()
    os.utime(work.folder / "a.md", (time.time() - 20,) * 2)
    assert not work.manager.is_current("x", ["*.md"], work.folder)
    report = work.ensure()
    assert (report.built, report.embedded) == (False, 0)
    assert work.manager.is_current("x", ["*.md"], work.folder)


def test_an_edit_of_equal_size_within_the_same_second_is_noticed(work: Work) -> None:
    now = time.time_ns()
    (work.folder / "a.md").write_text("Alpha is here.")
    os.utime(work.folder / "a.md", ns=(now, now))
    work.ensure()
    (work.folder / "a.md").write_text("Omega is here.")
    os.utime(work.folder / "a.md", ns=(now, now))
    assert work.ensure().built
    assert any("Omega" in chunk.content for chunk in work.store.chunks("x"))


def test_vectors_of_another_model_answer_nothing_until_all_are_made_anew(work: Work) -> None:
    first = work.ensure()
    assert work.manager.can_answer("x")
    assert work.manager.search("x", "about a")
    work.embedder.embedder_id = "two"
    assert not work.manager.can_answer("x")
    assert work.manager.search("x", "about a") == []
    report = work.ensure()
    assert (report.built, report.embedded) == (True, first.embedded)
    assert (state := work.store.state("x")) is not None
    assert state.embedder_id == "two"
    assert work.manager.search("x", "about a")


@pytest.mark.parametrize("name", ["x.index.json", "rag.db"])
def test_a_damaged_store_is_built_again(name: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    kept = tmp_path / "store"
    store = FileStore(kept) if name.endswith("json") else SqliteStore(kept / name)
    work = Work(tmp_path / "docs", store)
    first = work.ensure()
    (kept / name).write_bytes(b"no index at all" * 300)
    report = work.ensure()
    assert (report.built, report.chunks) == (True, first.chunks)
    assert work.manager.search("x", "about a")
    assert (kept / f"{name}.damaged-1").is_file()


def test_a_modification_time_in_the_future_is_trusted(work: Work) -> None:
    """An edit now would change the modification time."""
    work.write("a.md", "From another time.", age=-1_000_000)
    work.ensure()
    assert work.manager.is_current("x", ["*.md"], work.folder)
    work.write("a.md", "From another tide.", age=5)
    assert work.ensure().built


def test_other_limits_make_other_passages(work: Work) -> None:
    first = work.ensure()
    other = RagIndexManager(work.embedder, work.store, Chunking(400, 0), mask=plain)
    assert other.ensure_index("x", ["*.md"], work.folder).chunks < first.chunks


def test_a_failure_leaves_the_former_index(work: Work) -> None:
    first = work.ensure()
    work.write("a.md", "Everything is new here.", age=10)
    work.embedder.broken = True
    with pytest.raises(ProviderUnavailable):
        work.ensure()
    assert len(work.store.chunks("x")) == first.chunks
    work.embedder.broken = False
    assert work.ensure().embedded == 1


def test_a_text_that_the_model_rejects_stops_no_other(work: Work) -> None:
    work.embedder.refused = "refused"
    work.write("r.md", "This is refused.")
    report = work.ensure()
    assert report.files == 4
    assert "r.md" not in {chunk.source_path for chunk in work.store.chunks("x")}
    assert not work.ensure().built


def test_unreadable_files_are_reported_and_stop_nothing(work: Work) -> None:
    (work.folder / "bin.md").write_bytes(b"\0\0\0")
    (work.folder / "wide.md").write_bytes("text".encode("utf-16"))
    (work.folder / "big.md").write_bytes(b"x" * (5 * 1024 * 1024 + 1))
    report = work.ensure()
    assert set(report.left_out) == {"bin.md", "wide.md", "big.md"}
    assert "UTF-8" in report.left_out["wide.md"]
    assert report.files == 3
    assert set(work.ensure().left_out) == {"bin.md", "wide.md", "big.md"}


def test_patterns_without_files_make_an_empty_index(work: Work) -> None:
    report = work.manager.ensure_index("y", ["no/*.md"], work.folder)
    assert (report.files, report.chunks, report.empty) == (0, 0, ("no/*.md",))
    assert work.store.has_index("y")
    assert work.manager.search("y", "anything") == []


def test_a_search_finds_equal_texts_and_words(work: Work) -> None:
    work.write("flag.md", "The option --frobnicate-hard is dangerous.")
    work.ensure()
    [text] = [one.content for one in work.store.chunks("x") if "frobnicate" in one.content]
    best = work.manager.search("x", text, 3)[0]
    assert (best.chunk.source_path, best.score) == ("flag.md", pytest.approx(1.0, abs=1e-4))
    fused = work.manager.search("x", "--frobnicate-hard", 3, mode="hybrid")
    assert "flag.md" in {one.chunk.source_path for one in fused[:2]}
    for mode in ("knn", "hybrid"):
        above = work.manager.search("x", text, 9, mode=mode, min_score=0.99)
        assert [one.chunk.source_path for one in above] == ["flag.md"]
    with pytest.raises(InputRejected):
        work.manager.search("x", "   ")


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_credentials_are_found_by_the_rules_of_the_project(kind: str, tmp_path: Path) -> None:
    key = "AKIA" + "Z3MGN5UXOJ7RBQKD"
    (tmp_path / "a.md").write_text(f"# Keys\n\naws_access_key_id = {key}\n\n" + "Other. " * 200)
    rag = tmp_path / "rag"
    store = FileStore(rag) if kind == "file" else SqliteStore(rag / "rag.db")
    manager = RagIndexManager(Counting(), store, Chunking(200, 0))
    report = manager.ensure_index("x", ["*.md"], tmp_path)
    assert (report.dropped, report.secrets) == (0, {"a.md": ("aws-access-key-id",)})
    assert report.chunks > 3
    stored = b"".join(path.read_bytes() for path in (tmp_path / "rag").iterdir())
    assert key.encode() not in stored


TEXTS = {
    "german.md": "Die Häuser werden geprüft, wenn der Zähler TBK-4092 defekt ist.",
    "english.md": "The houses are inspected if the meter TBK-4092 is broken.",
    "other.md": "The boats are painted in spring by the crew of the harbour.",
}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["haus"], ["german.md"]),
        (["house"], ["english.md"]),
        (["tbk-4092"], ["english.md", "german.md"]),
        (["haus", "tbk-4092"], ["german.md", "english.md"]),
        (["unbekannt"], []),
    ],
)
def test_words_are_found_in_the_language_of_a_passage(words: list[str], found: list[str]) -> None:
    passages = [DocChunk.from_location("agent", path, 0, text) for path, text in TEXTS.items()]
    index = WordIndex.from_passages(passages)
    paths = {passage.id: passage.source_path for passage in passages}
    scores = index.score_passages(words)
    assert sorted(paths[id_] for id_ in scores) == sorted(found)
    best = next(iter(scores), None)
    assert best is None or index.compute_term_coverage(best, words) == 1
    assert found == [] or len(words) == 1 or paths[next(iter(scores))] == found[0]
