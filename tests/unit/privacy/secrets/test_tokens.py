"""Each row of the token table finds a token made from its pattern, and no placeholder."""

import re
import tomllib
from pathlib import Path
from random import Random
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from rag_assets.privacy.secrets import tokens
from rag_assets.privacy.secrets.scanner import load_token_rules
from rag_assets.privacy.secrets.tokens import CHECKS

TABLE: dict[str, list[dict[str, Any]]] = tomllib.loads(
    Path(tokens.__file__).with_name("token_kinds.toml").read_text(encoding="utf-8")
)
ROWS = [row for rows in TABLE.values() for row in rows]
CHARACTERS = "".join(map(chr, range(0x21, 0x7F)))
TRIES = 300
OPEN_END = 6
"""How much longer than its minimum an unlimited repetition is made."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["kind"])
def test_row_finds_a_token_of_its_form(row: dict[str, Any]) -> None:
    rng = Random(row["kind"])
    texts = (example(row, rng) for _ in range(TRIES))
    assert any(span.rule == row["kind"] for text in texts for span in load_token_rules().scan(text))


@pytest.mark.parametrize("row", TABLE["prefixed"], ids=lambda row: row["kind"])
def test_row_with_a_prefix_ignores_a_placeholder(row: dict[str, Any]) -> None:
    prefix = example({**row, "body": ""}, Random(row["kind"]))
    assert list(load_token_rules().scan(prefix + "x" * 80)) == []


def test_every_check_of_the_code_is_used_by_a_row() -> None:
    assert {row.get("check", "token body") for row in ROWS} == CHECKS.keys()


def example(row: dict[str, Any], rng: Random) -> str:
    """Make a text from a row's patterns; the row's check may refuse it."""
    if "pattern" in row:
        if row.get("check") == "pair":
            return 'auth: "amFuZTpWdDdtUXgycA=="'
        text = made(row["pattern"], rng)
        return f"{{SSHA}}{text.partition('}')[2]}" if text.startswith("{") else text
    if "before" in row:
        return made(row["before"], rng) + made(row["after"], rng)
    listed = row.get("prefixes", "").split()
    prefix = rng.choice(listed) if listed else made(row["prefix"], rng)
    return prefix + made(row["body"], rng)


def made(pattern: str, rng: Random) -> str:
    """Make a text that matches a pattern, ignoring assertions about its neighbours."""
    return "".join(_parts(parser.parse(pattern), rng))


def _parts(parsed: Any, rng: Random) -> list[str]:
    parts: list[str] = []
    for code, value in parsed:
        if code is codes.LITERAL:
            parts.append(chr(value))
        elif code is codes.IN:
            among = [c for c in CHARACTERS if _is_in(value, c)] or [" "]
            parts.append(rng.choice(among))
        elif code is codes.MAX_REPEAT:
            low, high, inner = value
            for _ in range(rng.randint(low, min(int(high), low + OPEN_END))):
                parts += _parts(inner, rng)
        elif code is codes.SUBPATTERN:
            parts += _parts(value[3], rng)
        elif code is codes.BRANCH:
            parts += _parts(rng.choice(value[1]), rng)
        else:
            assert code in {codes.ASSERT_NOT, codes.ASSERT, codes.AT}, code
    return parts


def _is_in(characters: Any, character: str) -> bool:
    categories = {codes.CATEGORY_DIGIT: r"\d", codes.CATEGORY_WORD: r"\w"}
    for code, value in characters:
        if code is codes.LITERAL and chr(value) == character:
            return True
        if code is codes.RANGE and value[0] <= ord(character) <= value[1]:
            return True
        if (
            code is codes.CATEGORY
            and value in categories
            and re.match(categories[value], character)
        ):
            return True
    return False
