"""Entries of settings files: the keys and items in JSON, YAML, TOML and INI, with their offsets.

JSON and TOML are read from syntax trees, YAML from the events of libyaml, and INI line by line.
Variables in values are not expanded. A damaged file yields the entries that could be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_assets.systems.code_memory.languages.tree import SyntaxTree

if TYPE_CHECKING:
    import yaml
    from tree_sitter import Node

ITEM: Final = "[]"
"""Represents a list item in a path."""

MAX_DEPTH: Final = 16
"""Maximum depth of entries; deeper keys are part of the entry that contains them."""

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettingsEntry:
    """A key with its value, or an item of a list.

    Attributes:
        path: the keys that lead to it and its own key, with ITEM for each list item.
        start, end: character offsets, half open.
        value: value of a scalar, without quotes; None for a table, a list or a YAML block scalar.
    """

    path: Path
    start: int
    end: int
    value: str | None


ReadEntries: TypeAlias = tuple[tuple[SettingsEntry, ...], bool]
"""The entries, outer entries before inner entries; and whether the whole text was read."""


_PARSE_SECONDS: Final = 3.0
"""Maximum parse time of one file; a usual file of 1 MiB takes a tenth of a second."""

_MAX_DAMAGED_TOKENS: Final = 100_000
"""Maximum number of tokens in a damaged part of a text; a longer part yields no entries."""


def _sort_entries(entries: list[SettingsEntry]) -> tuple[SettingsEntry, ...]:
    return tuple(sorted(entries, key=lambda entry: (entry.start, len(entry.path))))


_JSON_COMMENT: Final = r"//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?"
_BEYOND_JSON: Final = re.compile(
    rf"""(?P<kept>"(?:[^"\\\n]|\\.)*+"?|{_JSON_COMMENT})"""
    rf"|(?P<blank>,(?=(?:\s|{_JSON_COMMENT})*+[\]}}])|\{{%[^%\n]*+%\}}|\{{\#[^\#\n]*+\#\}})"
    r"|(?P<number>(?<!\w)(?:NaN|Infinity)(?!\w))"
    r"|(?P<key>(?<![\w$])[A-Za-z_$](?::[ \t]|[ \t]:))"
    r"|(?P<string>(?:\{\{[^{}\n]*+\}\})++|'(?:[^'\\\n]|\\.)*+'?"
    r"|(?<![\w$])[A-Za-z_$][\w$]++(?=\s*+:))"
)
"""Matches syntax outside strings that the JSON grammar lacks: JSON5, tsconfig files, templates."""


def read_json_entries(text: str) -> ReadEntries:
    """Return the entries of the first value of a JSON text.

    The text may have comments, trailing commas, keys without quotes, NaN, Infinity and templates.
    """
    tree = SyntaxTree(text, "tree_sitter_json", seconds=_PARSE_SECONDS)
    if tree.has_errors and not tree.gave_up:
        masked = _TEMPLATE_LINE.sub(lambda line: " " * len(line[0]), text)
        masked = _BEYOND_JSON.sub(_replace_with_json, masked)
        tree = SyntaxTree(masked, "tree_sitter_json", seconds=_PARSE_SECONDS)
        tree.text = text  # Each mask keeps the length of the text it replaces.
    values = [node for node in tree.root.named_children if node.type in {"object", "array"}]
    damaged = tree.root.type == "ERROR" or not values
    entries = list(_iter_tree_entries(tree, tree.root if damaged else values[0]))
    return _sort_entries(entries), not tree.has_errors


def _replace_with_json(match: re.Match[str]) -> str:
    """Return a replacement of the same length that is valid JSON."""
    matched_text = match[0]
    match match.lastgroup:
        case "blank":
            return " " * len(matched_text)
        case "number":
            return "1" * len(matched_text)
        case "key":
            return '"":'
        case "string" if len(matched_text) > 1 and not (matched_text[0] == "'" != matched_text[-1]):
            return f'"{"x" * (len(matched_text) - 2)}"'
    return matched_text


