"""Walks a tree once, and finds the ends of statements, imports and calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.definitions.model import (
    Binding,
    Definition,
    Grammar,
    Name,
    Placed,
    Scope,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_AFTER = re.compile(r"[ \t]{0,80}[,;]")


class Walk:
    """Walks a file once.

    Attributes:
        facts: the facts found so far.
        cuts: offsets after which a statement ends; ascending and unique at the end.
        errors: number of places that could not be parsed, and their size in bytes.

    Args:
        grammar: the grammar of the file's language.
        found: the definitions of the file.
    """

    def __init__(self, grammar: Grammar, found: Sequence[Placed]) -> None:
        self.facts: list[Fact] = []
        self.cuts: list[int] = []
        self.errors = (0, 0)
        self._grammar = grammar
        self._tree = grammar.tree
        self._at = {placed.definition.node.id: placed.definition for placed in found[::-1]}
        self._symbols = {placed.definition.symbol for placed in found}
        self._above = {
            placed.definition.type: placed.definition.extends
            for placed in found
            if placed.definition.type and placed.definition.extends
        }
        self._declared: dict[str, list[tuple[str, str]]] = {}
        for placed in found:  # A type may be declared in several places, as with extensions.
            self._declared.setdefault(placed.definition.type, []).extend(placed.definition.fields)
        self._scopes = [Scope(names=_own(grammar, found))]
        for node in self._tree.root.named_children:  # A name may be used before its import.
            for _, bound in grammar.imports(node):
                self._scopes[0].names.update(bound)

    def run(self) -> Walk:
        """Walk the whole tree."""
        todo: list[Node | Scope] = [self._tree.root]
        broken = 0  # The byte after the last part that could not be parsed.
        while todo:
            node = todo.pop()
            if isinstance(node, Scope):
                self._scopes.pop()
                continue
            if node.type == "ERROR" and node.start_byte >= broken:
                broken = node.end_byte
                self.errors = (self.errors[0] + 1, self.errors[1] + broken - node.start_byte)
            scope = self._enter(node)
            if scope is not None:
                todo.append(scope)
            self._read(node)
            children = node.named_children
            if node.type in self._grammar.lists:
                self.cuts.extend(self._ends(children))
            todo.extend(reversed(children))
        self.cuts = sorted(set(self.cuts))
        return self

    def _ends(self, children: Sequence[Node]) -> Iterator[int]:
        for child in children:
            end = self._tree.end(child)
            after = _AFTER.match(self._tree.text, end)
            yield end if after is None else after.end()

    def _enter(self, node: Node) -> Scope | None:
        definition = self._at.get(node.id)
        if definition is None and node.type not in self._grammar.scopes:
            return None
        outer = self._scopes[-1]
        scope = Scope(outer.symbol, outer.type, fields=outer.fields)
        self._scopes.append(scope)
        if definition is not None:
            scope.symbol = definition.symbol or outer.symbol
            if not callable_(definition):
                scope.names = outer.names
            if definition.type and definition.type != outer.type:
                scope.type, scope.fields = definition.type, self._fields(definition.type)
            for name, type_ in (*definition.parameters, *definition.locals):
                scope.names[name] = self._typed(type_)
        return scope

    def _fields(self, symbol: str) -> dict[str, Binding | None]:
        return {name: self._typed(type_) for name, type_ in self._declared.get(symbol, ())}

    def _read(self, node: Node) -> None:
        scope = self._scopes[-1]
        for fact, bound in self._grammar.imports(node):
            self.facts.append(fact)
            scope.names.update(bound)
        for name, type_ in self._grammar.declared(node):
            if scope.names is not self._scopes[0].names or type_:
                scope.names[name] = self._typed(type_)
        called = self._grammar.called(node)
        if called is not None:
            self._call(node, *called)
        self.facts.extend(self._grammar.stated(node, scope))

    def _call(self, node: Node, chain: list[str], makes: bool) -> None:
        target = self._target(chain)
        if target is None or not target.name:
            return
        start = self._tree.start(node)
        end = min(self._tree.end(node), start + 200)
        for one in (target, *self._inherited(chain, target)):
            values: dict[str, object] = dict(one.values())
            if makes:
                values["makes"] = True
            self.facts.append(Fact("calls", start, end, self._scopes[-1].symbol, values))

    def _inherited(self, chain: list[str], target: Name) -> Iterator[Name]:
        """Yield inherited methods that a call may refer to if the type itself lacks the method."""
        grammar = self._grammar
        if len(chain) != 2 or chain[0] not in grammar.own or target.name in self._symbols:  # noqa: PLR2004
            return
        for written in self._above.get(self._scopes[-1].type, ()):
            above = self.named(written)
            if above.name:
                yield Name(f"{above.name}{grammar.separator}{chain[1]}", above.module)

    def _target(self, chain: list[str]) -> Name | None:
        grammar, scope = self._grammar, self._scopes[-1]
        if len(chain) > 1 and chain[0] in grammar.own | grammar.own_types:
            if not scope.type:
                return None
            if len(chain) == 2:  # noqa: PLR2004 - the receiver and its method
                return Name(scope.type + grammar.separator + chain[1])
            return self._through(scope.fields.get(chain[1]), chain[2:])
        if chain[0] in grammar.own_types:
            return Name(scope.type) if scope.type else None
        binding = self.bound(chain[0])
        own = scope.type + grammar.separator + chain[0]
        if binding is None and len(chain) == 1 and grammar.implicit and own in self._symbols:
            return Name(own)
        if grammar.package_wide and len(chain) == 1 and not self._is_bound(chain[0]):
            beside = grammar.beside(chain[0])
            binding = Binding(Name(beside)) if beside != chain[0] else None
        elif binding is None and grammar.is_type(chain[0]):
            binding = Binding(Name(chain[0]))
        return self._through(binding, chain[1:])

    def _through(self, binding: Binding | None, names: Sequence[str]) -> Name | None:
        if binding is None:
            return None
        target = binding.target
        if binding.value and len(names) == 2 and not target.module:  # noqa: PLR2004 - x.field.m()
            return self._through(self._fields(target.name).get(names[0]), names[1:])
        if binding.value and len(names) != 1:
            return None
        parts = [target.name, *names] if target.name else list(names)
        return Name(self._grammar.separator.join(parts), target.module)

    def bound(self, name: str) -> Binding | None:
        """Return the binding of a name at this position; None if the file does not show it."""
        for scope in reversed(self._scopes):
            if name in scope.names:
                return scope.names[name]
        return None

    def _is_bound(self, name: str) -> bool:
        """Return whether the file binds a name, whether or not its target is known."""
        return any(name in scope.names for scope in self._scopes)

    def _typed(self, written: str) -> Binding | None:
        name = self._grammar.type_name(written)
        if not name:
            return None
        head = name.split(self._grammar.separator, 1)[0]
        if self._grammar.imports_all and self.bound(head) is None:
            return None
        return Binding(self.named(name), value=True)

    def named(self, name: str) -> Name:
        """Return a name as written, qualified as far as the file allows."""
        head, *others = name.split(self._grammar.separator)
        binding = self.bound(head)
        if binding is None or binding.value:
            return Name(name if others else self._grammar.beside(name))
        return self._through(binding, others) or Name(name)


def _own(grammar: Grammar, found: Sequence[Placed]) -> dict[str, Binding | None]:
    """Return the names that the file defines at its top level."""
    own: dict[str, Binding | None] = {}
    for placed in found:
        outer = placed.parent
        definition = placed.definition
        grouped = outer >= 0 and not found[outer].definition.symbol
        if definition.symbol and callable_(definition) and (outer < 0 or grouped):
            simple = definition.symbol.rsplit(grammar.separator, 1)[-1]
            if definition.what != "method":
                own[simple] = Binding(Name(definition.symbol))
    return own


def callable_(definition: Definition) -> bool:
    """Return whether a call of the definition's name, or of a member, shows what is called."""
    return definition.role in {"class", "type", "function"}
