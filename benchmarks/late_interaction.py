"""Build a reranker from the shipped embedding model: a stand-in for a cross-encoder.

    python -m benchmarks.late_interaction FOLDER

FOLDER can be set as a tenant's `retrieval.rerank.folder`. No cross-encoder is shipped or
downloaded; this one needs only all-MiniLM-L6-v2, and is not trained as a cross-encoder. It
implements ColBERT's late interaction ("MaxSim": Khattab and Zaharia, 2020): question and passage
go through the model separately, every word piece of the question takes the cosine of the nearest
word piece of the passage, and the score is their mean, weighted by rarity. Rarity is the logarithm
of a word piece's rank in BERT's vocabulary, which is ordered by frequency (Zipf's law). Nothing is
learned from any judged question.

The ONNX graph takes a pair as cross-encoders do ([CLS] question [SEP] passage [SEP], separated by
token_type_ids) and splits it itself. It costs as much as a cross-encoder of six such layers.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from rag_assets.models.embedding.model_folder import DEFAULT_MODEL, MODELS

_WINDOW = 512
_SPECIAL = 104
"""Number of special and unused word pieces at the start of BERT's vocabulary."""
_FIRST_WORD = 1996
"""Position of the most frequent word, "the"; single characters precede it."""
_LOWEST = -1e4


def build_reranker(folder: Path) -> None:
    """Write the reranker's files into a folder.

    Args:
        folder: is created if it is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shipped = MODELS / DEFAULT_MODEL
    encoder = onnx.load(str(shipped / "model_quantized.onnx"))
    config = json.loads((shipped / "config.json").read_text(encoding="utf-8"))
    onnx.save(_build_model(encoder, config["vocab_size"]), str(folder / "model.onnx"))
    shutil.copy(shipped / "tokenizer.json", folder / "tokenizer.json")
    window = json.dumps({"max_seq_length": _WINDOW})
    (folder / "sentence_bert_config.json").write_text(window, encoding="utf-8")


def compute_rarity(vocabulary: int) -> np.ndarray:
    """Return the weight of each word piece; shape (vocabulary,), float32.

    Args:
        vocabulary: number of word pieces.
    """
    ranks = np.maximum(np.arange(vocabulary) - _FIRST_WORD + 1, 1)
    weights = np.log1p(ranks).astype(np.float32)
    weights[:_SPECIAL] = 0
    return weights


def _build_model(encoder: onnx.ModelProto, vocabulary: int) -> onnx.ModelProto:
    constants: dict[str, npt.NDArray[Any]] = {
        "zero": np.array(0, np.int64),
        "one": np.array(1, np.int64),
        "axis1": np.array([1], np.int64),
        "start": np.array([0], np.int64),
        "lowest": np.array(_LOWEST, np.float32),
        "tiny": np.array(1e-9, np.float32),
        "first_word_piece": np.array(_SPECIAL, np.int64),
        "rarity": compute_rarity(vocabulary),
    }
    nodes = [
        *_split_pair(),
        *_copy_nodes(encoder.graph, "question"),
        *_copy_nodes(encoder.graph, "passage"),
        *_score(),
    ]
    graph = helper.make_graph(
        nodes,
        "late_interaction",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])],
        [
            *encoder.graph.initializer,
            *(numpy_helper.from_array(value, name) for name, value in constants.items()),
        ],
    )
    model = helper.make_model(graph, opset_imports=encoder.opset_import)
    model.ir_version = encoder.ir_version
    onnx.checker.check_model(model)
    return model


def _split_pair() -> Iterator[onnx.NodeProto]:
    """Yield nodes that split a pair into [CLS] question [SEP] and [CLS] passage [SEP]."""
    node = helper.make_node
    # The question, cut to the longest of the batch.
    yield node("Sub", ["one", "token_type_ids"], ["of_question"])
    yield node("Mul", ["attention_mask", "of_question"], ["question.mask_long"])
    yield node("ReduceSum", ["question.mask_long", "axis1"], ["question.length"], keepdims=1)
    yield node("ReduceMax", ["question.length"], ["question.longest"], keepdims=0)
    yield node("Unsqueeze", ["question.longest", "start"], ["question.end"])
    for name, source in (("input_ids", "input_ids"), ("attention_mask", "question.mask_long")):
        ends = ["start", "question.end", "axis1"]
        yield node("Slice", [source, *ends], [f"question.{name}"])
    yield node("Mul", ["question.attention_mask", "zero"], ["question.token_type_ids"])
    # The passage, moved left until the question's [SEP] is in the position of its [CLS].
    yield node("Mul", ["attention_mask", "token_type_ids"], ["passage.mask_there"])
    yield node("Shape", ["input_ids"], ["shape"])
    yield node("Gather", ["shape", "one"], ["width"])
    yield node("Range", ["zero", "width", "one"], ["positions"])
    yield node("Unsqueeze", ["positions", "start"], ["row"])
    yield node("Sub", ["question.length", "one"], ["offset"])
    yield node("Add", ["row", "offset"], ["moved"])
    yield node("Sub", ["width", "one"], ["last"])
    yield node("Min", ["moved", "last"], ["from"])
    yield node("GatherElements", ["input_ids", "from"], ["passage.ids_moved"], axis=1)
    yield node("GatherElements", ["passage.mask_there", "from"], ["passage.mask_moved"], axis=1)
    yield node("Less", ["moved", "width"], ["inside"])
    yield node("Cast", ["inside"], ["inside_number"], to=TensorProto.INT64)
    yield node("Mul", ["passage.mask_moved", "inside_number"], ["passage.mask_inside"])
    yield node("Equal", ["row", "zero"], ["first"])
    yield node("Gather", ["input_ids", "start"], ["cls"], axis=1)
    yield node("Where", ["first", "cls", "passage.ids_moved"], ["passage.ids_long"])
    yield node("Where", ["first", "one", "passage.mask_inside"], ["passage.mask_long"])
    yield node("ReduceSum", ["passage.mask_long", "axis1"], ["passage.length"], keepdims=1)
    yield node("ReduceMax", ["passage.length"], ["passage.longest"], keepdims=0)
    yield node("Unsqueeze", ["passage.longest", "start"], ["passage.end"])
    for name, source in (("input_ids", "ids_long"), ("attention_mask", "mask_long")):
        ends = ["start", "passage.end", "axis1"]
        yield node("Slice", [f"passage.{source}", *ends], [f"passage.{name}"])
    yield node("Mul", ["passage.attention_mask", "zero"], ["passage.token_type_ids"])


def _copy_nodes(encoder: onnx.GraphProto, prefix: str) -> Iterator[onnx.NodeProto]:
    """Yield a copy of the encoder's nodes, with the same weights and prefixed names."""
    weights = {tensor.name for tensor in encoder.initializer}
    for original in encoder.node:
        node = onnx.NodeProto()
        node.CopyFrom(original)
        node.name = f"{prefix}.{original.name}" if original.name else ""
        _rename(node.input, prefix, weights)
        _rename(node.output, prefix, weights)
        yield node


