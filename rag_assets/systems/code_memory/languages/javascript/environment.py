"""Environment variables that JavaScript reads.

Fact `reads_env` {key}: from `process.env.KEY`, `process.env["KEY"]`, `import.meta.env.KEY`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

_KEY: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_OBJECTS: Final = frozenset({"process.env", "import.meta.env"})
_LONGEST: Final = 20


def variables(tree: SyntaxTree, node: Node, symbol: str) -> Iterator[Fact]:
    """Yield the variable that an expression reads, if any."""
    if node.type not in {"member_expression", "subscript_expression"}:
        return
    owner = node.child_by_field_name("object")
    if owner is None or owner.end_byte - owner.start_byte > _LONGEST:
        return
    if tree.of(owner) in _OBJECTS:
        named = node.child_by_field_name("property") or node.child_by_field_name("index")
        key = tree.of(named).strip("\"'")
        if _KEY.fullmatch(key):
            yield Fact("reads_env", tree.start(node), tree.end(node), symbol, {"key": key})
