"""Credentials that markup separates from their names: elements, attributes, calls, tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_assets.privacy.secrets.names import Name
from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.privacy.secrets.values import (
    ValueKind,
    is_alphabetic_password,
    is_bare_password,
    is_cell_secret,
    is_generated,
    is_phrase,
    is_pin,
    is_secret_value,
)

_RULE = "assigned-secret"
_REACH = 400
_QUOTED = r"(?:\"(?P<double>[^\"\r\n]{3,256})\"|'(?P<single>[^'\r\n]{3,256})'|`(?P<tick>[^`\r\n]{3,256})`)"

_ELEMENT = re.compile(
    # <password>X</password>, <key>password</key><string>X</string>, <td>Password</td><td>X</td>
    r"[\"']?(?:\s[^<>\n]{0,120})?>\s{0,40}(?:(?:</?[A-Za-z][\w:.-]*(?:\s[^<>]{0,120})?>\s{0,40}){0,4})"
    r"(?:<!\[CDATA\[)?(?P<text>[^<>\r\n]{3,256}?)(?:\]\]>)?\s{0,40}</"
)
_LABELLED = re.compile(
    # <td>Password:</td><td>X</td>, <dt>Password</dt><dd>X</dd>, <b>Password</b>: X
    r"[ \t]?:?[ \t]?(?:\([^()<>\n]{1,40}\))?[ \t]?:?</[A-Za-z][\w:-]*>[ \t]?:?\s{0,40}"
    r"(?:</?[A-Za-z][\w:.-]*(?:\s[^<>]{0,120})?>\s{0,40}){0,5}(?P<text>[^<>\r\n]{3,256}?)\s{0,40}</"
)
_ATTRIBUTE = re.compile(
    # name="password" value="X", key: "DB_PASSWORD", "value": "X", - name: X newline value: Y
    r"[\"'`]?[ \t]{0,4}(?:,|/?>|\{)?\s{0,60}(?:type[ \t]*=[ \t]*\w+\s{1,40})?(?:<)?[\"'`]?(?i:value|val|content|default|string)[\"'`]?"
    r"[ \t]{0,4}[:=>][ \t]{0,4}(?:"
    + _QUOTED
    + r"|(?P<bare>[^\W\d_]{2,20}(?: [^\W\d_]{2,20}){3,7}(?=[ \t]*(?:[\r\n]|$))|[^\s\"'`,;<>|{}]{3,256}))"
)
_SECOND = re.compile(
    # env('DB_PASSWORD', 'X'), define("DB_PASSWORD", "X"), os.environ.get("X", "Y")
    r"[\"'`][ \t]{0,2},[ \t]{0,4}" + _QUOTED
)
_GETTER = re.compile(
    r"(?i:env|define|fetch|get|config|property|secret|default|set|put|opt|add|append|setting|param|variable|value|fill|type)"
    r"\w*[ \t]{0,2}\([ \t]{0,2}[\"'`]\Z"
)
_CALL = re.compile(
    # setPassword("X"), getenv("PASSWORD") or "X", ENV["PASSWORD"] || "X", ENV.fetch("PASSWORD") { "X" }
    r"(?:[\"'`]?[ \t]{0,2}[\])]?[ \t]{0,2}(?:\|\||\?\?|or|\?:|\{)[ \t]{0,4}|\([ \t]{0,4})" + _QUOTED
)
_DEFAULT = re.compile(r"(?::[-=?]?|:=)(?P<text>[^\s{}$\"'`]{3,256})\}")
_LABEL_END = re.compile(r"[*_`'}]{0,3}(?::?[ \t]?\([^()|\n]{1,40}\))?:?[*_`]{0,3}")
_PARTING = re.compile(r"[ \t]*\|{1,2}|[ ]?\t|[ ]{3,40}(?=[^ |])")
_CELL_MARKS = " \t\r*_`'"
_LONGEST_ROW = 400
_MOST_ROWS = 1_000
_DELIMITER = re.compile(r"\|\||\^|!!|\||(?<=^)!")
_FIRST_IN_ELEMENT = re.compile(r"(?<!/)>\s{0,20}(?:[\w-]{1,20}[ \t]){0,3}\Z")
_FIRST_CELL = re.compile(r"(?:^|\n)[ \t>]*\|?[ \t]*[*_`]{0,3}(?:[\w-]+[ \t]){0,2}\Z")
_EXPANSION = re.compile(r"\$\{[\w.-]*\Z")
_SQL = re.compile(
    r"[ \t]{1,4}(?:(?i:=|to|by|values?)[ \t]{1,4})?(?:'(?P<single>[^'\r\n]{3,256})'|\"(?P<double>[^\"\r\n]{3,256})\")"
)
_SQL_WORDS = frozenset({"password", "passwd"})
_TEXTS = ("text", "bare", "double", "single", "tick")


def in_markup(text: str, name: Name) -> Iterator[SecretSpan]:
    """Find the value of a name in markup, a call or a table."""
    limit = name.end + _REACH
    for pattern in _patterns(text, name):
        found = pattern.match(text, name.end, limit)
        span = _accepted(name, found, pattern) if found is not None else None
        if span is not None:
            yield span
            break
    cell = _beside(text, name)
    if cell is not None:
        yield cell
    yield from _below(text, name)
    if _EXPANSION.search(text, max(0, name.start - 60), name.end):
        found = _DEFAULT.match(text, name.end, limit)
        span = _accepted(name, found, _DEFAULT) if found is not None else None
        if span is not None:
            yield span


def _beside(text: str, name: Name) -> SecretSpan | None:
    """Return the value in the cell after a label at the start of a row of a plain-text table."""
    label = _LABEL_END.match(text, name.end)
    parting = _PARTING.match(text, label.end() if label else name.end)
    if parting is None or not _FIRST_CELL.search(text, max(0, name.start - 80), name.start):
        return None
    end = text.find("\n", parting.end(), parting.end() + _LONGEST_ROW)
    row = text[parting.end() : end if end >= 0 else parting.end() + _LONGEST_ROW]
    aligned = "|" not in parting[0] and "\t" not in parting[0]
    cells = [row] if aligned else re.split(r"\||\t", row)
    value = cells[0].strip(_CELL_MARKS)
    described = any(cell.strip(_CELL_MARKS) for cell in cells[1:])
    if aligned and (value.endswith(",") or " " in value or ":" in text[name.end : parting.start()]):
        return None
    if name.kind is ValueKind.PAIR or not is_cell_secret(name.kind, value, described=described):
        return None
    start = parting.end() + row.index(value)
    return SecretSpan(start, start + len(value), _RULE)


def _below(text: str, name: Name) -> Iterator[SecretSpan]:
    """Find the cells below a name in the first row of a table, in wiki markup and plain text."""
    low = max(0, name.start - _LONGEST_ROW)
    begin = text.rfind("\n", low, name.start) + 1 or low
    if begin and text[begin - 1] != "\n":
        return
    head = text[begin : name.start].lstrip(" \t>")
    if not head.startswith(("|", "^", "!")) or text[max(0, begin - 2) : begin - 1] == "|":
        return
    column = len(_DELIMITER.findall(head)) - 1
    at = text.find("\n", name.end, name.end + _LONGEST_ROW)
    for _ in range(_MOST_ROWS):
        end = text.find("\n", at + 1, at + _LONGEST_ROW) if at >= 0 else -1
        line = text[at + 1 : end] if end >= 0 else text[at + 1 : at + _LONGEST_ROW]
        if at < 0 or not line.lstrip(" \t>").startswith(("|", "^")):
            return
        cell = _cell_at(line, column)
        if cell is not None and is_cell_secret(name.kind, line[slice(*cell)]):
            yield SecretSpan(at + 1 + cell[0], at + 1 + cell[1], _RULE)
        at = end


def _cell_at(line: str, column: int) -> tuple[int, int] | None:
    """Return the span of a column's cell in a row, without the markup around it."""
    partings = list(_DELIMITER.finditer(line))
    if column >= len(partings):
        return None
    start = partings[column].end()
    end = partings[column + 1].start() if column + 1 < len(partings) else len(line)
    inner = line[start:end].strip(_CELL_MARKS + "%{}")
    if not inner:
        return None
    start = line.index(inner, start)
    return start, start + len(inner)


