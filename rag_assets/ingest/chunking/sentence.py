"""The sentence-aware chunker: whole sentences by Unicode's rules, with limits in characters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_assets.ingest.chunking.boundaries import Rank
from rag_assets.ingest.chunking.graphemes import is_boundary
from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkRequest
from rag_assets.ingest.chunking.measure import CHARACTERS
from rag_assets.ingest.chunking.packer import Limits, one_group, pack
from rag_assets.ingest.chunking.passages import Passage
from rag_assets.ingest.chunking.units import Grammar

# A line end within a paragraph. The repetition is bounded, so that blanks are scanned once.
_SOFT_LINE_END = re.compile(r"\r?\n(?![ \t\r]{0,64}\n)")
_LONGEST_GAP = 64


def split(request: ChunkRequest) -> list[Passage]:
    """Cut a document between sentences, as defined by Unicode's segmentation (UAX 29).

    - A sentence is split, between words, only if it is so long that it leaves no room for a quarter
      of the overlap. A line of code, of a table or of a list counts as a sentence. Among several
      positions, the end of a paragraph is best (see pack). Headings stay with the text below them.
    - Every passage but the first repeats the last whole sentences of the previous passage, or its
      last words if not even one sentence fits the overlap.
    """
    limits = Limits(request.limit, request.overlap, by_sentence=True)
    grammar = Grammar(CHARACTERS, limits.whole, limits.whole, unicode_sentence_cuts)
    return pack(request.parsed, grammar, limits, one_group)


def unicode_sentence_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions between sentences; blank lines have a higher rank.

    Unicode's rules end a sentence at every line end. Here a sentence continues across line ends,
    since most text files are wrapped.
    """
    from unicode_segmentation_rs import unicode_sentences

    # The length stays the same: a lone surrogate, which UTF-8 cannot encode, becomes one question
    # mark.
    prose = text[start:end].encode("utf-8", "replace").decode("utf-8")
    prose = _SOFT_LINE_END.sub(lambda line_end: " " * len(line_end[0]), prose)
    at = 0
    for sentence in unicode_sentences(prose):
        # Runs without a letter or digit are skipped: they belong to the previous sentence.
        found = prose.index(sentence, at)
        at = found + len(sentence)
        cut = start + at - len(sentence.lstrip())
        if cut > start and is_boundary(text, cut):
            yield cut, Rank.PARAGRAPH if _follows_blank_line(text, cut) else Rank.SENTENCE


def _follows_blank_line(text: str, at: int) -> bool:
    before = text[max(0, at - _LONGEST_GAP) : at]
    return before.count("\n", len(before.rstrip())) > 1


SENTENCE = ChunkerKind(
    name="sentence",
    purpose="between sentences, by Unicode's rules",
    split=split,
    unit="characters",
    limit=2000,
    overlap=200,
)
