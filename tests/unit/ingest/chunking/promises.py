"""The promises of every chunker about every document."""

from itertools import pairwise

from hypothesis import HealthCheck, settings

from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.chunking.model import Passage
from rag_assets.ingest.parsing.model import ParsedText
from tests.chunking import passages_of

quick = settings(max_examples=60, suppress_health_check=list(HealthCheck))


def texts(parsed: ParsedText, passages: list[Passage]) -> list[str]:
    return [parsed.text[passage.start : passage.end] for passage in passages]


def uncovered(parsed: ParsedText, passages: list[Passage]) -> str:
    """Return the text outside of white space and front matter that is new in no passage."""
    left = list(parsed.text)
    spans = [(b.start, b.end) for b in parsed.blocks if b.kind == "front_matter"]
    for start, end in [*spans, *((p.new_start, p.end) for p in passages)]:
        left[start:end] = " " * (end - start)
    return "".join(left).strip()


def size(text: str, parameters: ChunkParameters) -> int:
    return count_text(text) if parameters.kind.unit == "tokens" else len(text)


def sized(passage: Passage, text: str, parameters: ChunkParameters) -> int:
    """Return the size of a passage with its context."""
    context = f"{passage.context}\n" if passage.context else ""
    return size(text, parameters) + size(context, parameters)


def must_repeat(
    parsed: ParsedText, before: Passage, after: Passage, parameters: ChunkParameters
) -> bool:
    """Return whether words must be repeated: if there is room, outside rows and code."""
    new = [b for b in parsed.blocks if b.start < after.end and after.new_start < b.end]
    last = [b for b in parsed.blocks if b.start < before.end][-1]
    begun = [b for b in new if b.start >= after.new_start or b.kind in {"table", "list"}]
    most = parameters.limit - parameters.overlap
    whole = parsed.text[after.new_start : begun[0].end] if begun else ""
    if begun and begun[0].kind == "heading":
        whole = parsed.text[after.new_start : next(b for b in new if b.kind != "heading").end]
    return last.kind not in {"table", "row", "code"} and size(whole, parameters) < most


def check_promises(parsed: ParsedText, parameters: ChunkParameters) -> list[Passage]:
    """Split a document, and check the promises of the passages."""
    passages = passages_of(parsed, parameters)
    assert uncovered(parsed, passages) == ""
    for passage, text in zip(passages, texts(parsed, passages), strict=True):
        assert sized(passage, text, parameters) <= parameters.limit
        context = count_text(f"{passage.context}\n") if passage.context else 0
        assert passage.token_count == count_text(text) + context
        assert passage.token_count <= parameters.max_tokens <= 8191
        assert text.strip()
        assert not text[-1].isspace()
        assert passage.start <= passage.new_start < passage.end
    for before, after in pairwise(passages):
        assert before.start <= after.start
        assert before.end <= after.new_start
        if after.start < after.new_start:
            repeated = parsed.text[after.start : before.end]
            assert 0 < size(repeated, parameters) <= parameters.overlap
    return passages