def _patterns(text: str, name: Name) -> Iterator[re.Pattern[str]]:
    """Yield the patterns for the text after a name."""
    yield _ELEMENT
    if _FIRST_IN_ELEMENT.search(text, max(0, name.start - 60), name.start):
        yield _LABELLED
    yield _ATTRIBUTE
    if _GETTER.search(text, max(0, name.start - 40), name.start):
        yield _SECOND
    yield _CALL
    if name.text.lower() in _SQL_WORDS:
        yield _SQL


def _accepted(name: Name, found: re.Match[str], pattern: re.Pattern[str]) -> SecretSpan | None:
    group = next(g for g in _TEXTS if g in found.re.groupindex and found[g] is not None)
    start, end = found.span(group)
    value = found[group].strip()
    start += len(found[group]) - len(found[group].lstrip())
    end = start + len(value)
    if any(map(str.isspace, value)):
        phrase = name.kind is ValueKind.PASSWORD and is_phrase(value)
        return SecretSpan(start, end, _RULE) if phrase else None
    if name.kind is ValueKind.PAIR:
        return None
    if name.kind is ValueKind.RANDOM:
        return SecretSpan(start, end, _RULE) if is_generated(value) else None
    if name.kind is ValueKind.PIN:
        good = is_pin(value)
    elif name.kind is ValueKind.PASSWORD:
        quoted = group in {"double", "single", "tick"}
        good = is_secret_value(ValueKind.PASSWORD, value, quoted=quoted)
        if pattern is _CALL and value.replace("_", "").isalpha():
            good = is_alphabetic_password(value) and _takes_password(name, found)
        good = good or (group in {"text", "bare"} and is_alphabetic_password(value))
    else:
        good = is_secret_value(ValueKind.KEY, value, quoted=True) or (
            pattern is _ELEMENT and is_bare_password(value) and not value.isdigit()
        )
    return SecretSpan(start, end, _RULE) if good else None


def _takes_password(name: Name, found: re.Match[str]) -> bool:
    """Return whether a call takes a password itself: `setPassword("X")`, `PASSWORD || "X"`.

    Other calls take a text about a password.
    """
    if "(" not in found[0]:
        return True
    method = found.string[name.start - 1 : name.start] in {".", ">", ":"} or "." in name.text
    return method or name.text.lower().startswith(("set", "with"))
