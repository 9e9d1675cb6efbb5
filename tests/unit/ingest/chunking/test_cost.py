"""Cost is proportional to the text, counted in tokenised characters instead of seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rag_assets.ingest.chunking import packer
from rag_assets.ingest.chunking.chunkers import CHUNKERS, build_chunk_parameters
from rag_assets.ingest.chunking.packer import Grouping, Limits
from rag_assets.ingest.chunking.units import CutRules
from rag_assets.ingest.parsing.model import Block, ParsedText
from tests.chunking import passages_of

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
    "line ends": "\r\n",
    "abbreviations": "a.1 ",
}


def work(text: str, chunker: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return the number of measurements, and of measured characters."""
    calls, chars = 0, 0

    def spied(parsed: ParsedText, grammar: CutRules, limits: Limits, grouping: Grouping) -> object:
        def count(texts: Sequence[str]) -> list[int]:
            nonlocal calls, chars
            calls += 1
            chars += sum(map(len, texts))
            return grammar.measure.count(texts)

        measure = replace(grammar.measure, count=count)
        return packer.pack(parsed, replace(grammar, measure=measure), limits, grouping)

    monkeypatch.setattr("rag_assets.ingest.chunking.chunkers.pack", spied)
    parsed = ParsedText(text, (Block("paragraph", 0, len(text)),))
    passages_of(parsed, build_chunk_parameters(chunker))
    return calls, chars


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.parametrize("chunker", CHUNKERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_work_is_linear(shape: str, chunker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A step that looked at the whole rest of the text for every passage would count 20 times it.
    size = 80_000
    calls, chars = work("x" + (SHAPES[shape] * size)[:size] + "x", chunker, monkeypatch)
    assert calls <= size / 8
    assert chars <= 12 * size
