"""Definitions and references in any language, found by the tag queries of tree-sitter grammars.

Belongs here: the languages of languages.toml, and the code that runs their queries. Does not belong
here: the units and facts that follow from tags (tagged_units), and the targets of names in a
repository, which depend on other files (retrieval.uses).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from time import thread_time
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, get_args

from rag_assets.systems.code_memory.languages.tree import SyntaxTree, get_syntax_tree

if TYPE_CHECKING:
    from tree_sitter import Node, Query

_PACK: Final = "tree_sitter_language_pack.bindings."
DEFAULT_WORD: Final = re.compile(r"\b[^\W\d]\w{1,119}")
"""Matches a name of at least two characters; of a longer name, the first 120.

Used for languages without their own pattern, and for texts without a tag query.
"""


@dataclass(frozen=True, slots=True)
class TagGrammar:
    """A tree-sitter grammar, and the tag query to run on its trees.

    Attributes:
        module, function: the Python module of the grammar, and its function that returns it.
        query: names of files in queries/, separated by spaces; together they form one query.
        where: pattern that a text must match to be read with this grammar; None for any text.
    """

    module: str
    function: str
    query: str
    where: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class TagLanguage:
    """A language with a tag query for its files.

    Attributes:
        grammars: grammars in order of preference: the first that parses a text without errors is
            used; if all report errors, the first.
        separators: characters that join the parts of a qualified name.
        family: name of a group of languages that use each other's definitions.
        ignored: matches words that the grammar does not know, and that are not names; None if the
            language has no such words.
        definition: matches the start of a definition, with its kind as the name of the group around
            its name; used where the grammar reports errors; None for other languages.
        is_interpreted: whether the language has its own reader for definitions and chunks.
        is_open_in_folder: whether files in one folder see each other's names without an import.
    """

    name: str
    grammars: tuple[TagGrammar, ...]
    separators: tuple[str, ...]
    family: str
    word: re.Pattern[str]
    ignored: re.Pattern[str] | None
    definition: re.Pattern[str] | None
    is_interpreted: bool
    is_open_in_folder: bool


@cache
def load_tag_languages() -> Mapping[str, TagLanguage]:
    """Return the languages of languages.toml, by name."""
    table = tomllib.loads(files(__package__).joinpath("languages.toml").read_text("utf-8"))
    return {name: _build_language(name, row) for name, row in table.items()}


def get_language_family(language: str) -> str:
    """Return the family of a language; a language without a tag query is its own family."""
    known = load_tag_languages().get(language)
    if known is None:
        return _FAMILIES.get(language, language)
    return known.family


_FAMILIES: Final[Mapping[str, str]] = {"svelte": "javascript", "vue": "javascript"}


@cache
def load_query(grammar: TagGrammar) -> Query:
    """Return the compiled query of a grammar."""
    from tree_sitter import Language, Query

    language = Language(getattr(import_module(grammar.module), grammar.function)())
    folder = files(__package__).joinpath("queries")
    names = grammar.query.split()
    text = "\n".join(folder.joinpath(f"{name}.scm").read_text("utf-8") for name in names)
    return Query(language, text)


def _build_language(name: str, row: Mapping[str, Any]) -> TagLanguage:
    return TagLanguage(
        name=name,
        grammars=tuple(_build_grammar(grammar) for grammar in row["grammars"]),
        separators=tuple(row.get("separators", ())),
        family=row.get("family", name),
        word=re.compile(row["word"]) if "word" in row else DEFAULT_WORD,
        ignored=re.compile(row["ignored"]) if "ignored" in row else None,
        definition=re.compile(row["definition"], re.MULTILINE) if "definition" in row else None,
        is_interpreted=row.get("interpreted", False),
        is_open_in_folder=row.get("own_folder", False),
    )


def _build_grammar(row: Mapping[str, str]) -> TagGrammar:
    module = row.get("module") or _PACK + row["grammar"]
    query = row.get("query") or row["grammar"]
    where = re.compile(row["where"]) if "where" in row else None
    return TagGrammar(module, row.get("function", "language"), query, where)


DefinitionKind: TypeAlias = Literal[
    "class", "function", "method", "type", "constant", "module", "signature"
]
"""Kinds of definitions; a signature declares a member without a body."""

ReferenceKind: TypeAlias = Literal["implementation", "call", "import", "type"]
"""Kinds of uses of a name; if several kinds apply to one use, the first in this order counts."""

SupertypeKind: TypeAlias = Literal["extends", "implements", "uses_trait"]
"""Kinds of relations between a type and a supertype that its head or body names."""

MAX_TEXT_CHARACTERS: Final = 1_000_000
"""Maximum characters of a text; the query is not run on a longer text."""
_MAX_QUERY_SECONDS: Final = 5.0
"""Processor time after which a query gives up.

