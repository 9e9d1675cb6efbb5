"""Syntax trees with character offsets, and units that cover a whole text.

Text outside definitions is cut at blank lines.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from importlib import import_module
from operator import itemgetter
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.symbols.model import Unit

if TYPE_CHECKING:
    import tree_sitter

Node: TypeAlias = "tree_sitter.Node"
"""A node of a syntax tree; tree-sitter is imported when a text is parsed."""

_PARSE_SECONDS: Final = 10.0
"""Maximum parse time; ordinary code takes a tenth of a second for 1 MiB."""

_SLICE_BYTES: Final = 1 << 8
"""Number of bytes that a parser reads at once.

tree-sitter 0.26 never releases the slices that it gets, and reads them again while it recovers from
errors: a million slices of 4 KiB for 50 KiB of damaged Lua. So slices are short, and each is made
once.
"""
_MAX_SHORT_TEXT_CHARACTERS: Final = 200
_COMMENTS = frozenset({"comment", "line_comment", "block_comment", "multiline_comment"})


@dataclass(slots=True)
class _NodesOfType:
    """All nodes of one type, with their start bytes and their positions in the text's order."""

    positions: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)


class SyntaxTree:
    """The syntax tree of one text; a text in another language yields a tree with errors.

    Attributes:
        root: its outermost node; an empty node if the parser gave up.
        gave_up: whether the parser was stopped; some parsers take quadratic time on hostile input.

    Args:
        text: the text, without lone surrogates.
        module: the grammar's package.
        function: the function in that package that returns the grammar.
        seconds: maximum parse time.
    """

    def __init__(
        self, text: str, module: str, function: str = "language", seconds: float = _PARSE_SECONDS
    ) -> None:
        self.text = text
        data = text.encode("utf-8")
        parser = _load_parser(module, function)
        tree = _parse_within_limit(parser, data, seconds)
        self.gave_up = tree is None
        self.root: Node = (tree or parser.parse(b"")).root_node
        self._ascii = len(data) == len(text)
        self._bytes, self._characters = (
            ([], []) if self._ascii else _compute_multibyte_offsets(text)
        )

    @property
    def has_errors(self) -> bool:
        """Return whether any part of the text could not be parsed."""
        return self.gave_up or self.root.has_error

    def start(self, node: Node) -> int:
        """Return the character offset of the start of a node."""
        return self.get_character_offset(node.start_byte)

    def end(self, node: Node) -> int:
        """Return the character offset of the end of a node, which is after its last character."""
        return self.get_character_offset(node.end_byte)

    def get_character_offset(self, byte: int) -> int:
        """Return the character offset of a byte offset."""
        if self._ascii:
            return byte
        at = bisect_right(self._bytes, byte) - 1
        return self._characters[at] + byte - self._bytes[at]

    def get_node_text(self, node: Node | None) -> str:
        """Return the text of a node; "" for None."""
        return "" if node is None else self.text[self.start(node) : self.end(node)]

    def get_field_text(self, node: Node, name: str) -> str:
        """Return the text of a field of a node; "" if the node has no such field."""
        return self.get_node_text(node.child_by_field_name(name))

    def get_short_text(self, node: Node | None) -> str:
        """Return the first 200 characters of a node in one line; "" for None."""
        return " ".join(self.get_node_text(node)[:_MAX_SHORT_TEXT_CHARACTERS].split())

    def build_fact(
        self,
        kind: str,
        node: Node,
        symbol: str,
        values: Mapping[str, Any],
        longest: int | None = None,
    ) -> Fact:
        """Return a fact with a node's span as its evidence, limited to `longest` characters."""
        start, end = self.start(node), self.end(node)
        last = end if longest is None else min(end, start + longest)
        return Fact(kind, start, last, symbol, values)

    def find_nodes(self, types: frozenset[str], within: Node | None = None) -> list[Node]:
        """Return the nodes of these types in the order of the text, outer nodes first.

        Args:
            types: the types of the grammar's nodes.
            within: a node to search, itself included; None for the whole tree.
        """
        placed: list[tuple[int, Node]] = []
        for type_ in types & self._nodes_by_type.keys():
            alike = self._nodes_by_type[type_]
            if within is None:
                placed += zip(alike.positions, alike.nodes, strict=True)
                continue
            first = bisect_left(alike.starts, within.start_byte)
            last = bisect_left(alike.starts, within.end_byte, first)
            end = within.end_byte
            placed += (
                (position, node)
                for position, node in zip(
                    alike.positions[first:last], alike.nodes[first:last], strict=True
                )
                if node.end_byte <= end
            )
        placed.sort(key=itemgetter(0))
        return [node for _, node in placed]

    @cached_property
    def _nodes_by_type(self) -> dict[str, _NodesOfType]:
        """Return the named nodes by type; cached because walking the tree is slow."""
        by_type: dict[str, _NodesOfType] = {}
        pending = [self.root]
        position = 0
        while pending:
            node = pending.pop()
            alike = by_type.get(node.type) or by_type.setdefault(node.type, _NodesOfType())
            alike.positions.append(position)
            alike.starts.append(node.start_byte)
            alike.nodes.append(node)
            position += 1
            pending.extend(reversed(node.named_children))
        return by_type


@lru_cache(maxsize=2)
def get_syntax_tree(text: str, module: str, function: str = "language") -> SyntaxTree:
    """Return the tree of a text, from a cache through which all readers of a file share it.

    Call `get_syntax_tree.cache_clear()` after reading a file: a tree takes many times the memory of
    its text.
    """
    return SyntaxTree(text, module, function)


