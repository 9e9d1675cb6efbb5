"""The blocks of a page while some of them change, each at a cost independent of the page's size.

However many blocks change, the page is read once and written once. In between, each block knows
its neighbours, and the page its size in bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from rag_assets.workspace.bodies import BlockBody, canonical_text, kept_block


class PageBlocks:
    """The blocks of a page, to be changed.

    Args:
        text: the stored form of the page.
    """

    def __init__(self, text: str) -> None:
        self._page: dict[str, Any] = json.loads(text)
        self._size = len(text.encode())
        blocks = self._page.get("blocks", ())
        if "blocks" not in self._page:
            self._size += len(b',"blocks":[]')
        self._blocks: dict[str, dict[str, Any]] = {one["block_id"]: one for one in blocks}
        # None stands before the first and after the last block.
        ids = [None, *self._blocks, None]
        self._next: dict[str | None, str | None] = dict(pairwise(ids))
        self._former = {following: one for one, following in self._next.items()}

    @property
    def text(self) -> str:
        """Return the stored form of the page with the changes so far."""
        return canonical_text({**self._page, "blocks": [*self._in_order()]})

    def size_with(self, change: BlockBody) -> int:
        """Return the size of the page after a change, in bytes."""
        block = change.block
        old = self._blocks.get(block.block_id)
        new = None if block.is_secret else kept_block(block)
        count = len(self._blocks) - (old is not None)
        size = self._size - _size(old) - (1 if old is not None and count else 0)
        return size + _size(new) + (1 if new is not None and count else 0)

    def put(self, change: BlockBody) -> None:
        """Change or add a block; a secret block is removed from the page."""
        size, block = self.size_with(change), change.block
        own = block.block_id
        former = self._former[own] if own in self._blocks else self._former[None]
        self._unlink(own)
        if not block.is_secret:
            if "after" in change.model_fields_set:
                is_there = change.after is None or change.after in self._blocks
                former = change.after if is_there else self._former[None]
            self._link(own, former, kept_block(block))
        self._size = size

    def remove(self, block_id: str) -> None:
        """Remove a block from the page."""
        old = self._blocks.get(block_id)
        if old is not None:
            self._unlink(block_id)
            self._size -= _size(old) + (1 if self._blocks else 0)

    def _in_order(self) -> Iterator[dict[str, Any]]:
        at = self._next[None]
        while at is not None:
            yield self._blocks[at]
            at = self._next[at]

    def _link(self, block_id: str, former: str | None, block: dict[str, Any]) -> None:
        following = self._next[former]
        self._blocks[block_id] = block
        self._next[former] = self._former[following] = block_id
        self._former[block_id], self._next[block_id] = former, following

    def _unlink(self, block_id: str) -> None:
        if self._blocks.pop(block_id, None) is not None:
            former, following = self._former.pop(block_id), self._next.pop(block_id)
            self._next[former], self._former[following] = following, former


def _size(block: dict[str, Any] | None) -> int:
    return 0 if block is None else len(canonical_text(block).encode())
