"""Makes a reranker's folder from the shipped embedding model: a stand-in for a cross-encoder.

No cross-encoder is shipped, and none can be downloaded at run time. This one needs nothing but
all-MiniLM-L6-v2, and is what ColBERT calls late interaction: question and passage go through the
model each for itself, every word piece of the question takes the nearest one of the passage, and
the score is the mean of these cosines ("MaxSim", Khattab and Zaharia, 2020), half and half with
the cosine of both texts. The model was not trained for it, so what it brings is a lower bound of
what a second stage can bring; its cost is that of a cross-encoder of its size.

    python -m benchmarks.late_interaction FOLDER

The folder is what `retrieval.rerank.folder` takes. The ONNX graph takes a pair as any
cross-encoder does ([CLS] question [SEP] passage [SEP], told apart by token_type_ids), and cuts it
in two by itself.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from rag_assets.embedding.model_folder import DEFAULT_MODEL, MODELS

_OPSET = 17
_WINDOW = 256
_MAXSIM_SHARE = 0.5
_LOWEST = -1e4


def build(folder: Path, *, maxsim_share: float = _MAXSIM_SHARE) -> None:
    """Write the folder.

    Args:
        folder: is made if it is not there.
        maxsim_share: of the score that is late interaction; the rest is the texts' cosine.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shipped = MODELS / DEFAULT_MODEL
    encoder = onnx.load(str(shipped / "model_quantized.onnx"))
    onnx.save(_model(encoder, maxsim_share), str(folder / "model.onnx"))
    shutil.copy(shipped / "tokenizer.json", folder / "tokenizer.json")
    config = json.loads((shipped / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    window = json.dumps({"max_seq_length": _WINDOW})
    (folder / "sentence_bert_config.json").write_text(window, encoding="utf-8")


def _model(encoder: onnx.ModelProto, maxsim_share: float) -> onnx.ModelProto:
    constants = {
        "zero": np.array(0, np.int64),
        "one": np.array(1, np.int64),
        "axis1": np.array([1], np.int64),
        "axis2": np.array([2], np.int64),
        "start": np.array([0], np.int64),
        "lowest": np.array(_LOWEST, np.float32),
        "unit": np.array(1.0, np.float32),
        "tiny": np.array(1e-9, np.float32),
        "share": np.array(maxsim_share, np.float32),
        "rest": np.array(1.0 - maxsim_share, np.float32),
    }
    nodes = [
        *_cut_in_two(),
        *_copy(encoder.graph, "question"),
        *_copy(encoder.graph, "passage"),
        *_scored(),
    ]
    pair = ["batch", "tokens"]
    graph = helper.make_graph(
        nodes,
        "late_interaction",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, pair)
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


def _cut_in_two() -> Iterator[onnx.NodeProto]:
    """[CLS] question [SEP] and [CLS] passage [SEP], each from its first position on."""
    node = helper.make_node
    # The question: as far as the longest of the batch reaches.
    yield node("Sub", ["one", "token_type_ids"], ["of_question"])
    yield node("Mul", ["attention_mask", "of_question"], ["question.mask_long"])
    yield node("ReduceSum", ["question.mask_long", "axis1"], ["question.length"], keepdims=1)
    yield node("ReduceMax", ["question.length"], ["question.longest"], keepdims=0)
    yield node("Unsqueeze", ["question.longest", "start"], ["question.end"])
    for name, source in (("input_ids", "input_ids"), ("attention_mask", "question.mask_long")):
        ends = ["start", "question.end", "axis1"]
        yield node("Slice", [source, *ends], [f"question.{name}"])
    yield node("Mul", ["question.attention_mask", "zero"], ["question.token_type_ids"])
    # The passage: moved to the left, so that the question's [SEP] is where its [CLS] has to be.
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


def _copy(encoder: onnx.GraphProto, prefix: str) -> Iterator[onnx.NodeProto]:
    """The encoder's nodes once more, on its own weights, from and to names of their own."""
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


def _scored() -> Iterator[onnx.NodeProto]:
    """From the vectors of all word pieces to one score a pair, shape (batch, 1)."""
    node = helper.make_node
    for side in ("question", "passage"):
        vectors, weight = f"{side}.last_hidden_state", f"{side}.weight"
        yield node("Cast", [f"{side}.attention_mask"], [f"{side}.weight_flat"], to=1)
        yield node("Unsqueeze", [f"{side}.weight_flat", "axis2"], [weight])
        yield from _unit(vectors, f"{side}.pieces", axis=2)
        yield node("Mul", [vectors, weight], [f"{side}.kept"])
        yield node("ReduceSum", [f"{side}.kept", "axis1"], [f"{side}.sum"], keepdims=0)
        yield from _unit(f"{side}.sum", f"{side}.text", axis=1)
    yield node("Mul", ["question.text", "passage.text"], ["both"])
    yield node("ReduceSum", ["both", "axis1"], ["cosine"], keepdims=1)
    yield node("Transpose", ["passage.pieces"], ["passage.pieces_across"], perm=[0, 2, 1])
    yield node("MatMul", ["question.pieces", "passage.pieces_across"], ["cosines"])
    yield node("Unsqueeze", ["passage.weight_flat", "axis1"], ["passage.weight_across"])
    yield node("Sub", ["unit", "passage.weight_across"], ["passage.absent"])
    yield node("Mul", ["passage.absent", "lowest"], ["passage.penalty"])
    yield node("Add", ["cosines", "passage.penalty"], ["cosines_there"])
    yield node("ReduceMax", ["cosines_there"], ["nearest"], axes=[2], keepdims=0)
    yield node("Mul", ["nearest", "question.weight_flat"], ["nearest_kept"])
    yield node("ReduceSum", ["nearest_kept", "axis1"], ["nearest_sum"], keepdims=1)
    yield node("ReduceSum", ["question.weight_flat", "axis1"], ["pieces"], keepdims=1)
    yield node("Div", ["nearest_sum", "pieces"], ["maxsim"])
    yield node("Mul", ["maxsim", "share"], ["maxsim_part"])
    yield node("Mul", ["cosine", "rest"], ["cosine_part"])
    yield node("Add", ["maxsim_part", "cosine_part"], ["logits"])


def _unit(source: str, target: str, *, axis: int) -> Iterator[onnx.NodeProto]:
    yield helper.make_node("ReduceL2", [source], [f"{target}.length"], axes=[axis], keepdims=1)
    yield helper.make_node("Max", [f"{target}.length", "tiny"], [f"{target}.safe"])
    yield helper.make_node("Div", [source, f"{target}.safe"], [target])


if __name__ == "__main__":
    build(Path(sys.argv[1]))
