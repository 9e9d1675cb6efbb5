import asyncio
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.common.errors import BadVectors, ConfigurationError, InputRejected
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.models.embedding.model_folder import describe_folder
from rag_assets.models.embedding.protocol import Embedder, Purpose, Vectors
from rag_assets.models.onnx import count_cores
from tests.sentence_encoders import (
    WIDTH,
    Architecture,
    embed_as_sentence_transformers,
    sentence_encoder,
    write_dense,
)

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


def embed(embedder: Embedder, texts: Sequence[str], purpose: Purpose = "document") -> Vectors:
    return asyncio.run(embedder.embed(texts, purpose=purpose)).vectors


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
    whole = embed(minilm, [text])[0]
    np.testing.assert_allclose(whole, mean / np.linalg.norm(mean), rtol=0, atol=1e-6)
    assert minilm.count_tokens([text, parts[0], parts[2]]) == [254 * 2 + 60 + 6, 256, 62]


def test_a_text_that_just_fits_is_not_windowed(minilm):
    # Each window has two special tokens of its own.
    assert minilm.count_tokens([long_text(254), long_text(255)]) == [254 + 2, 255 + 2 * 2]


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b", "\x00\x01", "\ud800", "\u3000"])
def test_what_holds_nothing_to_read_is_rejected(minilm, text):
    with pytest.raises(InputRejected, match="text 2 of 3") as caught:
        embed(minilm, ["secret words", text, "more of them"])
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"


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


SAMPLES = ("red apples", "a river", "the long way home after work")
ALL: tuple[Architecture, ...] = ("bert", "xlm-roberta", "modernbert")
MEAN, CLS = {"pooling_mode_mean_tokens": True}, {"pooling_mode_cls_token": True}


@pytest.mark.parametrize("architecture", ALL)
@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        (MEAN, "mean"),
        (CLS, "cls"),
        ({"pooling_mode_lasttoken": True, "pooling_mode_mean_tokens": False}, "last"),
        ({"pooling_mode": "cls"}, "cls"),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, "mean"),
    ],
)
def test_vectors_equal_those_of_a_padded_batch(
    tmp_path: Path, architecture: Architecture, config: dict[str, Any], pooling: str
) -> None:
    folder = sentence_encoder(tmp_path / "m", architecture, pooling=config)
    expected = embed_as_sentence_transformers(folder, SAMPLES, pooling=pooling)
    np.testing.assert_allclose(embed(OnnxEmbedder(folder), SAMPLES), expected, atol=1e-5)


@pytest.mark.parametrize("architecture", ALL)
@pytest.mark.parametrize(
    ("prompts", "document", "query"),
    [
        ({"query": "query: ", "document": "text: "}, "text: ", "query: "),
        ({"query": "query: ", "passage": "passage: "}, "passage: ", "query: "),
        ({"query": "find: "}, "", "find: "),
        ({"clustering": "cluster: "}, "", ""),
    ],
)
def test_texts_and_questions_have_the_prompts_of_the_folder(
    tmp_path: Path, architecture: Architecture, prompts: dict[str, str], document: str, query: str
) -> None:
    folder = sentence_encoder(tmp_path / "m", architecture, pooling=MEAN, prompts=prompts)
    embedder = OnnxEmbedder(folder)
    for purpose, prompt in (("document", document), ("query", query)):
        expected = embed_as_sentence_transformers(folder, SAMPLES, prompt=prompt)
        np.testing.assert_allclose(embed(embedder, SAMPLES, purpose), expected, atol=1e-5)
    plain = sentence_encoder(tmp_path / "plain" / "m", architecture, pooling=MEAN)
    is_plain = not (document or query)
    assert (embedder.embedder_id == OnnxEmbedder(plain).embedder_id) is is_plain
    configured = OnnxEmbedder(plain, document_prefix=document, query_prefix=query)
    assert configured.embedder_id == embedder.embedder_id
    with pytest.raises(InputRejected):
        embed(embedder, [" \n"])


def test_a_default_prompt_stands_before_texts_that_have_none(tmp_path: Path) -> None:
    folder = sentence_encoder(tmp_path / "m", "bert", pooling=MEAN, prompts={"any": "x: "})
    path = folder / "config_sentence_transformers.json"
    path.write_text(json.dumps({"prompts": {"any": "x: "}, "default_prompt_name": "any"}))
    described = describe_folder(folder)
    assert (described.document_prefix, described.query_prefix) == ("x: ", "x: ")


