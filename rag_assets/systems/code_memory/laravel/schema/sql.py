"""SQL that creates and alters tables, read tolerantly, for MySQL, PostgreSQL and SQLite."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.tree import SyntaxTree

_ENDS_TYPE: Final = frozenset(
    [
        "NOT",
        "NULL",
        "DEFAULT",
        "PRIMARY",
        "UNIQUE",
        "REFERENCES",
        "AUTO_INCREMENT",
        "AUTOINCREMENT",
        "COMMENT",
        "CHECK",
        "COLLATE",
        "GENERATED",
        "AS",
        "CONSTRAINT",
        "AFTER",
        "FIRST",
        "ON",
        "CHARACTER",
        "CHARSET",
        "VIRTUAL",
        "STORED",
        "KEY",
        "UNSIGNED",
        "INVISIBLE",
        "IDENTITY",
    ]
)
_ACTIONS: Final = {"CASCADE": "cascade", "RESTRICT": "restrict"}


@dataclass(frozen=True, slots=True)
class SqlToken:
    """An SQL token.

    Attributes:
        kind: word, quoted, string or mark.
        text: the text as written.
        start, end: character offsets.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """Return a keyword in upper case; "" for text in quotation marks."""
        return self.text.upper() if self.kind in {"word", "mark"} else ""


def plain_name(tokens: list[SqlToken], at: int) -> tuple[str, int]:
    """Return the last part of a name such as `public`.`users`, and the index after it."""
    name = ""
    while at < len(tokens):
        token = tokens[at]
        name = token.text[1:-1] if token.kind in {"quoted", "string"} else token.text
        at += 1
        if at < len(tokens) and tokens[at].text == ".":
            at += 1
            continue
        break
    return name, at


def pieces_of(tokens: list[SqlToken], at: int, *, bracket: bool = True) -> Iterator[list[SqlToken]]:
    """Yield the parts between commas, inside the parentheses at an index or from it to the end."""
    depth = 0
    piece: list[SqlToken] = []
    for token in tokens[at + 1 if bracket else at :]:
        if token.text == ")" and depth == 0 and bracket:
            break
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            yield piece
            piece = []
        else:
            piece.append(token)
    if piece:
        yield piece


def names_of(tokens: list[SqlToken], at: int) -> list[str]:
    """Return the names inside the parentheses at an index, without lengths and sort orders."""
    if at >= len(tokens) or tokens[at].text != "(":
        return []
    return [plain_name(piece, 0)[0] for piece in pieces_of(tokens, at) if piece]


def table_command(piece: list[SqlToken], table: str) -> dict[str, Any] | None:
    """Return the index or foreign key that a part of CREATE TABLE states; None for a column."""
    words = [token.upper for token in piece]
    name = ""
    at = 0
    if words[:1] == ["CONSTRAINT"]:
        name, at = plain_name(piece, 1)
    kind = words[at] if at < len(words) else ""
    bracket = next((i for i in range(at, len(piece)) if piece[i].text == "("), None)
    if bracket is None:
        return None
    columns = names_of(piece, bracket)
    if kind == "PRIMARY":
        return {"name": "primary", "index": name or f"{table}_primary", "columns": columns}
    if kind == "FOREIGN":
        made = {"name": "foreign", "index": name, "columns": columns}
        made["index"] = name or f"{table}_{'_'.join(columns)}_foreign".lower()
        return {**made, **_references(piece, bracket)}
    kinds = {"UNIQUE": "unique", "KEY": "index", "INDEX": "index", "FULLTEXT": "fulltext"}
    kinds["SPATIAL"] = "spatialIndex"
    if kind in kinds and (kind != "KEY" or bracket <= at + 2):
        inner = at + 1
        while inner < bracket and words[inner] in {"KEY", "INDEX"}:
            inner += 1
        name = plain_name(piece, inner)[0] if inner < bracket else name
        named = name or f"{table}_{'_'.join(columns)}_{kinds[kind]}".lower()
        return {"name": kinds[kind], "index": named, "columns": columns}
    if kind in {"CHECK", "EXCLUDE"}:
        return {"name": "check", "index": name, "columns": []}
    return None


