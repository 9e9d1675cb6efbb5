"""Tiny ONNX cross-encoders, loaded and asked as large ones are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from rag_assets.common.errors import ConfigurationError, RerankFailed
from rag_assets.models.reranking.cross_encoder import CrossEncoder, require_cross_encoder
from tests.cross_encoders import cross_encoder, encoder_of_tokens

QUESTION = "river table green music winter"  # words of one word piece each
PASSAGES = (
    "The garden opens at eight.",
    "In winter there is music by the river, on a green table.",
    "The river in winter.",
)


def scores(
    folder: Path, question: str, passages: Sequence[str], *, seconds: float = 30
) -> list[float]:
    return asyncio.run(CrossEncoder(folder).scores(question, passages, seconds=seconds))


def test_each_passage_has_its_own_score(tmp_path: Path) -> None:
    assert scores(cross_encoder(tmp_path), QUESTION, PASSAGES) == [0, 5, 2]
    assert scores(tmp_path, QUESTION, PASSAGES[::-1]) == [2, 5, 0]


def test_of_two_classes_the_second_counts(tmp_path: Path) -> None:
    assert scores(cross_encoder(tmp_path, classes=2), QUESTION, PASSAGES) == [0, 5, 2]


def test_many_passages_in_many_threads_keep_their_places(tmp_path: Path) -> None:
    reranker = CrossEncoder(cross_encoder(tmp_path), threads=8)
    words = QUESTION.split()
    passages = [" ".join(words[: n % 6]) or "-" for n in range(100)]
    given = asyncio.run(reranker.scores(QUESTION, passages, seconds=30))
    assert given == [n % 6 for n in range(100)]


def test_what_does_not_fit_is_cut_off_the_passage(tmp_path: Path) -> None:
    folder = cross_encoder(tmp_path, window=24)
    filler = "garden " * 30
    assert scores(folder, QUESTION, [f"river {filler}", f"{filler} river"]) == [1, 0]


def test_a_question_leaves_half_of_the_window_to_the_passage(tmp_path: Path) -> None:
    folder = cross_encoder(tmp_path, window=24)
    question = "river " + "garden " * 500 + "winter"
    assert scores(folder, question, ["a river", "in winter"]) == [1, 0]


def test_lone_surrogates_are_scored_as_well(tmp_path: Path) -> None:
    given = scores(cross_encoder(tmp_path), f"\ud800 {QUESTION}", ["river \udfff"])
    assert given[0] >= 1


def test_a_late_search_ends_in_time_and_leaves_the_cores_free(tmp_path: Path) -> None:
    reranker = CrossEncoder(cross_encoder(tmp_path, window=512), threads=2)
    reranker.check()
    long = "garden " * 500
    started = time.monotonic()
    with pytest.raises(RerankFailed) as caught:
        asyncio.run(reranker.scores(QUESTION, [long] * 5_000, seconds=0.05))
    assert caught.value.fault == "late"
    # What is under way may end, and is shorter than this; 5,000 passages are not.
    assert asyncio.run(reranker.scores(QUESTION, PASSAGES, seconds=1)) == [0, 5, 2]
    assert time.monotonic() - started < 1


def test_a_score_that_is_no_number_is_none(tmp_path: Path) -> None:
    with pytest.raises(RerankFailed, match="not a number") as caught:
        scores(cross_encoder(tmp_path, spoilt=True), QUESTION, PASSAGES)
    assert caught.value.fault == "malformed"


def test_a_folder_without_a_cross_encoder_is_refused_when_it_is_configured(tmp_path: Path) -> None:
    def refusal(folder: Path) -> str:
        with pytest.raises(ConfigurationError) as caught:
            require_cross_encoder(folder)
        return caught.value.advice

    require_cross_encoder(cross_encoder(tmp_path / "fine"))
    assert "the model's folder does not exist" in refusal(tmp_path / "nowhere")
    assert "not one score a pair" in refusal(encoder_of_tokens(tmp_path / "vectors"))
    assert "(1, 3)" in refusal(cross_encoder(tmp_path / "three", classes=3))
    assert "cannot read a question" in refusal(encoder_of_tokens(tmp_path / "few", words=10))
    lacking = cross_encoder(tmp_path / "lacking")
    (lacking / "tokenizer.json").unlink()
    assert "tokenizer.json" in refusal(lacking)
    broken = cross_encoder(tmp_path / "broken")
    (broken / "model.onnx").write_bytes(b"none")
    assert "cannot load" in refusal(broken)