Ordinary code takes a tenth of a second for 100,000 characters.
"""
_WINDOW_BYTES: Final = 1 << 15
"""Bytes of text that a query run covers; the elapsed time is checked after each run."""
_MAX_CHILDREN: Final = 4_000
_MAX_DEPTH: Final = 1_000
"""Limits of children and depth of nodes with errors; beyond them a query takes quadratic time."""
_MAX_WINDOW_DEPTH: Final = 2_000
"""Maximum number of levels above the first byte of a window; if there are more, the query gives up.

A query visits all these levels again in each window.
"""
_MIN_ERROR_LINES: Final = 3
"""Minimum number of lines of an error in which definitions are searched by their form."""
_OVERLAP_BYTES: Final = 1 << 11
"""Bytes by which neighbouring windows overlap, so that no match is lost at a window's edge."""
_MAX_STATES: Final = 1 << 9
"""Maximum number of unfinished matches of a query; further matches are dropped.

Each node is compared with all unfinished matches, and each level of nesting adds some.
"""
_MAX_NAME_CHARACTERS: Final = 120
_MAX_QUALIFIER_CHARACTERS: Final = 300
_MAX_RECEIVER_CHARACTERS: Final = 300
_MAX_IMPORT_CHARACTERS: Final = 2_000
"""Maximum characters; a longer name is dropped, a longer qualifier, receiver or import cut off."""
_RANKS: Final[Mapping[str, int]] = {kind: at for at, kind in enumerate(get_args(ReferenceKind))}
_CONTAINERS: Final = frozenset({"class", "module", "scope"})
_BODIES: Final = frozenset({"function", "method"})
_BRACKETS: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|<[^<>]*>|\"[^\"\n]*\"|'[^'\n]*'")
_TYPE_ARGUMENTS: Final = re.compile(r"[<\[(]")
_LAST_NAME: Final = re.compile(r"(\w+)[?!]?\W*$")
_INSTANCE_CALL: Final = re.compile(r"(?<=\w)(?:\.|::|->|#)(?:new|instance|getInstance|shared)\W*$")
"""Matches the end of an expression that creates or returns an instance of a class: `Order.new`."""
_SELF: Final = frozenset({"cls", "me", "parent", "self", "static", "super", "this"})
_IMPORT_WORDS: Final = frozenset(
    {"alias", "as", "crate", "do", "end", "export", "exposing", "from", "import", "include"}
    | {"library", "load", "open", "package", "pub", "qualified", "refer", "require", "self"}
    | {"require_relative", "source", "static", "super", "use", "using", "with"}
)


class TagDefinition(NamedTuple):
    """A definition in a text.

    Attributes:
        name: its name, qualified by the definitions around it; the parts are joined by `::`.
        line, line_end: first and last line, counted from 1.
        is_local: whether it lies in the body of a function.
    """

    kind: DefinitionKind
    name: str
    start: int
    end: int
    line: int
    line_end: int
    is_local: bool


