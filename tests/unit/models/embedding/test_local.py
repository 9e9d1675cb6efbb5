"""The shipped model, and a tiny one of another kind."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.common.errors import BadVectors, ConfigurationError, InputRejected
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.models.embedding.protocol import Embedder, Vectors
from rag_assets.models.onnx import count_cores

TEXTS = (
    "How do I reset my password?",
    "I forgot my login credentials and need new ones.",
    "The cat slept on the warm windowsill all afternoon.",
    "A kitten was napping in the sun by the window.",
    "Quarterly revenue grew by twelve percent.",
    "Sales rose 12 % compared with the previous quarter.",
)


@pytest.fixture(scope="module")
def minilm() -> OnnxEmbedder:
    return OnnxEmbedder()


def embed(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    return asyncio.run(embedder.embed(texts)).vectors


def long_text(words: int, seed: int = 0) -> str:
    """Return a text of words that are one word piece each."""
    vocabulary = ["river", "table", "green", "music", "winter", "paper", "engine", "garden"]
    return " ".join(random.Random(seed).choices(vocabulary, k=words))


def test_paraphrases_are_closer_than_anything_else(minilm):
    cosine = embed(minilm, TEXTS) @ embed(minilm, TEXTS).T
    for first, second in ((0, 1), (2, 3), (4, 5)):
        others = [n for n in range(6) if n not in {first, second}]
        assert cosine[first, second] > 0.5
        assert cosine[first, others].max() < 0.25


def test_a_question_finds_its_answer_in_the_expected_order(minilm):
    query = embed(minilm, ["How long can I send something back?"])[0]
    passages = [
        "Returns are accepted within thirty days of delivery.",
        "We ship orders to your address within three days.",
        "The museum opens at nine.",
    ]
    scores = embed(minilm, passages) @ query
    assert list(np.argsort(-scores)) == [0, 1, 2]


def test_the_shape_type_and_norm_are_as_promised(minilm):
    vectors = embed(minilm, TEXTS)
    assert vectors.shape == (6, minilm.dimensions) == (6, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert embed(minilm, []).shape == (0, 384)


@pytest.mark.slow
def test_a_vector_is_bit_identical_whatever_the_order_the_company_and_the_threads(minilm):
    texts = [*TEXTS, *(long_text(n, n) for n in (3, 40, 120, 254, 300))]
    alone = np.vstack([embed(minilm, [text]) for text in texts])
    order = list(range(len(texts)))
    for threads in (1, 2, 5):
        other = OnnxEmbedder(threads=threads)
        random.Random(threads).shuffle(order)
        shuffled = embed(other, [texts[n] for n in order])
        np.testing.assert_array_equal(shuffled, alone[order])


def test_a_long_text_is_the_weighted_mean_of_its_windows(minilm):
    text = long_text(254 * 2 + 60)
    words = text.split()
    parts = [" ".join(words[start : start + 254]) for start in (0, 254, 508)]
    mean = (embed(minilm, parts) * np.array([[254], [254], [60]])).sum(axis=0)
    np.testing.assert_allclose(
        embed(minilm, [text])[0], mean / np.linalg.norm(mean), rtol=0, atol=1e-6
    )
    assert minilm.count_tokens([text, parts[0], parts[2]]) == [254 * 2 + 60 + 6, 256, 62]


def test_the_end_of_a_long_text_counts(minilm):
    start = long_text(254)
    one, other = embed(minilm, [f"{start} {TEXTS[2] * 20}", f"{start} {TEXTS[4] * 20}"])
    assert one @ other < 0.9


def test_a_text_that_just_fits_is_not_windowed(minilm):
    # Each window has two special tokens of its own.
    assert minilm.count_tokens([long_text(254), long_text(255)]) == [254 + 2, 255 + 2 * 2]


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b", "\x00\x01", "\ud800", "\u3000"])
def test_what_holds_nothing_to_read_is_rejected(minilm, text):
    with pytest.raises(InputRejected, match="text 2 of 3"):
        embed(minilm, ["fine", text, "also fine"])


@pytest.mark.slow
@settings(max_examples=60)
@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=40))
def test_any_string_gives_a_unit_vector_or_is_rejected(minilm, text):
    try:
        vector = embed(minilm, [text])[0]
    except InputRejected:
        return
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


def test_a_lone_surrogate_changes_nothing_around_it(minilm):
    broken, whole = embed(minilm, ["the file \udce9 was lost", "the file was lost"])
    assert broken @ whole > 0.8
    pair, emoji = embed(minilm, ["a \ud83d\ude00 b", "a 😀 b"])
    np.testing.assert_array_equal(pair, emoji)


def test_no_text_appears_in_an_error(minilm):
    with pytest.raises(InputRejected) as caught:
        embed(minilm, ["secret words", ""])
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.slow
def test_it_is_usable_after_it_was_closed():
    embedder = OnnxEmbedder()
    first = embed(embedder, TEXTS[:1])
    asyncio.run(embedder.close())
    np.testing.assert_array_equal(embed(embedder, TEXTS[:1]), first)


def test_cancelling_drops_what_has_not_begun():
    embedder = OnnxEmbedder(threads=1)
    embed(embedder, ["load the model"])

    def seconds(text: str) -> float:
        started = time.process_time()
        embed(embedder, [text])
        return time.process_time() - started

    of_one = seconds(long_text(10_000))

    async def cancelled() -> None:
        async with asyncio.timeout(0.1):
            await embedder.embed([long_text(10_000, seed) for seed in range(32)])

    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())
    # It waits for what had begun, not for 32 texts.
    assert seconds("short") < 8 * of_one


def test_threads_default_to_the_cores_left_to_this_process():
    import os

    assert 1 <= count_cores() <= (os.cpu_count() or 1)


@pytest.mark.parametrize("integer", [6, 7])
def test_a_model_that_pools_itself(tiny_model, integer):
    embedder = OnnxEmbedder(tiny_model(integer=integer))
    vectors = embed(embedder, ["red", "red green", "blue blue green"])
    half = np.sqrt(0.5)
    # "blue blue green" takes two windows of two: (2 · blue + 1 · green) / |…|
    expected = [[1, 0, 0], [half, half, 0], np.array([0, 1, 2]) / np.sqrt(5)]
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("pooling", "expected"), [("mean", [np.sqrt(0.5), np.sqrt(0.5), 0]), ("cls", [0, 1, 0])]
)
@pytest.mark.parametrize("output", ["last_hidden_state", "token_embeddings", "output_0"])
def test_a_model_that_returns_tokens_is_pooled(tiny_model, output, pooling, expected):
    embedder = OnnxEmbedder(tiny_model(output=output), pooling=pooling)
    np.testing.assert_allclose(embed(embedder, ["green red"])[0], expected, atol=1e-6)


def test_a_wrong_dimension_is_a_configuration_error(tiny_model):
    with pytest.raises(ConfigurationError, match="returns 3 dimensions, not 4") as caught:
        embed(OnnxEmbedder(tiny_model(), dimensions=4), ["red"])
    assert caught.value.hint == "set the embedder's dimensions to 3"


@pytest.mark.parametrize("text", ["red void", "nothing", "red red nothing"])
def test_a_vector_without_numbers_or_direction_is_never_returned(tiny_model, text):
    with pytest.raises(BadVectors, match=r"not 3 finite numbers with a direction"):
        embed(OnnxEmbedder(tiny_model()), ["red", text])


def test_a_model_with_unknown_inputs_is_refused(tiny_model):
    with pytest.raises(ConfigurationError, match="pixel_values"):
        embed(OnnxEmbedder(tiny_model(input_name="pixel_values")), ["red"])


def test_files_that_are_not_what_they_seem_are_named(tiny_model):
    folder = tiny_model("one")
    (folder / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ConfigurationError, match=r"cannot load.*model\.onnx"):
        embed(OnnxEmbedder(folder), ["red"])
    folder = tiny_model("two")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"tokenizer\.json"):
        embed(OnnxEmbedder(folder), ["red"])
