"""SQL: the statements of a file, and the queries in the strings of a program in any language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.tree import cover_text
from rag_assets.systems.code_memory.symbols.model import CodeText, Role, Unit

_ROUTINE = re.compile(
    r"\s*+CREATE\s[^;'\"]{0,400}?\b(?:PROCEDURE|FUNCTION|TRIGGER|EVENT|PACKAGE)\b", re.IGNORECASE
)
_LINE_COMMENT = re.compile(r"--[^\n]*+|^[#\\][^\n]*+", re.MULTILINE)
_BLANK = re.compile(r"\s*+")
_UNCLOSED_WORDS: Final = frozenset({"IF", "LOOP", "WHILE", "REPEAT", "FOR"})
_NEXT_WORD = re.compile(r"\s{1,80}([A-Za-z]{1,20})")
_PLAIN_STRING: Final = re.compile(r"'[^']*+'")
_ESCAPED_STRING: Final = re.compile(r"'(?:[^'\\]++|\\.)*+'", re.DOTALL)
_STDIN = re.compile(r"\bFROM\s{1,80}stdin\b", re.IGNORECASE)
_DATA_END = re.compile(r"^\\\.[ \t]*$", re.MULTILINE)


def _iter_statements(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each statement, including the comments before it.

    An unclosed string or comment extends to the end of the text.
    """
    scanner = _StatementScanner(text)
    at = 0
    while at < len(text):
        start = _skip_blank(text, at)
        end, at = scanner.find_end(start)
        if end > start:
            yield start, end