class TagReference(NamedTuple):
    """A use of a name in a text.

    Attributes:
        name: the last part of the name, without qualifiers.
        receiver: the last name of the expression before the dot; `self` for the object itself, ""
            if absent.
    """

    kind: ReferenceKind
    name: str
    line: int
    receiver: str = ""


class TagSupertype(NamedTuple):
    """A type that the innermost type around it extends, implements or includes.

    Attributes:
        name: its name as written, without type arguments; the parts are joined by `::`.
    """

    kind: SupertypeKind
    name: str
    start: int
    end: int


class Tags(NamedTuple):
    """The result of a tag query on a text.

    Attributes:
        definitions: in order, outer definitions before inner definitions.
        note: why the text was not read; "" if it was read.
    """

    definitions: tuple[TagDefinition, ...] = ()
    references: tuple[TagReference, ...] = ()
    supertypes: tuple[TagSupertype, ...] = ()
    comments: tuple[tuple[int, int], ...] = ()
    note: str = ""


class _FoundDefinition(NamedTuple):
    """A definition as a query captures it, with the offsets of its node and of its name."""

    start: int
    end: int
    line: int
    line_end: int
    name_start: int
    name_end: int
    kind: str
    name: str


def read_tags(text: str, language: TagLanguage) -> Tags:
    """Return the definitions and references in a text.

    Args:
        text: the text of a file; parts of it that cannot be parsed are left out.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        return Tags(
            note=f"the text has {len(text)} characters, more than a query reads"
            f" ({MAX_TEXT_CHARACTERS})"
        )
    tree, grammar = _parse_with_best_grammar(text, language)
    if tree.gave_up:
        return Tags(
            note=f"the {language.name} parser stopped at its time limit ({len(text)} characters)"
        )
    matches = None if _is_shapeless(tree.root) else _run_query(tree, grammar)
    if matches is None:
        return Tags(note=f"the {language.name} query stopped at its limit ({len(text)} characters)")
    found_definitions: dict[int, _FoundDefinition] = {}
    used: dict[int, tuple[int, TagReference]] = {}
    supertypes: dict[int, TagSupertype] = {}
    comments: list[tuple[int, int]] = []
    for captures in matches:
        comments += ((tree.start(node), tree.end(node)) for node in captures.get("comment", ()))
        for capture, nodes in captures.items():
            role, _, kind = capture.partition(".")
            if role in {"scope", "definition"}:
                definition = _read_definition(tree, nodes[0], captures, kind or role, language)
                if definition is not None:
                    found_definitions.setdefault(definition.name_start, definition)
            elif role == "reference":
                _add_references(used, _read_references(tree, nodes[0], captures, kind))
            elif role == "supertype":
                read = (_read_supertype(tree, node, kind, language) for node in nodes)
                supertypes |= {supertype.start: supertype for supertype in read if supertype.name}
    found_definitions |= _find_definitions_in_errors(tree, language, found_definitions)
    definitions = _qualify_definitions(found_definitions.values())
    name_spans = sorted(
        (found_definition.name_start, found_definition.name_end)
        for found_definition in found_definitions.values()
        if found_definition.kind != "scope"
    )
    return Tags(
        definitions,
        tuple(_drop_definition_names(used, name_spans)),
        tuple(supertypes[at] for at in sorted(supertypes)),
        tuple(sorted(comments)),
    )


def _parse_with_best_grammar(text: str, language: TagLanguage) -> tuple[SyntaxTree, TagGrammar]:
    """Return the tree of the first grammar that parses a text without errors, and that grammar.

    If all of them report errors, return the first.
    """
    if language.ignored is not None:
        text = language.ignored.sub(lambda match: " " * len(match[0]), text)
    first: tuple[SyntaxTree, TagGrammar] | None = None
    for grammar in language.grammars:
        if grammar.where is not None and grammar.where.search(text) is None:
            continue
        tree = get_syntax_tree(text, grammar.module, grammar.function)
        if first is None:
            first = tree, grammar
        if not tree.has_errors:
            return tree, grammar
    if first is None:
        raise ValueError(f"no grammar of {language.name} fits this text: add one without `where`")
    return first


def _is_shapeless(root: Node) -> bool:
    """Return whether a tree with errors is too wide or too deep to be queried."""
    pending = [(root, 0)] if root.has_error else []
    while pending:
        node, depth = pending.pop()
        if node.child_count > _MAX_CHILDREN or depth > _MAX_DEPTH:
            return True
        pending += ((child, depth + 1) for child in node.children if child.has_error)
    return False


def _run_query(tree: SyntaxTree, grammar: TagGrammar) -> list[dict[str, list[Node]]] | None:
    """Return the captures of each match; None if the tree is too deep or the query takes too long.

    The query runs on one window of the text after another, and the time is checked after each. A
    progress callback would be simpler, but makes cursors of tree-sitter 0.26 crash.
    """
    from tree_sitter import QueryCursor

    cursor = QueryCursor(load_query(grammar), match_limit=_MAX_STATES)
    last = thread_time() + _MAX_QUERY_SECONDS
    matches: list[dict[str, list[Node]]] = []
    size = tree.root.end_byte
    for start in range(0, max(size, 1), _WINDOW_BYTES):
        if _compute_depth(tree.root, start) > _MAX_WINDOW_DEPTH:
            return None
        cursor.set_byte_range(start, min(start + _WINDOW_BYTES + _OVERLAP_BYTES, size))
        matches += (captures for _, captures in cursor.matches(tree.root))
        if thread_time() > last:
            return None
    return matches


def _compute_depth(root: Node, byte: int) -> int:
    """Return the number of nodes that contain a byte."""
    cursor = root.walk()
    depth = 0
    while cursor.goto_first_child_for_byte(byte) is not None:
        depth += 1
    return depth


def read_other_tags(text: str) -> Tags:
    """Return the definitions in a text in any other language, by the form of their lines."""
    if len(text) > MAX_TEXT_CHARACTERS:
        return Tags()
    found = _find_definitions_by_form(text, _load_common_definition(), [(0, len(text))], set())
    return Tags(_qualify_definitions(found.values()))


@cache
def _load_common_definition() -> re.Pattern[str]:
    """Return the pattern of definitions in languages that no query reads."""
    text = files(__package__).joinpath("common_definition.txt").read_text("utf-8")
    return re.compile(text, re.MULTILINE | re.VERBOSE)


def _find_definitions_in_errors(
    tree: SyntaxTree, language: TagLanguage, known: Mapping[int, _FoundDefinition]
) -> dict[int, _FoundDefinition]:
    """Return the definitions in lines that the grammar could not read, by offset of their names."""
    if language.definition is None or not tree.root.has_error:
        return {}
    known_lines = {definition.line for definition in known.values()}
    errors = _list_large_errors(tree)
    return _find_definitions_by_form(tree.text, language.definition, errors, known_lines)


def _find_definitions_by_form(
    text: str,
    pattern: re.Pattern[str],
    spans: Sequence[tuple[int, int]],
    known_lines: Collection[int],
) -> dict[int, _FoundDefinition]:
    """Return the definitions in parts of a text, by offset of their names.

    Each is recognized by the form of its first line, and ends before the next one.

    Args:
        pattern: matches the start of a definition, with its kind as the name of the group around
            its name; a number after the kind, as in `class_2`, distinguishes groups.
        known_lines: lines whose definitions are known.
    """
    definitions: dict[int, _FoundDefinition] = {}
    line, counted = 1, 0
    for start, end in spans:
        line_start = text.rfind("\n", 0, start) + 1
        matches = [*pattern.finditer(text, max(line_start, counted), end)]
        ends = [*(match.start() for match in matches), end][1:]
        for match, last in zip(matches, ends, strict=True):
            group, name = next((k, v) for k, v in match.groupdict().items() if v)
            place = match.start(group), match.end(group)
            line += text.count("\n", counted, place[0])
            counted = place[0]
            if line not in known_lines and len(name) <= _MAX_NAME_CHARACTERS:
                body = text[match.start() : last].rstrip()
                lines = line, line + text.count("\n", place[0], match.start() + len(body))
                kind = group.partition("_")[0]
                definitions[place[0]] = _FoundDefinition(
                    match.start(), match.start() + len(body), *lines, *place, kind, name
                )
    return definitions


def _list_large_errors(tree: SyntaxTree) -> list[tuple[int, int]]:
    """Return the places of the outermost errors that span several lines."""
    errors: list[tuple[int, int]] = []
    pending = [tree.root]
    while pending:
        node = pending.pop()
        if node.type == "ERROR" and node.end_point.row - node.start_point.row >= _MIN_ERROR_LINES:
            errors.append((tree.start(node), tree.end(node)))
        elif node.has_error:
            pending += reversed(node.children)
    return errors


def _read_definition(
    tree: SyntaxTree,
    node: Node,
    captures: Mapping[str, Sequence[Node]],
    kind: str,
    language: TagLanguage,
) -> _FoundDefinition | None:
    name_node = captures["name"][0] if captures.get("name") else None
    if name_node is None or not (
        name := _normalize_name(_get_end_of_text(tree, name_node), language)
    ):
        return None
    if owner := captures.get("owner"):
        name = f"{_get_end_of_text(tree, owner[0])[:_MAX_NAME_CHARACTERS]}::{name}"
    last = (captures.get("end") or [node])[-1]
    return _FoundDefinition(
        *(tree.start(node), tree.end(last), node.start_point.row + 1, _get_last_line_number(last)),
        *(tree.start(name_node), tree.end(name_node), kind, name),
    )


def _get_last_line_number(node: Node) -> int:
    """Return the number of a node's last line, counted from 1, without its final newline."""
    end = node.end_point
    return end.row if end.column == 0 and end.row > node.start_point.row else end.row + 1


