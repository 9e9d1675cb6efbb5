"""Folders with published models' architectures give the vectors of sentence-transformers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_assets.common.errors import ConfigurationError, InputRejected
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.models.embedding.model_folder import describe_folder
from rag_assets.models.embedding.protocol import Purpose, Vectors
from tests.sentence_encoders import (
    WIDTH,
    Architecture,
    embed_as_sentence_transformers,
    sentence_encoder,
    write_dense,
)

TEXTS = ("red apples", "a river", "the long way home after work")
ALL: tuple[Architecture, ...] = ("bert", "xlm-roberta", "modernbert")
MEAN, CLS = {"pooling_mode_mean_tokens": True}, {"pooling_mode_cls_token": True}


def embed(embedder: OnnxEmbedder, texts: Sequence[str], purpose: Purpose = "document") -> Vectors:
    return asyncio.run(embedder.embed(texts, purpose=purpose)).vectors


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
    expected = embed_as_sentence_transformers(folder, TEXTS, pooling=pooling)
    np.testing.assert_allclose(embed(OnnxEmbedder(folder), TEXTS), expected, atol=1e-5)


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
    tmp_path: Path,
    architecture: Architecture,
    prompts: dict[str, str],
    document: str,
    query: str,
) -> None:
    folder = sentence_encoder(tmp_path / "m", architecture, pooling=MEAN, prompts=prompts)
    embedder = OnnxEmbedder(folder)
    for purpose, prompt in (("document", document), ("query", query)):
        expected = embed_as_sentence_transformers(folder, TEXTS, prompt=prompt)
        np.testing.assert_allclose(embed(embedder, TEXTS, purpose), expected, atol=1e-5)
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
def test_a_window_beyond_the_positions_of_the_model_is_cut_to_them(
    tmp_path: Path, architecture: Architecture
) -> None:
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
    folder = sentence_encoder(
        tmp_path / "m",
        "bert",
        pooling=CLS,
        modules=("Transformer", "Pooling", "Dense", "Normalize"),
    )
    random = np.random.RandomState(3)
    matrix, bias = random.normal(size=(3, WIDTH)), random.normal(size=3)
    write_dense(folder / "2_Dense", matrix, bias, activation)
    bend = np.tanh if activation == "Tanh" else np.asarray
    expected = embed_as_sentence_transformers(
        folder, TEXTS, pooling="cls", project=lambda pooled: bend(pooled @ matrix.T + bias)
    )
    embedder = OnnxEmbedder(folder)
    assert embedder.dimensions == 3
    np.testing.assert_allclose(embed(embedder, TEXTS), expected, atol=1e-5)
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
def test_modules_that_would_not_be_applied_are_refused(
    tmp_path: Path, modules: tuple[str, ...]
) -> None:
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
def test_modules_that_change_nothing_may_be_there_or_missing(
    tmp_path: Path, modules: tuple[str, ...]
) -> None:
    folder = sentence_encoder(tmp_path / "m", "bert", pooling=MEAN, modules=modules)
    expected = embed_as_sentence_transformers(folder, TEXTS)
    np.testing.assert_allclose(embed(OnnxEmbedder(folder), TEXTS), expected, atol=1e-5)


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


def test_a_dense_module_is_not_needed_where_the_network_has_it_in_itself(
    tiny_model: Callable[[], Path],
) -> None:
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
