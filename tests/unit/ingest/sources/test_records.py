import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from rag_assets.common.errors import DocumentTooLarge, DocumentVanished
from rag_assets.common.hashing import sha256_hex
from rag_assets.ingest.sources.diff import KnownDocument, ListingComparison, hash_documents
from rag_assets.ingest.sources.model import (
    NO_METADATA,
    READ_AGAIN_NS,
    ListedDocument,
    StoredRecord,
    compute_document_id,
)
from rag_assets.ingest.sources.record_bodies import (
    BlockBody,
    PageBlocks,
    build_stored_block,
    serialize_canonical,
)
from rag_assets.ingest.sources.records import (
    RecordsConfig,
    RecordsSource,
    compute_record_document_id,
)

NOW = 1_800_000_000_000_000_000


@dataclass
class MemoryRecords:
    """Records and their texts, with a count of the texts that are read."""

    records: list[StoredRecord]
    texts: dict[str, str]
    read: int = 0

    def iter_records(self, source: str) -> Iterator[StoredRecord]:
        assert source == "pushed"
        yield from self.records

    def text(self, document_id: str) -> str | None:
        self.read += 1
        return self.texts.get(document_id)


def record(source_id: str, text: str, revision: int = 1) -> StoredRecord:
    id_ = compute_record_document_id("pushed", "page", source_id)
    size, content = len(text.encode()), sha256_hex(text)
    return StoredRecord(
        "page", source_id, id_, revision, size, NOW, "text/markdown", content, NO_METADATA
    )


def source_of(**texts: str) -> tuple[RecordsSource, MemoryRecords]:
    records = [record(name, text) for name, text in texts.items()]
    store = MemoryRecords(records, {r.document_id: texts[r.source_id] for r in records})
    return RecordsSource(RecordsConfig(name="pushed"), store), store


def known(document: ListedDocument, listed_at_ns: int = NOW) -> KnownDocument:
    content = document.content_sha256
    return KnownDocument(
        document.document_id, document.facts, content, listed_at_ns, document.modified_at
    )


def kinds(source: RecordsSource, rows: list[KnownDocument]) -> list[str]:
    comparison = ListingComparison(rows)
    suspects = comparison.find_suspects(source.list())
    return [change.kind for change in comparison.find_changes(hash_documents(source, suspects))]


def test_a_record_is_a_document_with_a_path_of_its_own() -> None:
    source, _ = source_of(**{"a/b": "text"})
    [document] = source.list()
    assert (document.path, document.uri) == ("page/a/b", "pushed/page/a/b")
    assert document.document_id == compute_document_id("pushed", "page/a/b")
    assert (document.source_type, document.media_type) == ("page", "text/markdown")
    assert source.read(document.path, max_bytes=10) == b"text"


def test_no_text_is_read_to_find_out_what_changed() -> None:
    source, store = source_of(a="one", b="two")
    assert kinds(source, []) == ["added", "added"]
    rows = [known(document) for document in source.list()]
    assert kinds(source, rows) == []
    store.records[0] = replace(store.records[0], revision=2)
    assert kinds(source, rows) == ["changed"]
    assert store.read == 0


def test_a_record_pushed_just_now_need_not_be_looked_at_again() -> None:
    source, _ = source_of(a="one")
    [document] = source.list()
    assert document.facts.is_unchanged_since(document.facts, NOW)


def test_a_document_marked_for_another_reading_is_changed() -> None:
    source, _ = source_of(a="one")
    rows = [known(document, READ_AGAIN_NS) for document in source.list()]
    assert kinds(source, rows) == ["changed"]


def test_a_record_that_is_gone_or_too_large_is_refused() -> None:
    source, store = source_of(a="one")
    with pytest.raises(DocumentTooLarge):
        source.read("page/a", max_bytes=2)
    store.texts.clear()
    with pytest.raises(DocumentVanished):
        b"".join(source.stream("page/a", max_bytes=10))


def change(block_id: str, text: str = "", **more: Any) -> BlockBody:
    block = {"block_id": block_id, "type": more.pop("type", "paragraph"), "text": text}
    block["metadata"] = more.pop("metadata", {})
    return BlockBody.model_validate({"page_uuid": "p", "block": block, **more})


def put(blocks: list[dict[str, Any]], of: BlockBody) -> list[dict[str, Any]]:
    """Return the blocks after a change, as the API's documentation defines it."""
    own = of.block.block_id
    before = [block["block_id"] for block in blocks]
    others = [block for block in blocks if block["block_id"] != own]
    if of.block.is_secret:
        return others
    ids = [other["block_id"] for other in others]
    place = before.index(own) if own in before else len(others)
    if "after" in of.model_fields_set:
        place = 0 if of.after is None else len(others)
        place = ids.index(of.after) + 1 if of.after in ids else place
    return [*others[:place], build_stored_block(of.block), *others[place:]]


@pytest.mark.parametrize("seed", range(40))
def test_any_changes_are_what_they_are_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    ids = [f"b{number}" for number in range(8)]
    blocks = [build_stored_block(change(id_, id_).block) for id_ in ids[: chance.randrange(6)]]
    page = {"type": "page", "title": "Ärger", "blocks": blocks}
    if not blocks and seed % 2:
        del page["blocks"]
    edited = PageBlocks(serialize_canonical(page))
    for number in range(60):
        id_ = chance.choice(ids)
        if chance.random() < 0.2:
            blocks = [block for block in blocks if block["block_id"] != id_]
            edited.remove(id_)
        else:
            more: dict[str, Any] = {}
            if chance.random() < 0.5:
                more["after"] = chance.choice([None, "unknown", *ids])
            if chance.random() < 0.1:
                more |= {"type": "code", "metadata": {"secret": True}}
            of = change(id_, "ü" * chance.randrange(4) + str(number), **more)
            blocks = put(blocks, of)
            size = edited.compute_changed_size(of)
            edited.put(of)
            assert size == len(edited.text.encode())
        assert edited.text == serialize_canonical({**page, "blocks": blocks})


def test_a_change_that_is_only_measured_changes_nothing() -> None:
    text = serialize_canonical({"type": "page", "title": "T", "blocks": []})
    edited = PageBlocks(text)
    assert edited.compute_changed_size(change("b", "long" * 100)) > len(text) + 400
    assert edited.text == text