def _normalize_name(written_name: str, language: TagLanguage) -> str:
    """Return a name with `::` between its parts; "" if the text is not a name."""
    name = "".join(written_name.split()).strip("\"':`")
    if language.separators:
        marks = "|".join(map(re.escape, ("::", *language.separators)))
        name = "::".join(part for part in re.split(marks, name) if part) or name
    return name if 0 < len(name) <= _MAX_NAME_CHARACTERS and "|" not in name else ""


def _read_references(
    tree: SyntaxTree, node: Node, captures: Mapping[str, Sequence[Node]], kind: str
) -> Iterator[tuple[int, TagReference]]:
    """Yield the references in a match, each with the offset of its name."""
    reference_kind: ReferenceKind = kind  # type: ignore[assignment]
    receivers = captures.get("receiver", ())
    receiver = _get_receiver_name(_get_end_of_text(tree, receivers[-1])) if receivers else ""
    for name_node in captures.get("name", ()):
        name = (
            _get_end_of_text(tree, name_node).strip("\"':`").rpartition("::")[2].rpartition("\\")[2]
        )
        if 0 < len(name) <= _MAX_NAME_CHARACTERS and not any(
            character in name for character in "|\n "
        ):
            line = name_node.start_point.row + 1
            yield tree.start(name_node), TagReference(reference_kind, name, line, receiver)
    if reference_kind == "import" and not captures.get("name"):
        start = tree.start(node)
        import_text = tree.text[start : min(tree.end(node), start + _MAX_IMPORT_CHARACTERS)]
        for match in re.finditer(r"[\w-]*\w", import_text):
            if len(match[0]) > 1 and match[0] not in _IMPORT_WORDS:
                line = node.start_point.row + 1 + import_text.count("\n", 0, match.start())
                yield start + match.start(), TagReference(reference_kind, match[0], line)


