"""Successive changes of a page's blocks, compared with the meaning of each change."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rag_assets.ingest.sources.record_bodies import (
    BlockBody,
    PageBlocks,
    build_stored_block,
    serialize_canonical,
)


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