def read_toml_entries(text: str) -> ReadEntries:
    """Return the entries of a TOML text.

    A table is an entry with the path of its header; its keys are entries below it.
    """
    tree = SyntaxTree(text, "tree_sitter_toml", seconds=_PARSE_SECONDS)
    return _sort_entries(list(_iter_tree_entries(tree, tree.root))), not tree.has_errors


_TOML_KEYS: Final = frozenset({"bare_key", "quoted_key", "dotted_key"})
_TABLES: Final = frozenset({"table", "table_array_element"})
_CONTAINERS: Final = frozenset({"object", "array", "inline_table"})
_ESCAPE: Final = re.compile(r"\\([\"\\/])")


def _iter_tree_entries(tree: SyntaxTree, root: Node) -> Iterator[SettingsEntry]:
    """Yield the entries of the tables, pairs and items in a JSON or TOML tree."""
    pending: list[tuple[Node, Path]] = [(root, ())]
    while pending:
        node, path = pending.pop()
        if len(path) >= MAX_DEPTH:
            continue
        if node.type == "ERROR":
            children = _list_damaged_children(tree, node, path)
        else:
            children = [(child, path) for child in node.named_children if not child.is_missing]
        for child, at in children:
            if child.type in _TABLES:
                table = _read_table(tree, child)
                yield table
                pending.append((child, table.path))
                continue
            if child.type == "pair":
                entry_path, value = _read_pair(tree, child, at)
            elif node.type == "array" and child.type not in {"comment", "ERROR"}:
                entry_path, value = (*at, ITEM), child
            else:
                pending.append((child, at))
                continue
            if len(entry_path) > MAX_DEPTH:
                continue
            holds = value is not None and value.type in _CONTAINERS
            scalar = None if value is None or holds else unquote(tree.get_node_text(value))
            # A TOML pair node includes the comment after its value.
            end = tree.end(child if value is None else value)
            yield SettingsEntry(entry_path, tree.start(child), end, scalar)
            if holds and value is not None:
                pending.append((value, entry_path))


def _read_table(tree: SyntaxTree, node: Node) -> SettingsEntry:
    """Return the entry of a TOML table; the entry ends after the last value.

    Comments below that value belong to the next table.
    """
    key = next(child for child in node.named_children if child.type in _TOML_KEYS)
    ends = [child for child in node.children if child.type in {"pair", "]", "]]"}] or [key]
    last = ends[-1].named_children[-1] if ends[-1].type == "pair" else ends[-1]
    if last.type == "comment":
        last = last.prev_named_sibling or last
    return SettingsEntry(_read_toml_path(tree, key), tree.start(node), tree.end(last), None)


def _read_pair(tree: SyntaxTree, node: Node, base: Path) -> tuple[Path, Node | None]:
    """Return the path and the value of a `pair`; the value is None if it is damaged."""
    parts = [child for child in node.named_children if child.type != "comment"]
    at = next(at for at, part in enumerate(parts) if part.type != "ERROR")
    key, *values = parts[at : at + 2]
    is_whole = bool(values) and values[0].type != "ERROR" and not values[0].is_missing
    value = values[0] if is_whole else None
    if key.type in _TOML_KEYS:
        return (*base, *_read_toml_path(tree, key)), value
    token = tree.get_node_text(key)
    # The mask of an unquoted one-letter key includes its colon.
    name = unquote(token) if token[:1] in {'"', "'"} else token.rstrip(": \t")
    return (*base, name), value


def _read_toml_path(tree: SyntaxTree, key: Node) -> Path:
    """Return the parts of a dotted key `a.b.c`, which the grammar nests as `(a.b).c`."""
    parts: list[str] = []
    while key.type == "dotted_key":
        parts.append(unquote(tree.get_node_text(key.named_children[-1])))
        key = key.named_children[0]
    return (unquote(tree.get_node_text(key)), *reversed(parts))