def _read_supertype(tree: SyntaxTree, node: Node, kind: str, language: TagLanguage) -> TagSupertype:
    supertype_kind: SupertypeKind = kind  # type: ignore[assignment]
    start, end = tree.start(node), tree.end(node)
    written = _TYPE_ARGUMENTS.split(tree.text[start : min(end, start + _MAX_RECEIVER_CHARACTERS)])[
        0
    ]
    return TagSupertype(supertype_kind, _normalize_name(written, language), start, end)


def _get_end_of_text(tree: SyntaxTree, node: Node) -> str:
    """Return the last characters of a node's text.

    Reading the whole text of each nested node would take quadratic time.
    """
    end = tree.end(node)
    return tree.text[max(tree.start(node), end - _MAX_RECEIVER_CHARACTERS) : end]


def _get_receiver_name(receiver: str) -> str:
    """Return the last name in an expression: `AccessTokens` for `store.AccessTokens()`."""
    plain = receiver
    for _ in range(5):
        shorter = _BRACKETS.sub("", plain)
        if shorter == plain:
            break
        plain = shorter
    plain = _INSTANCE_CALL.sub("", plain)
    match = _LAST_NAME.search(plain) or _LAST_NAME.search(receiver)
    if match is None:
        return ""
    return "self" if match[1] in _SELF else match[1][:_MAX_NAME_CHARACTERS]


