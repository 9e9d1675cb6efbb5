"""Credentials as arguments of calls, at a known position: `login("jane", "X")`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from rag_assets.privacy.secrets.rules import Anchor, Rule
from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.privacy.secrets.values import ValueKind, is_secret_value

_REACH = 400
_ARGUMENT = re.compile(
    r"\s{0,40}(?:[A-Za-z_]\w*\s?=\s?)?(?:[bruBRU]?(?P<quote>[\"'])(?P<text>(?:(?!(?P=quote))[^\r\n\\]|\\.){0,256})(?P=quote)"
    r"|[^,()\"'\r\n]{0,120}(?:\([^()\r\n]{0,120}\))?)\s{0,40}(?P<end>[,)])"
)
_ADDRESS_OR_ALGORITHM = re.compile(
    r"[^@\s]+@[^@\s]+\.\w+|\w+://.*|sha\d+|hs\d+|utf-?8", re.IGNORECASE
)


def _find(argument: int, text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
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


def _rule(argument: int, *anchors: str) -> Rule:
    return Rule(anchors, partial(_find, argument))


RULES: Sequence[Rule] = (
    _rule(0, "hmac.new(", "fernet("),
    _rule(1, "basicauth(", ".auth(", "auth=(", ".login(", "createhmac(", "jwt.encode(", "jwt.sign(",
            "jwt.verify(", "jwt.decode(", "networkcredential(", "usernamepassword("),
    _rule(2, "getconnection(", "mysqli(", "new pdo(", "mysqldb.connect(", "sequelize("),
)  # fmt: skip
