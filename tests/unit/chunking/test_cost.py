"""Work grows in proportion to the text: counted in characters tokenised, not in seconds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rag_assets.chunking import heading, overlap, tokens, units
from rag_assets.chunking.heading import HeadingChunker
from rag_assets.chunking.tokens import count_tokens
from rag_assets.parsing.model import Block, ParsedText

SHAPES = {
    "prose": "The quick tenant keeps nine vectors in its lake. ",
    "words": "word ",
    "no space": "a",
    "json": '{"id":123,"name":"abc","v":[1.25,2,3]},',
    "cjk": "漢字仮名交じり文",
    "emoji": "👨‍👩‍👧‍👦🇩🇪",
    "marks": "\u0301",
    "dots": ".",
    "blank lines": "a\n\n\n",
    "spaces": "        ",
}


def work(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Calls of the tokeniser and characters given to it."""
    calls, chars = 0, 0

    def spy(texts: Sequence[str]) -> list[int]:
        nonlocal calls, chars
        calls += 1
        chars += sum(map(len, texts))
        return count_tokens(texts)

    for module in (units, overlap):
        monkeypatch.setattr(module, "count_tokens", spy)
    monkeypatch.setattr(heading, "count_text", lambda one: spy([one])[0])
    HeadingChunker(256, 32).split(ParsedText(text, (Block("paragraph", 0, len(text)),)))
    return calls, chars


@pytest.mark.parametrize("shape", SHAPES)
def test_work_is_linear(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A step that looked at the whole rest of the text for every passage would count 40 times it.
    size = 80_000
    calls, chars = work("x" + (SHAPES[shape] * size)[:size] + "x", monkeypatch)
    assert calls <= size / 8
    assert chars <= 12 * size


def test_tokens_are_those_of_cl100k_base() -> None:
    assert tokens.count_tokens(["", "hello world", "🧠", "    x"]) == [0, 2, 3, 2]
    assert tokens.count_text("tiktoken is great!") == 6
    assert tokens.count_text("<|endoftext|>") > 1