def _list_damaged_children(tree: SyntaxTree, error: Node, base: Path) -> list[tuple[Node, Path]]:
    """Return the children of an ERROR node with their paths, reconstructed from brackets.

    The grammar reads an unclosed object as a sequence of tokens and pairs.
    """
    children: list[tuple[Node, Path]] = []
    if error.child_count > _MAX_DAMAGED_TOKENS:
        return children
    paths, name, outermost = [base], ITEM, True
    for child in error.children:
        if child.type in {"{", "["}:
            is_kept = not outermost and len(paths[-1]) < MAX_DEPTH
            paths.append((*paths[-1], name) if is_kept else paths[-1])
            name, outermost = ITEM, False
        elif child.type in {"}", "]"} and len(paths) > 1:
            paths.pop()
        elif child.type == "string":
            name = unquote(tree.get_node_text(child))
        elif child.type in {"pair", "object", "array"} and len(paths[-1]) < MAX_DEPTH:
            children.append((child, paths[-1] if child.type == "pair" else (*paths[-1], name)))
    return children


def unquote(token: str) -> str:
    """Return a string without its quotes, with escaped quotes and slashes unescaped."""
    for quote in ('"""', "'''", '"', "'"):
        if len(token) >= 2 * len(quote) and token.startswith(quote) and token.endswith(quote):
            inner = token[len(quote) : -len(quote)]
            return _ESCAPE.sub(r"\1", inner) if quote[0] == '"' else inner
    return token


class _EntryStack:
    """A stack of open entries; an entry is collected when its end is read."""

    def __init__(self) -> None:
        self.closed: list[SettingsEntry] = []
        self._open: list[tuple[int, SettingsEntry]] = []

    def get_innermost_level(self) -> int:
        """Return the level of the innermost open entry; -1 if none is open."""
        return self._open[-1][0] if self._open else -1

    def open(self, level: int, name: str, start: int) -> None:
        """Open an entry inside the innermost open entry."""
        above = self._open[-1][1].path if self._open else ()
        self._open.append((level, SettingsEntry((*above, name), start, start, None)))

    def set_value(self, value: str) -> None:
        """Set the scalar value of the innermost open entry."""
        if self._open:
            level, entry = self._open[-1]
            self._open[-1] = level, replace(entry, value=value)

    def close(self, level: int, end: int) -> None:
        """Close the open entries at this level and at deeper levels."""
        while self._open and self._open[-1][0] >= level:
            entry = self._open.pop()[1]
            if len(entry.path) <= MAX_DEPTH:
                self.closed.append(replace(entry, end=max(end, entry.start)))


_SECTION: Final = re.compile(r"[ \t]*+\[(?P<name>[^\]\n]{1,300})\]")
_KEY: Final = re.compile(
    r"(?P<indent>[ \t]*+)(?:export[ \t]++)?(?P<name>[^\s=:\[#;!][^=:\n]{0,300}?)[ \t]*+[=:]"
    r"[ \t]*+(?P<value>[^\n]*+)"
)


def read_ini_entries(text: str) -> ReadEntries:
    """Return the sections and keys of an INI, properties or .env file as entries.

    An indented line continues the value before it, as in Python's setup.cfg.
    """
    entries = _EntryStack()
    at, end, whole, in_section = 0, 0, True, False
    for line in text.splitlines(keepends=True):
        start, at = at, at + len(line)
        stripped = line.strip()
        if not stripped or stripped[0] in "#;!":
            continue
        if head := _SECTION.match(line):
            entries.close(0, end)
            entries.open(0, head["name"].strip(), start + line.index("["))
            in_section = True
        elif line[0] in " \t" and entries.get_innermost_level() == 1:
            entries.open(2, ITEM, start + line.index(stripped[0]))
            entries.set_value(stripped)
            entries.close(2, start + len(line.rstrip()))
        elif key := _KEY.match(line):
            entries.close(1, end)
            entries.open(1, key["name"], start + key.start("name"))
            entries.set_value(key["value"].strip().strip("\"'"))
        else:
            whole = whole and in_section
        end = start + len(line.rstrip())
    entries.close(0, end)
    return _sort_entries(entries.closed), whole


