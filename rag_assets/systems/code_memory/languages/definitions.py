"""The units, facts and notes of a file, read with the grammar of its language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.grammar import (
    Binding,
    BindingScope,
    CodeDefinition,
    LanguageGrammar,
    PlacedDefinition,
    ResolvedName,
    find_definitions,
)
from rag_assets.systems.code_memory.languages.tree import (
    Node,
    SyntaxTree,
    cover_text,
    get_syntax_tree,
)
from rag_assets.systems.code_memory.symbols.model import CodeText, Unit, sort_facts

MAX_WHOLE_TYPE_CHARACTERS: Final = 6_000
"""Maximum characters of a type that is kept whole; a larger type is split into head and members."""

_MAX_SIGNATURE_CHARACTERS: Final = 300
_MAX_EVIDENCE_CHARACTERS: Final = 200
"""Maximum characters of a signature, and of the declaration or call that supports a fact."""
_SPACE = re.compile(r"\s+")


def _list_units(tree: SyntaxTree, definitions: Sequence[PlacedDefinition]) -> list[Unit]:
    """Return units of definitions (outer ones first), without overlaps and without other text."""
    head_ends = _find_head_ends(definitions)
    units: list[Unit] = []
    at = 0
    for index, placed in enumerate(definitions):
        is_inner = placed.parent >= 0 and placed.parent not in head_ends
        if not placed.first or is_inner or placed.start < at or placed.end <= placed.start:
            head_ends.pop(index, None)  # A type without a unit has no units of members either.
            continue
        end = head_ends.get(index, placed.end)
        units.append(_build_unit(tree, definitions, index, end))
        at = end
    return units


def _find_head_ends(definitions: Sequence[PlacedDefinition]) -> dict[int, int]:
    """Return where the head of each large type ends: the start of its first member.

    The keys are indexes in `definitions`. A type is large if it has more than
    MAX_WHOLE_TYPE_CHARACTERS.
    """
    ends: dict[int, int] = {}
    for placed in definitions:
        outer = placed.parent
        if outer < 0 or outer in ends:
            continue
        if definitions[outer].end - definitions[outer].start > MAX_WHOLE_TYPE_CHARACTERS:
            ends[outer] = placed.start
    return ends


def _build_unit(
    tree: SyntaxTree, definitions: Sequence[PlacedDefinition], index: int, end: int
) -> Unit:
    placed = definitions[index]
    definition = placed.definition
    symbol = definition.symbol
    if not symbol:  # A group is named after its first definition.
        inner = definitions[index + 1] if index + 1 < len(definitions) else None
        symbol = inner.definition.symbol if inner is not None and inner.parent == index else ""
    end = placed.start + len(tree.text[placed.start : end].rstrip())
    signature = _read_signature(tree, definition)
    return Unit(placed.start, end, definition.role, symbol, signature, definition.alone)


def _read_signature(tree: SyntaxTree, definition: CodeDefinition) -> str:
    """Return the declaration without its body, in one line."""
    start, last = _get_declaration_span(tree, definition)
    line = _SPACE.sub(
        " ", tree.text[start : min(last, start + 4 * _MAX_SIGNATURE_CHARACTERS)]
    ).strip()
    line = line[:_MAX_SIGNATURE_CHARACTERS].rstrip()
    for mark in (";", "{", "(", "=>", "="):
        line = line.removesuffix(mark).rstrip()
    return line


def _get_declaration_span(tree: SyntaxTree, definition: CodeDefinition) -> tuple[int, int]:
    """Return the offsets of a declaration: its start, and the start of its body or its end."""
    start, body = tree.start(definition.node), definition.body
    if body is not None and tree.start(body) > start:
        return start, tree.start(body)
    return start, tree.end(definition.node)


_SEPARATOR_AFTER = re.compile(r"[ \t]{0,80}[,;]")


class _FileWalk:
    """A walk that visits each node of a file once and collects facts and statement ends.

    Attributes:
        facts: the facts found so far.
        cuts: offsets after which a statement ends; ascending and unique after `run`.
        errors: number of spans that could not be parsed, and their total size in bytes.
    """

    def __init__(self, grammar: LanguageGrammar, definitions: Sequence[PlacedDefinition]) -> None:
        self.facts: list[Fact] = []
        self.cuts: list[int] = []
        self.errors = (0, 0)
        self._grammar = grammar
        self._tree = grammar.tree
        every = [placed.definition for placed in definitions]
        self._by_node = {definition.node.id: definition for definition in reversed(every)}
        self._symbols = {definition.symbol for definition in every}
        self._parents = {
            definition.type: definition.extends
            for definition in every
            if definition.type and definition.extends
        }
        self._fields: dict[str, list[tuple[str, str]]] = {}
        for definition in every:  # A type may be declared in several places, as with extensions.
            self._fields.setdefault(definition.type, []).extend(definition.fields)
        self._scopes = [BindingScope(names=_build_top_level_bindings(grammar, definitions))]
        for node in self._tree.root.named_children:  # A name may be used before its import.
            for _, bound in grammar.iter_imports(node):
                self._scopes[0].names.update(bound)

    def run(self) -> _FileWalk:
        """Walk the whole tree, and return this object with the results."""
        pending: list[Node | BindingScope] = [self._tree.root]
        broken = 0  # The byte after the last part that could not be parsed.
        while pending:
            node = pending.pop()
            if isinstance(node, BindingScope):
                self._scopes.pop()
                continue
            if node.type == "ERROR" and node.start_byte >= broken:
                broken = node.end_byte
                self.errors = (self.errors[0] + 1, self.errors[1] + broken - node.start_byte)
            scope = self._enter_scope(node)
            if scope is not None:
                pending.append(scope)
            self._read_node(node)
            children = node.named_children
            if node.type in self._grammar.lists:
                self.cuts.extend(self._iter_statement_ends(children))
            pending.extend(reversed(children))
        self.cuts = sorted(set(self.cuts))
        return self

    def _iter_statement_ends(self, children: Sequence[Node]) -> Iterator[int]:
        for child in children:
            end = self._tree.end(child)
            after = _SEPARATOR_AFTER.match(self._tree.text, end)
            yield end if after is None else after.end()

    def _enter_scope(self, node: Node) -> BindingScope | None:
        definition = self._by_node.get(node.id)
        if definition is None and node.type not in self._grammar.scopes:
            return None
        outer = self._scopes[-1]
        scope = BindingScope(outer.symbol, outer.type, fields=outer.fields)
        self._scopes.append(scope)
        if definition is not None:
            scope.symbol = definition.symbol or outer.symbol
            if not _is_callable(definition):
                scope.names = outer.names
            if definition.type and definition.type != outer.type:
                scope.type, scope.fields = (
                    definition.type,
                    self._build_field_bindings(definition.type),
                )
            for name, type_ in (*definition.parameters, *definition.locals):
                scope.names[name] = self._bind_to_type(type_)
        return scope

    def _build_field_bindings(self, symbol: str) -> dict[str, Binding | None]:
        return {name: self._bind_to_type(type_) for name, type_ in self._fields.get(symbol, ())}

    def _read_node(self, node: Node) -> None:
        scope = self._scopes[-1]
        for fact, bound in self._grammar.iter_imports(node):
            self.facts.append(fact)
            scope.names.update(bound)
        for name, type_ in self._grammar.iter_bound_names(node):
            if scope.names is not self._scopes[0].names or type_:
                scope.names[name] = self._bind_to_type(type_)
        called = self._grammar.get_call_chain(node)
        if called is not None:
            self._add_call(node, called)
        self.facts.extend(self._grammar.iter_extra_facts(node, scope))

    def _add_call(self, node: Node, chain: list[str]) -> None:
        target = self._resolve_target(chain)
        if target is None or not target.name:
            return
        symbol = self._scopes[-1].symbol
        for name in (target, *self._iter_inherited_methods(chain, target)):
            self.facts.append(
                self._tree.build_fact(
                    "calls", node, symbol, name.build_fact_values(), _MAX_EVIDENCE_CHARACTERS
                )
            )

    def _iter_inherited_methods(
        self, chain: list[str], target: ResolvedName
    ) -> Iterator[ResolvedName]:
        """Yield inherited methods that `this.method()` may call; none if the type defines it."""
        grammar = self._grammar
        if len(chain) != 2 or chain[0] not in grammar.own or target.name in self._symbols:  # noqa: PLR2004
            return
        for parent_name in self._parents.get(self._scopes[-1].type, ()):
            above = self.resolve(parent_name)
            if above.name:
                yield ResolvedName(f"{above.name}{grammar.separator}{chain[1]}", above.module)

    def _resolve_target(self, chain: list[str]) -> ResolvedName | None:
        grammar, scope = self._grammar, self._scopes[-1]
        if len(chain) > 1 and chain[0] in grammar.own | grammar.own_types:
            if not scope.type:
                return None
            if len(chain) == 2:  # noqa: PLR2004 - the receiver and its method
                return ResolvedName(scope.type + grammar.separator + chain[1])
            return self._resolve_members(scope.fields.get(chain[1]), chain[2:])
        if chain[0] in grammar.own_types:
            return ResolvedName(scope.type) if scope.type else None
        binding = self.find_binding(chain[0])
        if grammar.implicit and len(chain) > 1 and not self._is_bound(chain[0]):
            binding = scope.fields.get(chain[0])
        own = scope.type + grammar.separator + chain[0]
        if binding is None and len(chain) == 1 and grammar.implicit and own in self._symbols:
            return ResolvedName(own)
        if grammar.package_wide and len(chain) == 1 and not self._is_bound(chain[0]):
            qualified = grammar.qualify_in_package(chain[0])
            binding = Binding(ResolvedName(qualified)) if qualified != chain[0] else None
        elif binding is None and grammar.is_type(chain[0]):
            binding = Binding(ResolvedName(chain[0]))
        return self._resolve_members(binding, chain[1:])

    def _resolve_members(
        self, binding: Binding | None, names: Sequence[str]
    ) -> ResolvedName | None:
        if binding is None:
            return None
        target = binding.target
        if binding.value and len(names) == 2 and not target.module:  # noqa: PLR2004 - x.field.m()
            return self._resolve_members(
                self._build_field_bindings(target.name).get(names[0]), names[1:]
            )
        if binding.value and len(names) != 1:
            return None
        parts = [target.name, *names] if target.name else list(names)
        return ResolvedName(self._grammar.separator.join(parts), target.module)

    def find_binding(self, name: str) -> Binding | None:
        """Return the binding of a name at this position; None if it is unbound or hidden."""
        for scope in reversed(self._scopes):
            if name in scope.names:
                return scope.names[name]
        return None

    def _is_bound(self, name: str) -> bool:
        """Return whether a scope around this position binds a name, even to an unknown target."""
        return any(name in scope.names for scope in self._scopes)

    def _bind_to_type(self, written_type: str) -> Binding | None:
        name = self._grammar.get_type_name(written_type)
        if not name:
            return None
        head = name.split(self._grammar.separator, 1)[0]
        if self._grammar.imports_all and self.find_binding(head) is None:
            return None
        return Binding(self.resolve(name), value=True)

    def resolve(self, name: str) -> ResolvedName:
        """Return the target of a name as written, qualified as far as this file's text allows."""
        head, *others = name.split(self._grammar.separator)
        binding = self.find_binding(head)
        if binding is None or binding.value:
            return ResolvedName(name if others else self._grammar.qualify_in_package(name))
        return self._resolve_members(binding, others) or ResolvedName(name)


