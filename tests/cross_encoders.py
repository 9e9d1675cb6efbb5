"""Tiny cross-encoders, made in a millisecond: real ONNX models that rank passages by their words.

    folder = cross_encoder(tmp_path / "model")

The score of a passage is the number of its word pieces that are also in the question. Pairs are
truncated by the tokenizer of the shipped model.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from rag_assets.models.embedding.model_folder import DEFAULT_MODEL, MODELS

_LAST_SPECIAL = 103


def cross_encoder(
    folder: Path, *, classes: int = 1, spoilt: bool = False, window: int = 128
) -> Path:
    """Write a model that counts shared word pieces; return its folder.

    Args:
        classes: number of outputs; of two, the second is the positive class.
        spoilt: whether scores are NaN as soon as a word piece is shared.
        window: maximum number of word pieces in the model's configuration.
    """
    node = helper.make_node
    weights = [[1.0]] if classes == 1 else [[-0.5, 0.5, *[0.0] * (classes - 2)]]
    nodes = [
        node("Unsqueeze", ["input_ids", "axis2"], ["down"]),
        node("Unsqueeze", ["input_ids", "axis1"], ["across"]),
        node("Equal", ["down", "across"], ["same"]),
        node("Equal", ["token_type_ids", "one"], ["of_passage"]),
        node("Unsqueeze", ["of_passage", "axis1"], ["of_passage_across"]),
        node("And", ["same", "of_passage_across"], ["shared"]),
        node("Cast", ["shared"], ["shared_number"], to=TensorProto.FLOAT),
        node("ReduceMax", ["shared_number"], ["found"], axes=[2], keepdims=0),
        node("Greater", ["input_ids", "special"], ["is_word"]),
        node("Equal", ["token_type_ids", "zero"], ["of_question"]),
        node("And", ["is_word", "of_question"], ["asked"]),
        node("Cast", ["asked"], ["asked_number"], to=TensorProto.FLOAT),
        node("Mul", ["found", "asked_number"], ["met"]),
        node("ReduceSum", ["met", "axis1"], ["count"], keepdims=1),
        *([node("Log", ["less"], ["odd"])] if spoilt else []),
        node("MatMul", ["odd" if spoilt else "count", "weights"], ["logits"]),
    ]
    if spoilt:
        nodes.insert(-2, node("Neg", ["count"], ["less"]))
    constants = {"one": 1, "zero": 0, "special": _LAST_SPECIAL, "axis1": [1], "axis2": [2]}
    initializers = [
        *(numpy_helper.from_array(np.array(v, np.int64), name) for name, v in constants.items()),
        numpy_helper.from_array(np.array(weights, np.float32), "weights"),
    ]
    return _write(folder, nodes, initializers, ["batch", classes], window)


def encoder_of_tokens(folder: Path, *, words: int = 40_000) -> Path:
    """Write a model that returns a vector for each word piece, as an embedder does.

    Args:
        words: size of the vocabulary; the model fails on other word pieces.
    """
    table = numpy_helper.from_array(np.ones((words, 3), np.float32), "table")
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["logits"])]
    return _write(folder, nodes, [table], ["batch", "tokens", 3], 128)


def _write(
    folder: Path,
    nodes: list[NodeProto],
    initializers: list[TensorProto],
    shape: list[str | int],
    window: int,
) -> Path:
    known = ("input_ids", "attention_mask", "token_type_ids")
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "overlap",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in known
            if name in used
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(folder / "model.onnx"))
    shutil.copy(MODELS / DEFAULT_MODEL / "tokenizer.json", folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": window}))
    return folder