def test_a_prompt_that_is_not_pooled_still_changes_the_vector(tmp_path: Path) -> None:
    pooling = {**MEAN, "include_prompt": False}
    folder = sentence_encoder(tmp_path / "m", "bert", pooling=pooling, prompts={"query": "find: "})
    alone, prompted = (embed(OnnxEmbedder(folder), ["river"], p)[0] for p in ("document", "query"))
    pooled = embed_as_sentence_transformers(folder, ["river"], prompt="find: ")[0]
    assert abs(prompted @ pooled) < 0.999
    assert abs(prompted @ alone) < 0.999


def test_whether_a_prompt_is_pooled_counts_only_where_there_is_one(tmp_path: Path) -> None:
    folder = sentence_encoder(tmp_path / "m", "bert", pooling={**MEAN, "include_prompt": False})
    plain = sentence_encoder(tmp_path / "plain" / "m", "bert", pooling=MEAN)

    def ids(document: str = "", query: str = "") -> set[str]:
        return {
            describe_folder(each, document_prefix=document, query_prefix=query).embedder_id
            for each in (folder, plain)
        }

    assert len(ids()) == 1
    assert len(ids(query="find: ")) == len(ids(document="text: ")) == 2


def test_positions_that_start_after_the_padding_id_limit_the_window(tmp_path: Path) -> None:
    folder = sentence_encoder(tmp_path / "m", "xlm-roberta", pooling=MEAN, positions=18)
    embedder = OnnxEmbedder(folder)
    assert embedder.window == 16
    vector = embed(embedder, ["a b c d e f g h i j k l m n o p q r s t u v w x y z"])[0]
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("architecture", ["bert", "xlm-roberta"])
def test_a_window_is_cut_to_its_positions(tmp_path: Path, architecture: Architecture) -> None:
    stated = {"max_seq_length": 512}
    folder = sentence_encoder(
        tmp_path / "m", architecture, pooling=CLS, positions=20, stated=stated
    )
    embedder = OnnxEmbedder(folder)
    assert embedder.window == (20 if architecture == "bert" else 18)
    assert embed(embedder, ["word " * 40]).shape == (1, WIDTH)