def _skip_blank(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return at if blank is None else blank.end()


class _StatementScanner:
    """A scanner for the ends of statements, which remembers the current delimiter."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._mysql = "`" in text
        self._delimiter = ";"

    def find_end(self, start: int) -> tuple[int, int]:
        """Return the end of the statement at `start`, and the start of the text after it."""
        text, at, depth, routine = self._text, start, 0, None
        while (token := _build_token_pattern(self._delimiter).search(text, at)) is not None:
            word = token[0].upper()
            at = token.end()
            if token.lastgroup == "end":
                if depth <= 0:
                    return self._find_end_of_copy(start, at)
            elif token.lastgroup == "delimiter":
                self._delimiter = token["mark"]
                return (token.start() if text[start : token.start()].strip() else at), at
            elif token.lastgroup == "go":
                return token.start(), at
            elif token.lastgroup == "word":
                if routine is None:
                    _, head = _find_statement_head(text, start, at)
                    head_text = text[head : min(at, head + _MAX_HEAD_CHARACTERS)]
                    routine = _ROUTINE.match(head_text) is not None
                depth += self._get_depth_change(word, at) if routine else 0
            else:
                at = self._find_end_of_literal(token[0], token.start(), at)
        return len(text), len(text)

    def _get_depth_change(self, word: str, at: int) -> int:
        if word != "END":
            return 1
        following = _NEXT_WORD.match(self._text, at)
        if following is not None and following[1].upper() in _UNCLOSED_WORDS:
            return 0
        return -1

    def _find_end_of_literal(self, opener: str, start: int, at: int) -> int:
        """Return the offset after a string or comment; if it is unclosed, the end of the text."""
        text = self._text
        if opener == "'":
            escapes = self._mysql or text[max(0, start - 1) : start] in {"E", "e"}
            match = (_ESCAPED_STRING if escapes else _PLAIN_STRING).match(text, start)
            return len(text) if match is None else match.end()
        closer = {"--": "\n", "#": "\n", "\\": "\n", "/*": "*/"}.get(opener, opener)
        end = text.find(closer, at)
        return len(text) if end < 0 else end + len(closer)

    def _find_end_of_copy(self, start: int, at: int) -> tuple[int, int]:
        """Return the end of a statement, and the start of the text after it.

        `COPY … FROM stdin;` ends after the data that follows it.

        Args:
            start: the start of the statement.
            at: the offset after its delimiter.
        """
        head = self._text[start:at]
        if len(head) < 10_000 and "COPY" in head and _STDIN.search(head):  # noqa: PLR2004
            end = _DATA_END.search(self._text, at)
            if end is not None:
                return end.end(), end.end()
        return at, at


@lru_cache(maxsize=64)
def _build_token_pattern(delimiter: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<end>{re.escape(delimiter)})"
        r"|(?P<delimiter>^[ \t]*+DELIMITER[ \t]++(?P<mark>[^\s'\"]{1,20}))"
        r"|(?P<go>^GO[ \t\r]*+$)"
        r"|\b(?P<word>BEGIN|CASE|END)\b"
        r"|--|/\*|^[#\\]|'|\"|`|\$(?:[A-Za-z_]\w{0,62})?\$",
        re.IGNORECASE | re.MULTILINE,
    )


def _find_statement_head(text: str, start: int, end: int) -> tuple[int, int]:
    """Return two offsets: of the comments directly above a statement, and of its first word.

    A blank line separates a statement from comments that do not belong to it.
    """
    at, first = start, start
    while at < end:
        if text.startswith("/*", at):
            close = text.find("*/", at, end)
            stop = end if close < 0 else close + 2
        else:
            comment = _LINE_COMMENT.match(text, at, end)
            if comment is None:
                break
            stop = comment.end()
        following = min(_skip_blank(text, stop), end)
        if text.count("\n", stop, following) > 1:
            first = following
        at = following
    return first, at


_PART = r"(?:`[^`]{1,128}`|\"[^\"]{1,128}\"|\[[^\]\n]{1,128}\]|[\w$#@]{1,128})"
_NAME = rf"(?P<name>{_PART}(?:\s?\.\s?{_PART}){{0,3}})"
_KINDS: Final = (
    "TABLE|VIEW|FUNCTION|PROCEDURE|INDEX|TRIGGER|TYPE|SEQUENCE|SCHEMA|DATABASE|EXTENSION|DOMAIN"
    "|EVENT|POLICY|RULE|AGGREGATE|ROLE|USER|SERVER|PACKAGE"
)
_CREATE = re.compile(
    r"(?P<verb>CREATE)\s(?:[^;'(]{0,300}?\s)??(?P<kind>" + _KINDS + r")\s{1,80}"
    r"(?:CONCURRENTLY\s{1,80})?(?:IF\s{1,80}NOT\s{1,80}EXISTS\s{1,80})?"
    r"(?:ON\s{1,80}(?P<on>" + _PART + r")|" + _NAME + r")",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"(?P<verb>ALTER|DROP|RENAME|TRUNCATE)\s{1,80}(?P<kind>TABLE)\s{1,80}"
    r"(?:IF\s{1,80}EXISTS\s{1,80})?(?:ONLY\s{1,80})?" + _NAME,
    re.IGNORECASE,
)
_QUOTED = re.compile(_PART)
_TABLE_NAME = rf"(?:ONLY\s{{1,80}})?(?P<name>(?>{_PART}(?:\s?\.\s?{_PART}){{0,3}}))"
_REFERENCED = re.compile(rf"\bREFERENCES\s{{1,80}}{_TABLE_NAME}", re.IGNORECASE)
_QUERIED_TABLE = re.compile(
    rf"\b(?:FROM|JOIN|INTO|UPDATE)\s{{1,80}}{_TABLE_NAME}(?!\s?\()", re.IGNORECASE
)
_TABLE_AFTER_ON = re.compile(rf"\bON\s{{1,80}}{_TABLE_NAME}", re.IGNORECASE)
_TABLE_PATTERNS: Final = {
    "TABLE": _REFERENCED,
    "INDEX": _TABLE_AFTER_ON,
    "TRIGGER": _TABLE_AFTER_ON,
}
"""Patterns of table names, by the type of the object that a statement creates.

In all other statements, _QUERIED_TABLE matches the names.
"""

_NO_TABLES_IN_STATEMENTS: Final = frozenset(
    {"SELECT", "SET", "LATERAL", "UNNEST", "CONFLICT", "UPDATE", "DELETE", "DUPLICATE", "STDIN"}
)
_ROLES: Final[dict[str, Role]] = {
    "TABLE": "schema",
    "INDEX": "schema",
    "FUNCTION": "function",
    "PROCEDURE": "function",
    "TRIGGER": "function",
    "TYPE": "type",
    "DOMAIN": "type",
}
_LINE_END = re.compile(r"[,;](?=[ \t]{0,80}\r?\n)")
_BODY = re.compile(r"[(;]|\bAS\b", re.IGNORECASE)
_MAX_EVIDENCE_CHARACTERS: Final = 200
"""Maximum characters of a signature, and of the evidence of a statement."""
_MAX_SEARCHED_CHARACTERS: Final = 20_000
"""Number of characters at the start of a statement in which table names are searched."""

_MAX_HEAD_CHARACTERS: Final = 1_000
"""Maximum characters at the start of a statement that say what it creates or changes."""
_MAX_TABLES: Final = 50


def read_sql(text: str) -> CodeText:
    """Return the units and facts of an .sql file in any dialect."""
    units: list[Unit] = []
    facts: list[Fact] = []
    cuts: set[int] = {line_end.end() for line_end in _LINE_END.finditer(text)}
    for start, end in _iter_statements(text):
        first, head = _find_statement_head(text, start, end)
        cuts.add(end)
        last = min(end, head + _MAX_HEAD_CHARACTERS)
        match = _CREATE.match(text, head, last) or _CHANGE.match(text, head, last)
        if match is None:
            continue
        verb, what = match["verb"].lower(), match["kind"].lower()
        role = _ROLES.get(what.upper(), "definition")
        symbol, signature = _get_object_name(match), _read_signature(text, head, end, match)
        units.append(Unit(first, end, role, symbol, signature, alone=verb == "create"))
        if symbol:
            tables = _list_tables(text, end, symbol, match)
            values = {"role": role, "what": what, "verb": verb, "tables": tables}
            kind = "declares" if verb == "create" else "changes"
            facts.append(
                Fact(kind, head, min(end, head + _MAX_EVIDENCE_CHARACTERS), symbol, values)
            )
    return CodeText(cover_text(text, units, sorted(cuts)), tuple(facts))


def _get_object_name(match: re.Match[str]) -> str:
    parts = _QUOTED.findall(match["name"] or "")  # An index may have no name.
    return ".".join(part[1:-1] if part[0] in '`"[' else part for part in parts)


def _read_signature(text: str, head: int, end: int, match: re.Match[str]) -> str:
    last = min(end, head + 2 * _MAX_EVIDENCE_CHARACTERS)
    body = _BODY.search(text, match.end(), last)
    if body is not None and match["kind"].upper() not in {"INDEX", "FUNCTION", "PROCEDURE"}:
        last = body.start()
    return " ".join(text[head:last].split()).rstrip(";( ")[:_MAX_EVIDENCE_CHARACTERS]


def _list_tables(text: str, end: int, symbol: str, statement: re.Match[str]) -> list[str]:
    """Return the tables that a statement refers to, except the table that it creates."""
    pattern = _TABLE_PATTERNS.get(statement["kind"].upper(), _QUERIED_TABLE)
    last = min(end, statement.start() + _MAX_SEARCHED_CHARACTERS)
    start = statement.end() if statement["name"] else statement.start()
    names = dict.fromkeys(_get_object_name(match) for match in pattern.finditer(text, start, last))
    table_names = (name for name in names if name.upper() not in _NO_TABLES_IN_STATEMENTS)
    return [name for name in table_names if name != symbol][:_MAX_TABLES]


_TABLES: Final = re.compile(
    r"\b(?:extract|trim|substring|overlay)\s*\([^()]{0,200}?\bfrom\b"
    r"|\b(?:from|join|into|update)\s+(\\?[`\"\[]{0,2})"
    r"([A-Za-z_]\w{0,63}(?:\\?[`\"\]]{0,2}\.\\?[`\"\[]{0,2}[A-Za-z_]\w{0,63}){0,3})",
    re.IGNORECASE,
)
"""Matches the name of a table and the quotation marks before it.

The marks may be escaped or doubled, and a schema before the name has marks of its own. Both groups
are empty for `extract(year from due)`, which names no table.
"""

_MARKS_IN_NAME: Final = re.compile(r"[\\`\"\[\]]")

_WITH_NAME: Final = re.compile(r"\b(\w{1,64})\s+as\s+(?:(?:not\s+)?materialized\s*)?\(", re.I)
"""Matches a name that `with … as (` defines, which is not a table."""

_NO_TABLES: Final = frozenset(
    {"select", "set", "fetch", "lateral", "unnest", "only", "values", "where"}
    | {"the", "a", "an", "this", "these", "your", "my", "our", "their", "its"}
)
"""Words after FROM, JOIN, INTO or UPDATE that are not tables unless they are quoted."""

_VERBS: Final = (
    r"select\b|insert\s+(?:ignore\s+|or\s+\w+\s+)?into\b|replace\s+into\b"
    r"|delete\s+from\b|update\s+[\w.`\"\[\]\\]{1,80}\s+(?:(?:as\s+)?\w{1,64}\s+)?set\b"
    r"|with\s+(?:recursive\s+)?\w{1,64}\s*(?:\([^()]{0,500}\)\s*)?as\s*\(|merge\s+into\b"
    r"|(?:(?:inner|cross|(?:left|right|full)(?:\s+outer)?)\s+)?join\b"
)
_QUERY: Final = re.compile(
    r"(?<!\\)(?P<quote>\"\"\"|'''|[\"'`]|<<[<~-]?[\"']?[A-Z][A-Z_]{1,30}\b[^\n]{0,80}\n)"
    r"(?:\s|\\n|--[^\n]{0,200}\n|\(){0,200}+"
    rf"(?:(?={_VERBS})|(?i:(?={_VERBS}))(?=[A-Z]{{4}}))"
)
"""Matches the start of a query in a string; unlike a sentence, a query has keywords in one case."""

_COMPLETING_WORDS: Final = (
    (re.compile(r"select\b", re.I), re.compile(r"\bfrom\b", re.I)),
    (re.compile(r"(?:\w+\s+){0,2}join\b", re.I), re.compile(r"\bon\b", re.I)),
)
"""Verbs that may also start a sentence, each with the word that must follow in a query."""

_STRINGS: Final = {
    '"': re.compile(r'(?:[^"\\]|\\.){0,20000}+', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]|\\.){0,20000}+", re.DOTALL),
    "`": re.compile(
        r"(?:[^`\\$]|\\.|\$(?!\{)|\$\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}){0,20000}+", re.DOTALL
    ),
}
_VERBATIM: Final = re.compile(r'(?:[^"]|""){0,20000}+')
"""Matches the content of a string of C# with the mark @, in which quotation marks are doubled."""
_RAW: Final = re.compile(r"(?P<hashes>#{1,10})\"$")
"""Matches the start of a raw string of Rust or Swift, which ends with as many hash signs."""
_MARKER: Final = re.compile(r"[A-Z_]+")
"""Matches the marker of a here document, such as `<<~SQL`."""
_MAX_MARK_CHARACTERS: Final = 11
"""Maximum number of characters before the content of a raw string."""
_HOLE: Final = re.compile(r"\$?\{[^{}]*\}\.?|#\{[^{}]*\}\.?")
"""Matches a computed part of a template; a part before a dot is the schema of a table."""

_MAX_QUERY_CHARACTERS: Final = 20_000
"""Maximum characters of a query; a longer query is cut off."""
_MAX_QUERY_TABLES: Final = 50
"""Maximum number of tables of a query; further tables are dropped."""


def add_queries(text: str, reading: CodeText) -> CodeText:
    """Return units and facts extended by the tables that SQL queries in strings name.

    Each table yields the fact `queries_table` {table}; its symbol is the enclosing definition.
    """
    return reading.add_facts(_iter_query_facts(text, reading))


def list_tables_in_sql(query: str) -> list[str]:
    """Return the tables that a query names, without duplicates."""
    defined = {name.lower() for name in _WITH_NAME.findall(query)}
    quoted_names = ((quote, _MARKS_IN_NAME.sub("", name)) for quote, name in _TABLES.findall(query))
    tables = dict.fromkeys(
        name
        for quote, name in quoted_names
        if name and name.lower() not in defined and (quote or name.lower() not in _NO_TABLES)
    )
    return [*tables]


def _iter_query_facts(text: str, reading: CodeText) -> Iterator[Fact]:
    at = 0
    while (opening := _QUERY.search(text, at)) is not None:
        start = opening.start() + len(opening["quote"])
        end = _find_string_end(text, opening["quote"], start)
        statement = text[opening.end() : end].partition(";")[0]
        needed = [word for verb, word in _COMPLETING_WORDS if verb.match(statement)]
        if not all(word.search(statement) for word in needed):
            # This quotation mark may end a string and not start one.
            at = start
            continue
        at = end
        symbol = _find_enclosing_symbol(reading, opening.start())
        query = _HOLE.sub(lambda hole: "" if hole[0].endswith(".") else "{}", text[start:end])
        for table in list_tables_in_sql(query)[:_MAX_QUERY_TABLES]:
            last = min(end, start + _MAX_EVIDENCE_CHARACTERS)
            yield Fact("queries_table", opening.start(), last, symbol, {"table": table})


def _find_string_end(text: str, quote: str, start: int) -> int:
    """Return the offset after a string's content, at most _MAX_QUERY_CHARACTERS after its start."""
    if quote.startswith("<<"):
        marker = _MARKER.search(quote)
        last = re.compile(rf"^[ \t]*+{marker[0] if marker else quote}\b", re.MULTILINE)
        ending = last.search(text, start, start + _MAX_QUERY_CHARACTERS)
        return start if ending is None else ending.start()
    raw = _RAW.search(text, max(0, start - _MAX_MARK_CHARACTERS), start)
    closer = quote + raw["hashes"] if raw is not None else quote
    if len(closer) > 1:
        end = text.find(closer, start, start + _MAX_QUERY_CHARACTERS)
        if end >= 0 or len(quote) > 1:
            return end if end >= 0 else min(len(text), start + _MAX_QUERY_CHARACTERS)
    is_verbatim = quote == '"' and text[start - 2 : start - 1] == "@"
    content = (_VERBATIM if is_verbatim else _STRINGS[quote]).match(text, start)
    return start if content is None else content.end()


def _find_enclosing_symbol(reading: CodeText, at: int) -> str:
    around = [
        fact for fact in reading.facts if fact.kind == "declares" and fact.start <= at < fact.end
    ]
    if around:
        return min(around, key=lambda fact: fact.end - fact.start).symbol
    return next((unit.symbol for unit in reading.units if unit.start <= at < unit.end), "")