def _add_references(
    used: dict[int, tuple[int, TagReference]], references: Iterable[tuple[int, TagReference]]
) -> None:
    """Add references; of two references at the same offset, keep the more precise one."""
    for at, reference in references:
        rank = _RANKS[reference.kind]
        known = used.get(at)
        if known is None or (rank, not reference.receiver) < (known[0], not known[1].receiver):
            used[at] = rank, reference


def _drop_definition_names(
    used: Mapping[int, tuple[int, TagReference]], name_spans: Sequence[tuple[int, int]]
) -> Iterator[TagReference]:
    """Yield, in order, the references that are not part of a definition's name."""
    names = iter(name_spans)
    current = next(names, None)
    for at in sorted(used):
        while current is not None and current[1] <= at:
            current = next(names, None)
        if current is None or at < current[0]:
            yield used[at][1]


class _EnclosingDefinitions(NamedTuple):
    """The definitions that contain a definition.

    Attributes:
        qualifier: name of the innermost definition that qualifies names; "" if absent.
        in_type: whether any of them is a type.
    """

    end: int
    qualifier: str = ""
    is_local: bool = False
    in_type: bool = False


def _qualify_definitions(definitions: Iterable[_FoundDefinition]) -> tuple[TagDefinition, ...]:
    """Return definitions with their names qualified by the definitions around them."""
    qualified_definitions: list[TagDefinition] = []
    above: list[_EnclosingDefinitions] = []
    for definition in sorted(
        definitions,
        key=lambda found_definition: (
            found_definition.start,
            -found_definition.end,
            found_definition.name_start,
        ),
    ):
        while above and above[-1].end <= definition.start:
            above.pop()
        around = above[-1] if above else _EnclosingDefinitions(0)
        name = definition.name
        if around.qualifier and not name.startswith(f"{around.qualifier}::"):
            name = f"{around.qualifier}::{name}"
        above.append(
            _EnclosingDefinitions(
                min(definition.end, around.end) if above else definition.end,
                name[:_MAX_QUALIFIER_CHARACTERS]
                if definition.kind in _CONTAINERS
                else around.qualifier,
                around.is_local or definition.kind in _BODIES,
                around.in_type or definition.kind in {"class", "scope"},
            )
        )
        if definition.kind == "scope":
            continue
        kind: DefinitionKind = definition.kind  # type: ignore[assignment]
        if kind == "function" and (around.in_type or "::" in definition.name):
            kind = "method"
        qualified_definitions.append(TagDefinition(kind, name, *definition[:4], around.is_local))
    return tuple(qualified_definitions)