def test_texts_are_read_in_lower_case_where_the_folder_says_so(tmp_path: Path) -> None:
    stated = {"max_seq_length": 32, "do_lower_case": True}
    folder = sentence_encoder(tmp_path / "m", "modernbert", pooling=MEAN, stated=stated)
    one, other = embed(OnnxEmbedder(folder), ["RED", "red"])
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("activation", ["Tanh", "Identity"])
def test_a_dense_module_projects_the_pooled_vector(tmp_path: Path, activation: str) -> None:
    modules = ("Transformer", "Pooling", "Dense", "Normalize")
    folder = sentence_encoder(tmp_path / "m", "bert", pooling=CLS, modules=modules)
    random = np.random.RandomState(3)
    matrix, bias = random.normal(size=(3, WIDTH)), random.normal(size=3)
    write_dense(folder / "2_Dense", matrix, bias, activation)
    bend = np.tanh if activation == "Tanh" else np.asarray
    expected = embed_as_sentence_transformers(
        folder, SAMPLES, pooling="cls", project=lambda pooled: bend(pooled @ matrix.T + bias)
    )
    embedder = OnnxEmbedder(folder)
    assert embedder.dimensions == 3
    np.testing.assert_allclose(embed(embedder, SAMPLES), expected, atol=1e-5)
    before = embedder.embedder_id
    (folder / "2_Dense" / "model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    assert describe_folder(folder).embedder_id != before
    with pytest.raises(ConfigurationError, match=r"linear\.weight.*safetensors"):
        embed(OnnxEmbedder(folder), ["a river"])


@pytest.mark.parametrize(
    "modules",
    [
        ("StaticEmbedding",),
        ("Transformer", "Pooling", "LayerNorm", "Normalize"),
        ("Transformer", "Pooling", "Normalize", "Dense"),
    ],
)
def test_unsupported_modules_are_refused(tmp_path: Path, modules: tuple[str, ...]) -> None:
    folder = sentence_encoder(tmp_path / "m", "bert", pooling=MEAN, modules=modules)
    with pytest.raises(ConfigurationError, match=f"not supported \\({', '.join(modules)}\\)"):
        describe_folder(folder)


@pytest.mark.parametrize(
    "modules",
    [
        ("Transformer",),
        ("Transformer", "Normalize"),
        ("Transformer", "Pooling", "Dropout", "Normalize"),
        ("Transformer", "Dropout", "Pooling"),
    ],
)
def test_modules_that_change_nothing_may_be_there(tmp_path: Path, modules: tuple[str, ...]) -> None:
    folder = sentence_encoder(tmp_path / "m", "bert", pooling=MEAN, modules=modules)
    expected = embed_as_sentence_transformers(folder, SAMPLES)
    np.testing.assert_allclose(embed(OnnxEmbedder(folder), SAMPLES), expected, atol=1e-5)


def write_old_dense(folder: Path, activation: str = "Tanh") -> None:
    write_dense(folder, np.eye(3, WIDTH), np.zeros(3), activation)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def test_a_dense_module_that_cannot_be_read_is_named_when_it_is_needed(tmp_path: Path) -> None:
    modules = ("Transformer", "Pooling", "Dense")
    folder = sentence_encoder(tmp_path / "m", "bert", pooling=MEAN, modules=modules)
    write_old_dense(folder / "2_Dense")
    embedder = OnnxEmbedder(folder)
    assert embedder.dimensions == 3
    with pytest.raises(ConfigurationError, match=r"no model\.safetensors.*2_Dense"):
        embed(embedder, ["a river"])
    write_dense(tmp_path / "other", np.eye(3, WIDTH), np.zeros(3), "GELU")
    (folder / "2_Dense").rename(tmp_path / "old")
    (tmp_path / "other").rename(folder / "2_Dense")
    with pytest.raises(ConfigurationError, match=r"activation.*\(gelu\).*2_Dense.config\.json"):
        embed(OnnxEmbedder(folder), ["a river"])


def test_a_dense_module_within_the_network_is_not_needed(tiny_model: Callable[[], Path]) -> None:
    folder = tiny_model()
    expected = embed(OnnxEmbedder(folder), ["red"])
    kinds = ("Transformer", "Pooling", "Dense", "Normalize")
    modules = [{"path": f"{n}_{kind}", "type": f"x.{kind}"} for n, kind in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(modules))
    write_old_dense(folder / "2_Dense", "GELU")
    np.testing.assert_array_equal(embed(OnnxEmbedder(folder), ["red"]), expected)


@pytest.mark.parametrize(
    ("shape", "biases", "error"),
    [((3, WIDTH + 1), 3, f"expects {WIDTH + 1} dimensions, not {WIDTH}"), ((3, WIDTH), 2, "bias")],
)
def test_a_dense_module_of_another_shape_is_named(
    tmp_path: Path, shape: tuple[int, int], biases: int, error: str
) -> None:
    modules = ("Transformer", "Pooling", "Dense")
    folder = sentence_encoder(tmp_path / "m", "bert", pooling=MEAN, modules=modules)
    write_dense(folder / "2_Dense", np.ones(shape), np.zeros(biases), "Tanh")
    with pytest.raises(ConfigurationError, match=rf"{error}.*2_Dense.model\.safetensors"):
        embed(OnnxEmbedder(folder), ["a river"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config_sentence_transformers.json", {"prompts": ["a"]}),
        ("config_sentence_transformers.json", {"prompts": {"query": 1}}),
        ("config_sentence_transformers.json", {"prompts": {}, "default_prompt_name": ["a"]}),
        ("1_Pooling/config.json", {"pooling_mode": [["mean"]]}),
        ("1_Pooling/config.json", {"pooling_mode": {"mean": True}}),
    ],
)
def test_malformed_settings_are_named(tmp_path: Path, name: str, content: dict[str, Any]) -> None:
    folder = sentence_encoder(tmp_path / "m", "bert", pooling=MEAN)
    (folder / name).write_text(json.dumps(content))
    with pytest.raises(ConfigurationError, match=name):
        describe_folder(folder)
