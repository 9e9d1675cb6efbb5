from __future__ import annotations

from typing import Any

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.chunkers import CHUNKERS, build_chunk_parameters
from rag_assets.ingest.chunking.kinds import MAX_TOKENS
from rag_assets.ingest.parsing.model import ParsedText
from tests.chunking import parameters_of, passages_of


@pytest.mark.parametrize(
    ("chunker", "limit", "overlap"),
    [("heading", 1200, 150), ("recursive", 512, 64), ("sentence", 2000, 200), ("record", 1200, 0)],
)
def test_each_chunker_has_its_own_defaults(chunker: str, limit: int, overlap: int) -> None:
    assert build_chunk_parameters(chunker) == parameters_of(chunker, limit, overlap)


def test_a_limit_alone_takes_an_overlap_in_proportion() -> None:
    assert build_chunk_parameters("recursive", max_tokens=256).overlap == 32
    assert build_chunk_parameters("sentence", max_characters=100).overlap == 10
    assert build_chunk_parameters("recursive", overlap=10) == parameters_of("recursive", 512, 10)


@pytest.mark.parametrize(
    ("chunker", "settings", "says"),
    [
        ("nope", {}, "'nope'"),
        ("heading", {"max_tokens": 15}, "max_tokens is 15"),
        ("recursive", {"max_tokens": 8192}, "max_tokens is 8192"),
        ("sentence", {"max_characters": 63}, "max_characters is 63"),
        ("sentence", {"max_characters": 2048}, "max_characters is 2048"),
        ("heading", {"max_tokens": 64, "overlap": 33}, "overlap is 33"),
        ("heading", {"max_tokens": 64, "overlap": -1}, "overlap is -1"),
        ("sentence", {"max_characters": 100, "overlap": 51}, "overlap is 51"),
        ("recursive", {"max_characters": 100}, "has no setting max_characters"),
        ("sentence", {"max_tokens": 100}, "has no setting max_tokens"),
        ("record", {"overlap": 0}, "has no setting overlap"),
    ],
)
def test_what_does_not_fit_the_chunker_is_refused(
    chunker: str, settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says) as refused:
        build_chunk_parameters(chunker, **settings)
    assert chunker in refused.value.message
    assert refused.value.hint


def test_an_unknown_chunker_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigurationError) as refused:
        build_chunk_parameters("nope")
    assert all(name in (refused.value.hint or "") for name in CHUNKERS)


@pytest.mark.parametrize("char", ["a", "漢", "\U0001f469", "\U00020000", "\U0010fffd", "\u0301"])
def test_the_largest_limit_in_characters_keeps_to_the_tokens_an_embedder_takes(char: str) -> None:
    most = build_chunk_parameters("sentence", max_characters=MAX_TOKENS // 4, overlap=0)
    assert most.max_tokens <= MAX_TOKENS
    [passage] = passages_of(ParsedText(char * most.limit, ()), most)
    assert passage.token_count == count_text(char * most.limit) <= most.max_tokens
