"""Syntax trees with character offsets, and walks over them that no depth of nesting breaks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib import import_module
from operator import itemgetter
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Tree

PARSE_SECONDS: Final = 10.0
"""How long a parser may take; ordinary code takes a tenth of a second for 1 MiB."""

_SLICE: Final = 1 << 12
"""Bytes that a parser and a query's predicates read at once, at each place they look at."""
_COMMENTS = frozenset({"comment", "line_comment", "block_comment", "multiline_comment"})


@dataclass(slots=True)
class _Alike:
    """The nodes of a type, with their places in the order of the text, and where they begin."""

    positions: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)


class SyntaxTree:
    """The tree of one text; a text that is not of its language has a tree with errors.

    Attributes:
        text: the text.
        root: its outermost node; an empty one, if the parser gave up.
        gave_up: whether the parser was stopped: hostile input takes some of them quadratic time.

    Args:
        text: without lone surrogates.
        module: the grammar's package.
        function: of that package, which gives the grammar.
        seconds: how long the parser may take.
    """

    def __init__(
        self, text: str, module: str, function: str = "language", seconds: float = PARSE_SECONDS
    ) -> None:
        self.text = text
        data = text.encode("utf-8")
        parser = _parser(module, function)
        tree = _parse(parser, data, seconds)
        self.gave_up = tree is None
        self.root: Node = (tree or parser.parse(b"")).root_node
        self._ascii = len(data) == len(text)
        self._bytes, self._characters = ([], []) if self._ascii else _wide(text)

    @property
    def has_errors(self) -> bool:
        """Whether a part of the text could not be parsed."""
        return self.gave_up or self.root.has_error

    def start(self, node: Node) -> int:
        """The character offset at which a node begins."""
        return self.offset(node.start_byte)

    def end(self, node: Node) -> int:
        """The character offset after a node."""
        return self.offset(node.end_byte)

    def offset(self, byte: int) -> int:
        """The character offset of a byte offset."""
        if self._ascii:
            return byte
        at = bisect_right(self._bytes, byte) - 1
        return self._characters[at] + byte - self._bytes[at]

    def of(self, node: Node | None) -> str:
        """The text of a node; "" of none."""
        return "" if node is None else self.text[self.start(node) : self.end(node)]

    def nodes(self, types: frozenset[str], within: Node | None = None) -> list[Node]:
        """The nodes of these types, outer ones before inner ones, in the order of the text.

        Args:
            types: of the grammar's nodes.
            within: where to look, that node included; the whole tree without one.
        """
        found: list[tuple[int, Node]] = []
        for one in types & self._by_type.keys():
            alike = self._by_type[one]
            if within is None:
                found += zip(alike.positions, alike.nodes, strict=True)
                continue
            first = bisect_left(alike.starts, within.start_byte)
            last = bisect_left(alike.starts, within.end_byte, first)
            end = within.end_byte
            found += (
                (position, node)
                for position, node in zip(
                    alike.positions[first:last], alike.nodes[first:last], strict=True
                )
                if node.end_byte <= end
            )
        found.sort(key=itemgetter(0))
        return [node for _, node in found]

    @cached_property
    def _by_type(self) -> dict[str, _Alike]:
        """The named nodes by type: many readers ask for some, and walking the tree is slow."""
        found: dict[str, _Alike] = {}
        todo = [self.root]
        position = 0
        while todo:
            node = todo.pop()
            alike = found.get(node.type) or found.setdefault(node.type, _Alike())
            alike.positions.append(position)
            alike.starts.append(node.start_byte)
            alike.nodes.append(node)
            position += 1
            todo.extend(reversed(node.named_children))
        return found


@lru_cache(maxsize=2)
def syntax_tree(text: str, module: str, function: str = "language") -> SyntaxTree:
    """Return the tree of a text; several readers of one file share it.

    Whoever has read a file calls `syntax_tree.cache_clear()`: a tree takes many times the memory of
    its text.

    Args:
        text, module, function: see SyntaxTree.
    """
    return SyntaxTree(text, module, function)


def descendants(node: Node, *, into: frozenset[str] | None = None) -> Iterator[Node]:
    """A node and everything within it, in the order of the text.

    Args:
        node: where to begin; it is yielded first.
        into: types of nodes whose children are not visited; they themselves are yielded.
    """
    todo = [node]
    while todo:
        found = todo.pop()
        yield found
        if into is None or found is node or found.type not in into:
            todo.extend(reversed(found.children))


def is_comment(node: Node) -> bool:
    """Whether a node is a comment, in any grammar."""
    return node.type in _COMMENTS


@cache
def _parser(module: str, function: str) -> Parser:
    from tree_sitter import Language, Parser

    return Parser(Language(getattr(import_module(module), function)()))


def _parse(parser: Parser, data: bytes, seconds: float) -> Tree | None:
    """A tree, or none if it takes longer than is allowed."""
    last = monotonic() + seconds
    try:
        return parser.parse(
            lambda at, _: data[at : at + _SLICE],
            progress_callback=lambda *_: monotonic() > last,
        )
    except ValueError:  # this is how a stopped parser says so; it would go on where it stopped
        parser.reset()
        return None


def _wide(text: str) -> tuple[list[int], list[int]]:
    """Byte and character offsets right after each character of several bytes, from (0, 0) on."""
    at_bytes, at_characters = [0], [0]
    byte = 0
    for index, character in enumerate(text):
        width = len(character.encode("utf-8"))
        byte += width
        if width > 1:
            at_bytes.append(byte)
            at_characters.append(index + 1)
    return at_bytes, at_characters
