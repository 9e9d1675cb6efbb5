"""Checks of single values, whether a file or a variable has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_CHUNK: Final = 1_000_000
_SMALLEST_CHUNK: Final = 64
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


class WrongValue(Exception):
    """A value that cannot be used; the message says what would do, and does not quote it."""


@dataclass(frozen=True, slots=True)
class Field:
    """A setting of a block.

    Attributes:
        read: its value from what YAML gives, or a variable.
        variable: that overrides it.
    """

    read: Callable[[Any], Any]
    variable: str = ""


def _choice(*choices: str) -> Callable[[Any], str]:
    def read(given: Any) -> str:
        if given not in choices:
            raise WrongValue(f"must be one of {', '.join(choices)}")
        return str(given)

    return read


def _number(least: int, most: int) -> Callable[[Any], int]:
    def read(given: Any) -> int:
        text = given.strip() if isinstance(given, str) else ""
        value = int(text) if text.isascii() and text.isdigit() else given
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise WrongValue(f"must be a whole number from {least:,} to {most:,}")
        return int(value)

    return read


def _cosine(given: Any) -> float:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not -1 <= given <= 1:
        raise WrongValue("must be a number from -1 to 1")
    return float(given)


def _words(given: Any) -> str:
    if not isinstance(given, str):
        raise WrongValue("must be a text")
    return " ".join(given.split())


def _text(given: Any) -> str:
    if not isinstance(given, str) or not given.strip() or "\0" in given:
        raise WrongValue("must be a path")
    return given


def _sources(given: Any) -> tuple[str, ...]:
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
        raise WrongValue("must be a list of glob patterns")
    if any("\0" in one for one in listed):
        raise WrongValue("must be patterns without a NUL character")
    return tuple(str(one) for one in listed)


def _paths(given: Any) -> tuple[str, ...]:
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list):
        raise WrongValue("must be a list of paths")
    return tuple(_text(one) for one in listed)


def read_flag(given: Any) -> bool:
    """A switch.

    Raises:
        WrongValue: it is neither on nor off.
    """
    if isinstance(given, bool):
        return given
    word = str(given).strip().lower()
    if word not in _TRUE | _FALSE:
        raise WrongValue("must be true or false")
    return word in _TRUE


RAG: Final[Mapping[str, Field]] = {
    "store": Field(_choice("memory", "file", "sqlite"), "SWEBASH_AI_RAG_STORE"),
    "path": Field(_text, "SWEBASH_AI_RAG_STORE_PATH"),
    "chunk_size": Field(_number(_SMALLEST_CHUNK, MAX_CHUNK), "SWEBASH_AI_RAG_CHUNK_SIZE"),
    "chunk_overlap": Field(_number(0, MAX_CHUNK), "SWEBASH_AI_RAG_CHUNK_OVERLAP"),
    "model": Field(_text),
    "allow": Field(_paths),
}
"""The settings of the block `rag`."""

DOCS: Final[Mapping[str, Field]] = {
    "strategy": Field(_choice("preload", "rag")),
    "mode": Field(_choice("knn", "hybrid")),
    "budget": Field(_number(0, 10_000_000)),
    "top_k": Field(_number(1, 100)),
    "sources": Field(_sources),
    "min_score": Field(_cosine),
    "description": Field(_words),
}
"""The settings of an agent's block `docs`."""

TOOL_FOR_ALL: Final = "SWEBASH_AI_TOOLS_RAG"
BASE: Final = "SWEBASH_AI_DOCS_BASE_DIR"
USER_FILE: Final = "SWEBASH_AGENTS_CONFIG"
VARIABLES: Final = (
    *(one.variable for one in RAG.values() if one.variable),
    TOOL_FOR_ALL,
    BASE,
)
"""The variables that override what files say."""