_MAX_YAML_DEPTH: Final = 200
"""Nesting depth at which reading stops; libyaml takes quadratic time for nested brackets."""
_MAX_YAML_RESTARTS: Final = 20
"""Maximum number of times that reading restarts after a damaged position in one file."""
_MAX_YAML_MENDS: Final = 20
"""Maximum number of damaged lines that are masked in one file to read the text around them."""
_MAX_YAML_REREAD_CHARACTERS: Final = 300_000
"""Maximum number of characters that are read again because lines were masked."""

_UNREADABLE: Final = re.compile(
    r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_TEMPLATE_LINE: Final = re.compile(r"(?m)^[ \t]*+(?:\{[{%#][^\n]*?[}%#]\}[ \t]*+)++\r?$")
_TEMPLATE: Final = re.compile(r"\{(?:\{[^{}\n]*+\}|%[^%\n]*+%|#[^#\n]*+#)\}")
_PROPERTIES: Final = re.compile(r"(?:[&!][^\s\[\]{},]*+\s++)*+")
_TOP_LEVEL: Final = re.compile(r"(?m)^(?=[^\s#}\]])")
_YAML_KEY: Final = re.compile(
    r"[ \t]*+(?:-[ \t]++)*+(?:[^\s#:][^\n:]*+(?::(?=\S)[^\n:]*+)*+:(?=\s|$)[ \t]*+)?"
)
_YAML_COMMENT: Final = re.compile(r"#[^\n]*+")


def read_yaml_entries(text: str) -> ReadEntries:
    """Return the entries of a YAML text with one or more documents.

    Template lines (Helm, Jinja) are skipped. A template within a line is replaced by a word, and so
    is the value of a damaged line. If the text still cannot be parsed, reading continues at the
    next line that is not indented.
    """
    masked = _UNREADABLE.sub(" ", text)
    masked = _TEMPLATE_LINE.sub(lambda line: " " * len(line[0]), masked)
    masked = _TEMPLATE.sub(lambda template: "x" * len(template[0]), masked)
    is_masked = masked != text
    entries: list[SettingsEntry] = []
    at, whole = int(text.startswith("\ufeff")), True
    restarts, mends, reread = 0, 0, 0
    while restarts < _MAX_YAML_RESTARTS:
        reader = _YamlEventReader(text, masked, at, is_masked=is_masked)
        damaged = reader.read()
        whole = whole and damaged is None
        if damaged is not None and mends < _MAX_YAML_MENDS:
            mends, reread = mends + 1, reread + damaged - at
            mended = (
                _mask_damage(masked, damaged) if reread <= _MAX_YAML_REREAD_CHARACTERS else masked
            )
            if mended != masked:
                masked = mended
                continue
        restarts += 1
        if damaged is not None and damaged <= at:
            damaged = at + 1
        following = None if damaged is None else _TOP_LEVEL.search(masked, damaged)
        at = len(text) if following is None else following.start()
        entries += [replace(e, end=min(e.end, at)) for e in reader.entries.closed if e.start < at]
        if following is None:
            break
    return _sort_entries(entries), whole


def _mask_damage(masked: str, damaged: int) -> str:
    """Return the text with the damaged value, or else the damaged line, masked in equal length."""
    if damaged >= len(masked):
        return masked
    start = masked.rfind("\n", 0, damaged) + 1
    end = masked.find("\n", damaged)
    end = len(masked) if end < 0 else end
    key = _YAML_KEY.match(masked, start, end)
    begin = key.end() if key else start
    comment = masked.find(" #", begin, end)
    value = masked[begin : end if comment < 0 else comment].rstrip()
    has_key = bool(masked[start:begin].strip())
    if has_key and damaged == start and masked[start] not in " \t":
        return masked  # Reading restarts here.
    if has_key and begin <= damaged and value:
        word = (" " if value[0] in "[{" else "x") * len(value)
        if word != value:
            return f"{masked[:begin]}{word}{masked[begin + len(value) :]}"
    return masked[:start] + " " * (end - start) + masked[end:]


class _YamlEventReader:
    """A reader of the YAML events of a text, from an offset to the end or a damaged position."""

    def __init__(self, text: str, masked: str, at: int, *, is_masked: bool) -> None:
        self.entries = _EntryStack()
        self._text, self._masked, self._base = text, masked, at
        self._end = at
        self._is_masked = is_masked
        # The next node in each open collection: "item", "key" or "value".
        self._open: list[str] = []

    def read(self) -> int | None:
        """Read the events; return the offset of a damaged position, or None at the end."""
        import yaml

        try:
            for event in yaml.parse(self._masked[self._base :], Loader=yaml.CSafeLoader):
                self._handle_event(event)
                if len(self._open) > _MAX_YAML_DEPTH:
                    return len(self._text)
        except yaml.MarkedYAMLError as error:
            is_tab = "tab" in (error.problem or "")
            unclosed = not is_tab and (
                isinstance(error, yaml.scanner.ScannerError) or "flow" in (error.context or "")
            )
            mark = error.context_mark if unclosed and error.context_mark else error.problem_mark
            return self._base + (mark.index if mark else 0)
        finally:
            self.entries.close(0, self._end)
        return None

    def _handle_event(self, event: yaml.Event) -> None:
        import yaml

        start, end = self._base + event.start_mark.index, self._base + event.end_mark.index
        if isinstance(event, yaml.NodeEvent):
            self._begin_node(event, start)
            if isinstance(event, yaml.CollectionStartEvent):
                self._open.append("item" if isinstance(event, yaml.SequenceStartEvent) else "key")
                self._end = max(self._end, start + 1) if event.flow_style else self._end
                return
            self._end = max(self._end, start + len(self._text[start:end].rstrip()))
            self._toggle_key()
        elif isinstance(event, yaml.CollectionEndEvent):
            self.entries.close(len(self._open), self._end)
            self._open.pop()
            # The end event of a block collection has no text; that of a flow collection is its
            # bracket.
            self._end = max(self._end, end if end > start else 0)
            self._toggle_key()

    def _begin_node(self, event: yaml.NodeEvent, start: int) -> None:
        """Open the entry that starts with this node, or set the scalar value of a key."""
        import yaml

        depth = len(self._open)
        expected = self._open[-1] if self._open else "value"
        is_collection = isinstance(event, yaml.CollectionStartEvent)
        if expected == "item":
            self.entries.close(depth, self._end)
            self.entries.open(depth, ITEM, self._find_dash(start))
        elif expected == "key":
            self.entries.close(depth, self._end)
            self.entries.open(depth, "?" if is_collection else self._read_scalar(event), start)
            return
        is_empty = event.end_mark.index == event.start_mark.index
        if not (is_collection or is_empty or getattr(event, "style", None) in {"|", ">"}):
            self.entries.set_value(self._read_scalar(event))

    def _find_dash(self, start: int) -> int:
        """Return the offset of the dash before a list item, or else of the item itself."""
        before = self._masked[self._end : start]
        if "#" in before:
            before = _YAML_COMMENT.sub(lambda comment: " " * len(comment[0]), before)
        dash = before.rfind("-")
        return start if dash < 0 else self._end + dash

    def _toggle_key(self) -> None:
        """Note that the innermost mapping now expects a value instead of a key, or vice versa."""
        if self._open and self._open[-1] != "item":
            self._open[-1] = "value" if self._open[-1] == "key" else "key"

    def _read_scalar(self, event: yaml.NodeEvent) -> str:
        """Return the value of a scalar; aliases and values with a template stay as written."""
        import yaml

        start, end = self._base + event.start_mark.index, self._base + event.end_mark.index
        written_text = self._text[start:end]
        is_mended = written_text != self._masked[start:end]
        if isinstance(event, yaml.ScalarEvent) and not (self._is_masked or is_mended):
            return str(event.value)
        properties = _PROPERTIES.match(written_text)
        return unquote(written_text[properties.end() if properties else 0 :])
