"""Definitions of columns, indexes and foreign keys in SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

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
