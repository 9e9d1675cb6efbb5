"""Credentials in statements of programs: `login("jane", "X")`, `INSERT INTO … VALUES ('X')`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from rag_assets.privacy.secrets.names import value_kind
from rag_assets.privacy.secrets.rules import Anchor, Rule, build_rule
from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.privacy.secrets.values import ValueKind, is_cell_secret, is_secret_value

_REACH = 400
_ARGUMENT = re.compile(
    r"\s{0,40}(?:[A-Za-z_]\w*\s?=\s?)?(?:[bruBRU]?(?P<quote>[\"'])(?P<text>(?:(?!(?P=quote))[^\r\n\\]|\\.){0,256})(?P=quote)"
    r"|[^,()\"'\r\n]{0,120}(?:\([^()\r\n]{0,120}\))?)\s{0,40}(?P<end>[,)])"
)
_ADDRESS_OR_ALGORITHM = re.compile(
    r"[^@\s]+@[^@\s]+\.\w+|\w+://.*|sha\d+|hs\d+|utf-?8", re.IGNORECASE
)


def _find_argument(argument: int, text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    for anchor in anchors:
        at = anchor.end
        for number in range(argument + 1):
            found = _ARGUMENT.match(text, at, anchor.end + _REACH)
            if found is None:
                break
            at = found.end()
            if number == argument and found["text"]:
                value = found["text"]
                good = is_secret_value(ValueKind.PASSWORD, value, quoted=True)
                if good and not _ADDRESS_OR_ALGORITHM.fullmatch(value):
                    yield SecretSpan(*found.span("text"), "argument-secret")
            if found["end"] == ")":
                break


def _build_argument_rule(argument: int, *anchors: str) -> Rule:
    return Rule(anchors, partial(_find_argument, argument))


_INSERT = re.compile(
    r"insert[ \t]+(?:ignore[ \t]+)?into[ \t]+[\w.\"`\[\]]{1,128}\s{0,20}\((?P<columns>[^()]{1,2000})\)\s{0,20}"
    r"values\s{0,20}",
    re.IGNORECASE,
)
_TUPLE = re.compile(
    r"\s{0,20},?\s{0,20}\((?P<values>(?:'(?:[^'\n]|'')*'|[^()'\n]|\([^()'\n]*\)){1,4000})\)"
)
_VALUE = re.compile(r"\s*(?:'(?P<text>(?:[^'\n]|'')*)'|[^,']*)\s*(?:,|$)")
_IDENTIFIED = re.compile(
    r"identified[ \t]+(?:with[ \t]+\S+[ \t]+)?(?:by|as)[ \t]+(?:password[ \t]+)?"
    r"(?P<quote>[\"'`])(?P<text>[^\"'`\r\n]{3,256})(?P=quote)",
    re.IGNORECASE,
)
_MOST_ROWS = 10_000


def _find_inserted(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    done = 0
    for anchor in anchors:
        if anchor.start < done or (head := _INSERT.match(text, anchor.start)) is None:
            continue
        names = [value_kind(name.strip(' \t\r\n`"[]')) for name in head["columns"].split(",")]
        done = head.end()
        for _ in range(_MOST_ROWS if any(names) else 0):
            row = _TUPLE.match(text, done)
            if row is None:
                break
            done = row.end()
            for kind, value in zip(names, _find_values(text, *row.span("values")), strict=False):
                if kind is not None and value is not None:
                    start, end = value
                    if is_cell_secret(kind, text[start:end]):
                        yield SecretSpan(start, end, "assigned-secret")


def _find_values(text: str, start: int, end: int) -> Iterator[tuple[int, int] | None]:
    """Yield the span of each value in a row of values; None for a value that is not a string."""
    while start < end and (value := _VALUE.match(text, start, end)) and value.end() > start:
        yield value.span("text") if value["text"] is not None else None
        start = value.end()


def _accept_identified(found: re.Match[str]) -> SecretSpan | None:
    """Return X in `IDENTIFIED BY 'X'`."""
    if not is_secret_value(ValueKind.PASSWORD, found["text"], quoted=True):
        return None
    return SecretSpan(*found.span("text"), "assigned-secret")


RULES: Sequence[Rule] = (
    _build_argument_rule(0, "hmac.new(", "fernet("),
    _build_argument_rule(1, "basicauth(", ".auth(", "auth=(", ".login(", "createhmac(", "jwt.encode(", "jwt.sign(",
            "jwt.verify(", "jwt.decode(", "networkcredential(", "usernamepassword("),
    _build_argument_rule(2, "getconnection(", "mysqli(", "new pdo(", "mysqldb.connect(", "sequelize("),
    Rule(("insert",), _find_inserted), build_rule(_IDENTIFIED, _accept_identified, "identified"),
)  # fmt: skip