def column_of(piece: list[SqlToken], table: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the attributes of a column, and the indexes and foreign key stated with the column."""
    name, at = plain_name(piece, 0)
    words = [token.upper for token in piece]
    end = at
    depth = 0
    while end < len(piece) and (depth or words[end] not in _ENDS_TYPE):
        depth += {"(": 1, ")": -1}.get(piece[end].text, 0)
        end += 1
    kind = " ".join(token.text for token in piece[at:end]).replace(" ( ", "(").replace(" )", ")")
    column: dict[str, Any] = {"name": name, "type": kind.replace(" , ", ",").lower()}
    top = _top_words(piece, end)
    pairs = set(pairwise(top))
    primary = ("PRIMARY", "KEY") in pairs
    column["nullable"] = ("NOT", "NULL") not in pairs and not primary
    if "UNSIGNED" in top:
        column["unsigned"] = True
    if {"AUTOINCREMENT", "AUTO_INCREMENT", "IDENTITY"} & set(top) or "serial" in kind.lower():
        column["autoIncrement"] = True
    if "DEFAULT" in words[end:]:
        column["default"] = _default(piece, words.index("DEFAULT", end) + 1)
    if "AS" in top:
        inner = words.index("AS", end) + 1
        generated = " ".join(t.text for p in pieces_of(piece, inner) for t in p)
        column["storedAs" if "STORED" in top else "virtualAs"] = generated
    if "COMMENT" in top and words.index("COMMENT", end) + 1 < len(piece):
        column["comment"] = piece[words.index("COMMENT", end) + 1].text.strip("'")
    return column, _column_commands(piece[end:], name, table, primary=primary)


def _column_commands(
    options: list[SqlToken], name: str, table: str, *, primary: bool
) -> list[dict[str, Any]]:
    top = _top_words(options, 0)
    made: list[dict[str, Any]] = []
    if primary:
        made.append({"name": "primary", "index": f"{table}_{name}_primary", "columns": [name]})
    if "UNIQUE" in top:
        made.append({"name": "unique", "index": f"{table}_{name}_unique", "columns": [name]})
    if "REFERENCES" in top:
        key = {"name": "foreign", "index": f"{table}_{name}_foreign", "columns": [name]}
        made.append({**key, **_references(options, 0)})
    return made


def _top_words(piece: list[SqlToken], at: int) -> list[str]:
    """Return the keywords of a column definition, except those inside parentheses."""
    depth = 0
    found: list[str] = []
    for token in piece[at:]:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.kind == "word":
            found.append(token.upper)
    return found


def _default(piece: list[SqlToken], at: int) -> Any:
    if at >= len(piece):
        return None
    token = piece[at]
    if token.kind == "string":
        return token.text[1:-1].replace("''", "'")
    if token.upper == "NULL":
        return None
    depth = 0
    parts: list[str] = []
    for part in piece[at:]:
        if parts and depth == 0 and part.upper in _ENDS_TYPE:
            break
        depth += {"(": 1, ")": -1}.get(part.text, 0)
        parts.append(part.text)
    return {"raw": "".join(parts)}


def _references(piece: list[SqlToken], at: int) -> dict[str, Any]:
    words = [token.upper for token in piece]
    if "REFERENCES" not in words[at:]:
        return {}
    table, at = plain_name(piece, words.index("REFERENCES", at) + 1)
    columns = names_of(piece, at)
    made: dict[str, Any] = {"on": table}
    if columns:
        made["references"] = columns[0] if len(columns) == 1 else columns
    for index in range(at, len(words) - 2):
        if words[index] == "ON" and words[index + 1] in {"DELETE", "UPDATE"}:
            action = words[index + 2]
            further = words[index + 3] if index + 3 < len(words) else ""
            said = _ACTIONS.get(action, f"{action} {further}".strip().lower())
            made["onDelete" if words[index + 1] == "DELETE" else "onUpdate"] = said
    return made


_TOKEN: Final = re.compile(
    r"(?P<comment>--[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/|\#[^\n]*)"
    r"|(?P<string>'[^'\\]*(?:(?:''|\\.)[^'\\]*)*')"
    r'|(?P<quoted>"[^"]*"|`[^`]*`|\[[^\]\n]*\])'
    r"|(?P<word>[A-Za-z_\u0080-\uffff][\w$]*|\d[\w.]*)"
    r"|(?P<copy>\\\.)"
    r"|(?P<mark>\S)",
    re.DOTALL,
)
_COPY: Final = re.compile(r"^COPY\b[^;]*;[ \t]*\n", re.MULTILINE | re.IGNORECASE)
_COPY_END: Final = re.compile(r"^\\\.\s*$", re.MULTILINE)
_MIGRATION: Final = re.compile(r"'(\d{4}_\d{2}_\d{2}_\d{4,6}_\w+)'")


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """One statement on a table.

    Attributes:
        start, end: its character offsets.
        values: the values as in a fact of the kind `schema`.
    """

    start: int
    end: int
    values: Mapping[str, Any]


def sql_facts(tree: SyntaxTree) -> tuple[Fact, ...]:
    """Return a fact of the kind `schema` for each statement on a table in an SQL file.

    A fact with the action `ran` lists the migrations that a schema dump already contains.

    Args:
        tree: the tree of the file; only its text is read.
    """
    return tuple(
        Fact("schema", found.start, found.end, "", {**found.values, "order": order})
        for order, found in enumerate(statements_of(tree.text))
    )


def statements_of(sql: str) -> Iterator[SqlStatement]:
    """Yield the SQL statements on tables in a text; other statements are skipped.

    Args:
        sql: any number of statements.
    """
    for tokens in _split(sql):
        values = _read(tokens, sql)
        if values is not None:
            known = {"columns": [], "commands": [], "guards": [], "unread": [], "how": "sql"}
            yield SqlStatement(tokens[0].start, tokens[-1].end, {**known, **values})


def _split(sql: str) -> Iterator[list[SqlToken]]:
    """Yield the tokens of each SQL statement; rows of PostgreSQL's COPY are skipped."""
    statement: list[SqlToken] = []
    at = 0
    while (found := _TOKEN.search(sql, at)) is not None:
        at = found.end()
        kind = found.lastgroup or "mark"
        if kind == "comment":
            continue
        if found.group() != ";":
            statement.append(SqlToken(kind, found.group(), found.start(), found.end()))
            continue
        if statement:
            if statement[0].upper == "COPY":
                ended = _COPY_END.search(sql, at)
                at = ended.end() if ended else at
            yield statement
        statement = []
    if statement:
        yield statement


def _read(tokens: list[SqlToken], sql: str) -> dict[str, Any] | None:
    words = [token.upper for token in tokens[:8]]
    if words[0] == "CREATE":
        return _create(tokens, words)
    if words[:2] == ["ALTER", "TABLE"]:
        return _alter(tokens, words)
    if words[:2] == ["DROP", "TABLE"]:
        exists = words[2:4] == ["IF", "EXISTS"]
        name, _ = plain_name(tokens, 4 if exists else 2)
        return {"action": "drop", "table": name, "if_exists": exists}
    if words[:2] == ["RENAME", "TABLE"]:
        name, at = plain_name(tokens, 2)
        to, _ = plain_name(tokens, at + 1)
        return {"action": "rename", "table": name, "to": to}
    if words[:2] == ["INSERT", "INTO"]:
        return _ran(tokens, sql)
    return None


def _ran(tokens: list[SqlToken], sql: str) -> dict[str, Any] | None:
    if plain_name(tokens, 2)[0] != "migrations":
        return None
    names = _MIGRATION.findall(sql, tokens[0].start, tokens[-1].end)
    return {"action": "ran", "table": None, "migrations": names} if names else None


def _create(tokens: list[SqlToken], words: list[str]) -> dict[str, Any] | None:
    at = next((i for i, word in enumerate(words[:6]) if word in {"TABLE", "INDEX"}), None)
    if at is None:
        return None
    unique = "UNIQUE" in words[:at]
    table = words[at] == "TABLE"
    at += 1
    while at < len(tokens) and tokens[at].upper in {"IF", "NOT", "EXISTS", "CONCURRENTLY"}:
        at += 1
    if not table:
        return _create_index(tokens, at, unique)
    exists = "EXISTS" in words
    name, at = plain_name(tokens, at)
    values: dict[str, Any] = {"action": "create", "table": name, "if_not_exists": exists}
    columns: list[dict[str, Any]] = []
    commands: list[dict[str, Any]] = []
    if at >= len(tokens) or tokens[at].text != "(":
        return {**values, "unread": ["the definition of the table"]}
    for piece in pieces_of(tokens, at):
        command = table_command(piece, name)
        if command is not None:
            commands.append(command)
        elif piece and piece[0].kind in {"word", "quoted"}:
            column, further = column_of(piece, name)
            columns.append(column)
            commands += further
    return {**values, "columns": columns, "commands": commands}


def _create_index(tokens: list[SqlToken], at: int, unique: bool) -> dict[str, Any] | None:
    on = next((i for i in range(at, len(tokens)) if tokens[i].upper == "ON"), None)
    if on is None:
        return None
    index = plain_name(tokens, at)[0] if on > at else ""
    at = on + 2 if on + 1 < len(tokens) and tokens[on + 1].upper == "ONLY" else on + 1
    table, at = plain_name(tokens, at)
    while at < len(tokens) and tokens[at].text != "(":
        at += 1
    columns = names_of(tokens, at)
    kind = "unique" if unique else "index"
    index = index or f"{table}_{'_'.join(columns)}_{kind}"
    command = {"name": kind, "index": index, "columns": columns}
    return {"action": "alter", "table": table, "commands": [command]}


def _alter(tokens: list[SqlToken], words: list[str]) -> dict[str, Any]:
    at = 2
    while at < len(tokens) and tokens[at].upper in {"IF", "EXISTS", "ONLY"}:
        at += 1
    table, at = plain_name(tokens, at)
    values: dict[str, Any] = {"action": "alter", "table": table}
    columns: list[dict[str, Any]] = []
    commands: list[dict[str, Any]] = []
    for piece in pieces_of(tokens, at, bracket=False):
        renamed = _alteration(piece, table, columns, commands)
        if renamed:
            values = {"action": "rename", "table": table, "to": renamed}
    del words
    return {**values, "columns": columns, "commands": commands}


def _alteration(
    piece: list[SqlToken],
    table: str,
    columns: list[dict[str, Any]],
    commands: list[dict[str, Any]],
) -> str:
    """Apply one clause of ALTER TABLE; return the table's new name, "" if it is not renamed."""
    first = piece[0].upper if piece else ""
    at = 2 if len(piece) > 1 and piece[1].upper == "COLUMN" else 1
    if first == "ADD":
        _added(piece, at, table, columns, commands)
    elif first in {"MODIFY", "CHANGE"}:
        _changed(piece, at, table, columns, commands)
    elif first == "DROP":
        _dropped(piece, commands)
    elif first == "RENAME":
        return _renamed(piece, at, commands)
    elif first == "ALTER" and len(piece) > at:
        name, at = plain_name(piece, at)
        _altered_column(piece, at, name, columns)
    return ""


def _added(
    piece: list[SqlToken],
    at: int,
    table: str,
    columns: list[dict[str, Any]],
    commands: list[dict[str, Any]],
) -> None:
    command = table_command(piece[1:], table)
    if command is not None:
        commands.append(command)
        return
    while at < len(piece) and piece[at].upper in {"IF", "NOT", "EXISTS"}:
        at += 1
    if at < len(piece) and piece[at].text == "(":
        inner = list(pieces_of(piece, at))
    else:
        inner = [piece[at:]]
    for definition in inner:
        if definition:
            column, further = column_of(definition, table)
            columns.append(column)
            commands += further


def _changed(
    piece: list[SqlToken],
    at: int,
    table: str,
    columns: list[dict[str, Any]],
    commands: list[dict[str, Any]],
) -> None:
    old, after = plain_name(piece, at)
    if piece[0].upper == "CHANGE":
        at = after
    if at >= len(piece):
        return
    column, further = column_of(piece[at:], table)
    if piece[0].upper == "CHANGE" and column["name"] != old:
        commands.append({"name": "renameColumn", "from": old, "to": column["name"]})
    columns.append({**column, "change": True})
    commands += further


def _dropped(piece: list[SqlToken], commands: list[dict[str, Any]]) -> None:
    words = [token.upper for token in piece]
    if words[1:3] == ["PRIMARY", "KEY"]:
        commands.append({"name": "dropPrimary", "index": "", "columns": []})
        return
    kinds = {"INDEX": "dropIndex", "KEY": "dropIndex", "CONSTRAINT": "dropConstraint"}
    kind = kinds.get(words[1]) if len(words) > 1 else None
    at = 2 if kind or words[1:2] == ["COLUMN"] else 1
    if words[1:3] == ["FOREIGN", "KEY"]:
        kind, at = "dropForeign", 3
    while at < len(piece) and words[at] in {"IF", "EXISTS"}:
        at += 1
    name = plain_name(piece, at)[0] if at < len(piece) else ""
    if kind:
        commands.append({"name": kind, "index": name, "columns": []})
    else:
        commands.append({"name": "dropColumn", "columns": [name]})


def _renamed(piece: list[SqlToken], at: int, commands: list[dict[str, Any]]) -> str:
    words = [token.upper for token in piece]
    if words[1:2] in (["TO"], ["AS"]):
        return plain_name(piece, 2)[0]
    if words[1:2] in (["INDEX"], ["KEY"], ["CONSTRAINT"]):
        old, after = plain_name(piece, 2)
        new = plain_name(piece, after + 1)[0]
        commands.append({"name": "renameIndex", "from": old, "to": new})
    elif "TO" in words:
        old, after = plain_name(piece, at)
        new = plain_name(piece, after + 1)[0]
        commands.append({"name": "renameColumn", "from": old, "to": new})
    return ""


def _altered_column(
    piece: list[SqlToken], at: int, name: str, columns: list[dict[str, Any]]
) -> None:
    words = [token.upper for token in piece[at:]]
    change: dict[str, Any] = {"name": name, "change": True, "partial": True}
    if words[:3] == ["SET", "NOT", "NULL"]:
        change["nullable"] = False
    elif words[:3] == ["DROP", "NOT", "NULL"]:
        change["nullable"] = True
    elif words[:2] == ["SET", "DEFAULT"]:
        change["default"] = " ".join(token.text for token in piece[at + 2 :]).strip("'")
    elif words[:2] == ["DROP", "DEFAULT"]:
        change["default"] = None
    elif "TYPE" in words:
        change["type"] = piece[at + words.index("TYPE") + 1].text.lower()
    columns.append(change)