def _build_top_level_bindings(
    grammar: LanguageGrammar, definitions: Sequence[PlacedDefinition]
) -> dict[str, Binding | None]:
    """Return bindings for the functions and types that the file defines at its top level."""
    bindings: dict[str, Binding | None] = {}
    for placed in definitions:
        outer = placed.parent
        definition = placed.definition
        is_top_level = outer < 0 or not definitions[outer].definition.symbol
        if definition.symbol and _is_callable(definition) and is_top_level:
            simple = definition.symbol.rsplit(grammar.separator, 1)[-1]
            if definition.what != "method":
                bindings[simple] = Binding(ResolvedName(definition.symbol))
    return bindings


def _is_callable(definition: CodeDefinition) -> bool:
    """Return whether a definition is a type or a function, so that calls can name it."""
    return definition.role in {"class", "type", "function"}


_BROKEN_SHARE: Final = 0.5
"""Share of unparsable text above which the text is cut at blank lines instead."""

MAX_TEXT_CHARACTERS: Final = 4_000_000
"""Maximum characters of a text to parse; dense code of that length takes 15 seconds."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading a text with a grammar, without units for text outside definitions.

    Attributes:
        cuts: offsets after which a statement ends.
    """

    units: tuple[Unit, ...] = ()
    facts: tuple[Fact, ...] = ()
    cuts: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def read_code(text: str, grammar: type[LanguageGrammar]) -> CodeText:
    """Return the units and facts of a file."""
    reading = read_definitions(text, grammar)
    units = cover_text(text, reading.units, reading.cuts)
    return CodeText(units, reading.facts, reading.notes)