def iter_descendants(node: Node, *, into: frozenset[str] | None = None) -> Iterator[Node]:
    """Yield a node and all nodes within it, in order, but no children of nodes of types `into`."""
    pending = [node]
    while pending:
        at = pending.pop()
        yield at
        if into is None or at is node or at.type not in into:
            pending.extend(reversed(at.children))


def is_comment(node: Node) -> bool:
    """Return whether a node is a comment, in any grammar."""
    return node.type in _COMMENTS


def list_code_children(node: Node) -> list[Node]:
    """Return the named children of a node, without comments."""
    return [child for child in node.named_children if not is_comment(child)]


def get_first_child(node: Node) -> Node | None:
    """Return the first named child of a node; None if there is none."""
    return node.named_children[0] if node.named_child_count else None


def list_field_children(node: Node, name: str) -> list[Node]:
    """Return the named children of a field of a node; empty if the node has no such field."""
    inner = node.child_by_field_name(name)
    return [] if inner is None else inner.named_children


@cache
def _load_parser(module: str, function: str) -> tree_sitter.Parser:
    from tree_sitter import Language, Parser

    return Parser(Language(getattr(import_module(module), function)()))


def _parse_within_limit(
    parser: tree_sitter.Parser, data: bytes, seconds: float
) -> tree_sitter.Tree | None:
    """Return the tree of a text in UTF-8; None if parsing takes longer than `seconds`."""
    last = monotonic() + seconds
    slices: dict[int, bytes] = {}

    def read(at: int, _: object) -> bytes:
        if (part := slices.get(at)) is None:
            part = slices[at] = data[at : at + _SLICE_BYTES]
        return part

    try:
        return parser.parse(read, progress_callback=lambda *_: monotonic() > last)
    except ValueError:  # raised by a stopped parser; without a reset it would resume
        parser.reset()
        return None


def _compute_multibyte_offsets(text: str) -> tuple[list[int], list[int]]:
    """Return byte and character offsets after each multi-byte character, starting with (0, 0)."""
    at_bytes, at_characters = [0], [0]
    byte = 0
    for index, character in enumerate(text):
        width = len(character.encode("utf-8"))
        byte += width
        if width > 1:
            at_bytes.append(byte)
            at_characters.append(index + 1)
    return at_bytes, at_characters


_CLOSING = re.compile(r"[\s)\]};,]*")
_BLANK_LINES = re.compile(r"\n(?:[ \t\r\f\v]*\n)+")


def add_rest_units(text: str, units: Iterable[Unit]) -> tuple[Unit, ...]:
    """Return the units in order, with units of the role `rest` for the text between them."""
    whole: list[Unit] = []
    at = 0
    for unit in sorted(units, key=lambda unit: unit.start):
        whole += _split_paragraphs(text, at, unit.start)
        whole.append(unit)
        at = unit.end
    return (*whole, *_split_paragraphs(text, at, len(text)))


def _split_paragraphs(text: str, start: int, end: int) -> Iterator[Unit]:
    """Yield the paragraphs between two offsets as units that may be joined with neighbours."""
    at = start
    for blank in [*_BLANK_LINES.finditer(text, start, end), None]:
        last = end if blank is None else blank.start()
        paragraph = text[at:last]
        stripped = paragraph.strip()
        if stripped:
            first = at + paragraph.index(stripped[0])
            first = max(text.rfind("\n", at, first) + 1, at)
            yield Unit(first, at + len(paragraph.rstrip()), "rest", alone=False)
        at = end if blank is None else blank.end()


def cover_text(text: str, units: Sequence[Unit], cuts: Sequence[int]) -> tuple[Unit, ...]:
    """Return units that cover a text, each with the ends of statements (`cuts`) within it."""
    whole = add_rest_units(text, _extend_to_closing_brackets(text, units))
    return tuple(replace(unit, cuts=select_cuts_within(cuts, unit)) for unit in whole)


def _extend_to_closing_brackets(text: str, units: Sequence[Unit]) -> Iterator[Unit]:
    """Yield units extended by closing brackets after them, so that no chunk is only a bracket."""
    for index, unit in enumerate(units):
        last = units[index + 1].start if index + 1 < len(units) else len(text)
        closing = _CLOSING.match(text, unit.end, last)
        if closing is None:
            yield unit
            continue
        end = closing.end()
        if end < last and "\n" in text[unit.end : end]:
            end = text.rindex("\n", unit.end, end)
        elif end < last:
            end = unit.end
        yield replace(unit, end=unit.end + len(text[unit.end : end].rstrip()))


def select_cuts_within(cuts: Sequence[int], unit: Unit) -> tuple[int, ...]:
    """Return the offsets among the ascending `cuts` that lie inside a unit."""
    return tuple(cuts[bisect_right(cuts, unit.start) : bisect_left(cuts, unit.end)])


def find_first_comment(node: Node) -> Node:
    """Return the first of the comments directly above a node; without comments, the node."""
    first = node
    before = node.prev_sibling
    while before is not None and is_comment(before):
        above = before.prev_sibling
        if before.end_point.row + 1 < first.start_point.row:
            break
        # A comment at the end of a line belongs to that line.
        if above is not None and above.end_point.row == before.start_point.row:
            break
        first, before = before, above
    return first


def find_end_with_comment(tree: SyntaxTree, node: Node) -> int:
    """Return the end of a node, including a comma and comments that follow on the same line."""
    last, following = node, node.next_sibling
    if following is not None and following.type == ",":
        last, following = following, following.next_sibling
    while following is not None and is_comment(following):
        if following.start_point.row != last.end_point.row:
            break
        last, following = following, following.next_sibling
    return tree.end(last)