def _rename(names: list[str], prefix: str, weights: set[str]) -> None:
    names[:] = [name if name in weights or not name else f"{prefix}.{name}" for name in names]


def _score() -> Iterator[onnx.NodeProto]:
    """Yield nodes that reduce all word-piece vectors to a score per pair, shape (batch, 1)."""
    node = helper.make_node
    yield from _normalize("question.last_hidden_state", "question.pieces")
    yield from _normalize("passage.last_hidden_state", "passage.pieces")
    yield node("Transpose", ["passage.pieces"], ["passage.pieces_across"], perm=[0, 2, 1])
    yield node("MatMul", ["question.pieces", "passage.pieces_across"], ["cosines"])
    # Special pieces and padding cannot be a token's nearest word piece.
    yield node("Less", ["passage.input_ids", "first_word_piece"], ["passage.special"])
    yield node("Equal", ["passage.attention_mask", "zero"], ["passage.padding"])
    yield node("Or", ["passage.special", "passage.padding"], ["passage.left_out"])
    yield node("Unsqueeze", ["passage.left_out", "axis1"], ["passage.left_out_across"])
    yield node("Where", ["passage.left_out_across", "lowest", "cosines"], ["cosines_there"])
    yield node("ReduceMax", ["cosines_there"], ["nearest"], axes=[2], keepdims=0)
    yield node("Gather", ["rarity", "question.input_ids"], ["rarity_of_pieces"])
    yield node("Cast", ["question.attention_mask"], ["question.there"], to=TensorProto.FLOAT)
    yield node("Mul", ["rarity_of_pieces", "question.there"], ["weights"])
    yield node("Mul", ["nearest", "weights"], ["weighted"])
    yield node("ReduceSum", ["weighted", "axis1"], ["sum"], keepdims=1)
    yield node("ReduceSum", ["weights", "axis1"], ["weight"], keepdims=1)
    yield node("Max", ["weight", "tiny"], ["weight_safe"])
    yield node("Div", ["sum", "weight_safe"], ["logits"])


def _normalize(source: str, target: str) -> Iterator[onnx.NodeProto]:
    yield helper.make_node("ReduceL2", [source], [f"{target}.length"], axes=[2], keepdims=1)
    yield helper.make_node("Max", [f"{target}.length", "tiny"], [f"{target}.safe"])
    yield helper.make_node("Div", [source, f"{target}.safe"], [target])


if __name__ == "__main__":
    build_reranker(Path(sys.argv[1]))