def read_definitions(text: str, grammar: type[LanguageGrammar]) -> Reading:
    """Return the definitions, facts and statement ends in the text of a file or of a part of it."""
    if len(text) > MAX_TEXT_CHARACTERS:
        note = f"the text has {len(text)} characters, more than the {grammar.language} parser reads"
        return Reading(notes=(f"{note}: cut at blank lines",))
    tree = get_syntax_tree(text, grammar.module, grammar.function)
    if tree.gave_up:
        note = f"the {grammar.language} parser stopped at its time limit ({len(text)} characters)"
        return Reading(notes=(f"{note}: cut at blank lines",))
    file_grammar = grammar(tree)
    definitions = find_definitions(file_grammar)
    walk = _FileWalk(file_grammar, definitions).run()
    places, size = walk.errors
    notes: tuple[str, ...] = ()
    if places:
        note = f"{places} places ({size} bytes in total) could not be parsed as {grammar.language}"
        if size > _BROKEN_SHARE * max(1, len(text.strip())):
            return Reading(notes=(f"{note}: cut at blank lines",))
        notes = (note,)
    facts = sort_facts([*walk.facts, *_iter_declaration_facts(tree, walk, definitions)])
    return Reading(tuple(_list_units(tree, definitions)), facts, tuple(walk.cuts), notes)


def _iter_declaration_facts(
    tree: SyntaxTree, walk: _FileWalk, definitions: Sequence[PlacedDefinition]
) -> Iterator[Fact]:
    for placed in definitions:
        definition = placed.definition
        if not definition.symbol:
            continue
        values = {"role": definition.role, "exported": definition.exported}
        yield tree.build_fact("declares", definition.node, definition.symbol, values)
        start, last = _get_declaration_span(tree, definition)
        end = start + len(tree.text[start : min(last, start + _MAX_EVIDENCE_CHARACTERS)].rstrip())
        for kind, names in (("extends", definition.extends), ("implements", definition.implements)):
            for name in names:
                target = walk.resolve(name)
                yield Fact(kind, start, end, definition.symbol, target.build_fact_values())
