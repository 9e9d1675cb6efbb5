"""Tiny sentence encoders of three architectures, with random weights.

    folder = sentence_encoder(tmp_path / "model", "xlm-roberta", pooling="mean", prompts={...})
    vectors = embed_as_sentence_transformers(folder, texts, prompt="query: ")

Each has one attention layer. BERT adds learned positions and token types. XLM-R counts positions
from the id of the padding token. ModernBERT rotates queries and keys by their positions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

Architecture: TypeAlias = Literal["bert", "xlm-roberta", "modernbert"]

WIDTH = 8
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def sentence_encoder(
    folder: Path,
    architecture: Architecture,
    *,
    pooling: Mapping[str, Any],
    prompts: Mapping[str, str] | None = None,
    modules: Sequence[str] = ("Transformer", "Pooling", "Normalize"),
    positions: int = 64,
    stated: Mapping[str, Any] | None = None,
) -> Path:
    """Write a tiny model, its tokenizer and the files of sentence-transformers; return the folder.

    Args:
        pooling: content of 1_Pooling/config.json.
        prompts: of config_sentence_transformers.json; without prompts, the file is not written.
        modules: of modules.json; if empty, the file is not written.
        positions: max_position_embeddings.
        stated: content of sentence_bert_config.json; if None, the file is not written.
    """
    (folder / "1_Pooling").mkdir(parents=True)
    tokenizer = _tokenizer(architecture)
    tokenizer.save(str(folder / "tokenizer.json"))
    pad = 1 if architecture == "xlm-roberta" else 0
    files: dict[str, Any] = {
        "1_Pooling/config.json": {"word_embedding_dimension": WIDTH, **pooling},
        "config.json": {
            "model_type": architecture,
            "hidden_size": WIDTH,
            "max_position_embeddings": positions,
            "pad_token_id": pad,
        },
        "config_sentence_transformers.json": {} if prompts is None else {"prompts": prompts},
        "sentence_bert_config.json": stated or {},
        "modules.json": [
            {
                "idx": n,
                "name": str(n),
                "path": "" if kind == "Transformer" else f"{n}_{kind}",
                "type": f"sentence_transformers.models.{kind}",
            }
            for n, kind in enumerate(modules)
        ],
    }
    for name, content in files.items():
        if content:
            (folder / name).write_text(json.dumps(content), encoding="utf-8")
    model = _model(architecture, tokenizer.get_vocab_size(), positions)
    onnx.save(model, str(folder / "model.onnx"))
    return folder


def write_dense(folder: Path, matrix: np.ndarray, bias: np.ndarray, activation: str) -> None:
    """Write a Dense module with safetensors."""
    folder.mkdir()
    rows, columns = matrix.shape
    (folder / "config.json").write_text(
        json.dumps(
            {
                "in_features": columns,
                "out_features": rows,
                "activation_function": f"torch.nn.modules.activation.{activation}",
            }
        )
    )
    parts = [matrix.astype("<f4").tobytes(), bias.astype("<f4").tobytes()]
    middle, end = len(parts[0]), len(parts[0]) + len(parts[1])
    header = json.dumps(
        {
            "linear.weight": {
                "dtype": "F32",
                "shape": [rows, columns],
                "data_offsets": [0, middle],
            },
            "linear.bias": {"dtype": "F32", "shape": [rows], "data_offsets": [middle, end]},
        }
    ).encode()
    content = len(header).to_bytes(8, "little") + header + b"".join(parts)
    (folder / "model.safetensors").write_bytes(content)


def embed_as_sentence_transformers(
    folder: Path,
    texts: Sequence[str],
    *,
    prompt: str = "",
    pooling: str = "mean",
    project: Callable[[np.ndarray], np.ndarray] = np.asarray,
) -> np.ndarray:
    """Embed texts as sentence-transformers does: one padded batch, pooled by its attention mask."""
    import onnxruntime

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    pad = json.loads((folder / "config.json").read_text())["pad_token_id"]
    tokenizer.enable_padding(pad_id=pad, pad_token=tokenizer.id_to_token(pad))
    batch = tokenizer.encode_batch([prompt + text for text in texts])
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    values = {
        "input_ids": np.array([one.ids for one in batch]),
        "attention_mask": np.array([one.attention_mask for one in batch]),
        "token_type_ids": np.array([one.type_ids for one in batch]),
    }
    taken = {node.name: values[node.name] for node in session.get_inputs()}
    tokens, mask = session.run(None, taken)[0], values["attention_mask"][..., None]
    if pooling == "cls":
        pooled = tokens[:, 0]
    elif pooling == "last":
        pooled = tokens[np.arange(len(texts)), mask[..., 0].sum(1) - 1]
    else:
        pooled = (tokens * mask).sum(1) / mask.sum(1)
    projected = project(pooled)
    return projected / np.linalg.norm(projected, axis=1, keepdims=True)


def _tokenizer(architecture: Architecture) -> Tokenizer:
    if architecture == "xlm-roberta":
        pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", *_LETTERS, *(f"▁{c}" for c in _LETTERS)]
        scores = [(piece, -float(n) / 10) for n, piece in enumerate([*pieces, ":"])]
        tokenizer = Tokenizer(models.Unigram(scores, unk_id=3))
        tokenizer.normalizer = normalizers.NFKC()
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        first, last = "<s>", "</s>"
    elif architecture == "modernbert":
        special = ["[PAD]", "[CLS]", "[SEP]"]
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        vocabulary = {piece: n for n, piece in enumerate([*special, *alphabet])}
        tokenizer = Tokenizer(models.BPE(vocabulary, []))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        first, last = "[CLS]", "[SEP]"
    else:
        pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ":", *_LETTERS, *(f"##{c}" for c in _LETTERS)]
        vocabulary = {piece: n for n, piece in enumerate(pieces)}
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        first, last = "[CLS]", "[SEP]"
    tokenizer.add_special_tokens([first, last])
    ends = [(token, tokenizer.token_to_id(token)) for token in (first, last)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", special_tokens=ends
    )
    # Published files pad and truncate to their training length: both must be ignored.
    tokenizer.enable_padding(length=12)
    tokenizer.enable_truncation(max_length=12)
    return tokenizer


def _model(architecture: Architecture, words: int, positions: int) -> onnx.ModelProto:
    random = np.random.RandomState(7)

    def table(*shape: int) -> np.ndarray:
        return random.normal(0, 0.5, shape).astype(np.float32)

    half = WIDTH // 2
    constants: dict[str, np.ndarray] = {
        "words": table(words, WIDTH),
        "positions": table(positions, WIDTH),
        "types": table(2, WIDTH),
        **{name: table(WIDTH, WIDTH) for name in ("wq", "wk", "wv", "wo", "wf")},
        "scale": np.array(WIDTH**-0.5, np.float32),
        "far": np.array(-1e9, np.float32),
        "one": np.array(1, np.int64),
        "zero": np.array(0, np.int64),
        "one_float": np.array(1, np.float32),
        "axis1": np.array([1], np.int64),
        "gain": np.ones(WIDTH, np.float32),
        "frequencies": (10.0 ** -np.arange(half, dtype=np.float32))[None],
        "start": np.array([0], np.int64),
        "half": np.array([half], np.int64),
        "end": np.array([WIDTH], np.int64),
        "last_axis": np.array([2], np.int64),
        "minus_one": np.array([-1], np.int64),
    }
    node = helper.make_node
    nodes: list[NodeProto] = [
        node("Shape", ["input_ids"], ["shape"]),
        node("Gather", ["shape", "one"], ["length"]),
        node("Range", ["zero", "length", "one"], ["places"]),
        node("Gather", ["words", "input_ids"], ["embedded"]),
        *_EMBEDDING[architecture](node),
        node("LayerNormalization", ["summed", "gain"], ["x"]),
        node("MatMul", ["x", "wq"], ["q0"]),
        node("MatMul", ["x", "wk"], ["k0"]),
        node("MatMul", ["x", "wv"], ["v"]),
        *(_rotation(node) if architecture == "modernbert" else _no_rotation(node)),
        node("Transpose", ["k"], ["k_columns"], perm=[0, 2, 1]),
        node("MatMul", ["q", "k_columns"], ["near"]),
        node("Mul", ["near", "scale"], ["scaled"]),
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        node("Sub", ["one_float", "mask"], ["padding"]),
        node("Mul", ["padding", "far"], ["away"]),
        node("Unsqueeze", ["away", "axis1"], ["away_across"]),
        node("Add", ["scaled", "away_across"], ["masked"]),
        node("Softmax", ["masked"], ["shares"], axis=-1),
        node("MatMul", ["shares", "v"], ["attended"]),
        node("MatMul", ["attended", "wo"], ["projected"]),
        node("Add", ["x", "projected"], ["kept"]),
        node("LayerNormalization", ["kept", "gain"], ["y"]),
        node("MatMul", ["y", "wf"], ["fed"]),
        node("Erf", ["fed"], ["bent"]),
        node("Add", ["y", "bent"], ["last_hidden_state"]),
    ]
    used = {name for one in nodes for name in one.input}
    known = ("input_ids", "attention_mask", "token_type_ids")
    values = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in known
        if name in used
    ]
    output = helper.make_tensor_value_info(
        "last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", WIDTH]
    )
    initializers = [numpy_helper.from_array(v, k) for k, v in constants.items() if k in used]
    graph = helper.make_graph(nodes, architecture, values, [output], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


def _bert(node: Any) -> list[NodeProto]:
    return [
        node("Gather", ["positions", "places"], ["placed"]),
        node("Gather", ["types", "token_type_ids"], ["typed"]),
        node("Add", ["embedded", "placed"], ["with_places"]),
        node("Add", ["with_places", "typed"], ["summed"]),
    ]


def _xlm_roberta(node: Any) -> list[NodeProto]:
    return [
        node("CumSum", ["attention_mask", "one"], ["counted"]),
        node("Mul", ["counted", "attention_mask"], ["counted_words"]),
        node("Add", ["counted_words", "one"], ["place_ids"]),  # after the padding token's id, 1
        node("Gather", ["positions", "place_ids"], ["placed"]),
        node("Add", ["embedded", "placed"], ["summed"]),
    ]


def _modernbert(node: Any) -> list[NodeProto]:
    return [node("Identity", ["embedded"], ["summed"])]


_EMBEDDING = {"bert": _bert, "xlm-roberta": _xlm_roberta, "modernbert": _modernbert}


def _no_rotation(node: Any) -> list[NodeProto]:
    return [node("Identity", [f"{name}0"], [name]) for name in "qk"]


def _rotation(node: Any) -> list[NodeProto]:
    """Rotate queries and keys by angles that grow with the position."""
    nodes = [
        node("Cast", ["places"], ["places_float"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["places_float", "axis1"], ["places_down"]),
        node("MatMul", ["places_down", "frequencies"], ["angles"]),
        node("Concat", ["angles", "angles"], ["all_angles"], axis=1),
        node("Cos", ["all_angles"], ["cosines"]),
        node("Sin", ["all_angles"], ["sines"]),
    ]
    for name in "qk":
        nodes += [
            node("Slice", [f"{name}0", "start", "half", "last_axis"], [f"{name}_first"]),
            node("Slice", [f"{name}0", "half", "end", "last_axis"], [f"{name}_second"]),
            node("Neg", [f"{name}_second"], [f"{name}_negated"]),
            node("Concat", [f"{name}_negated", f"{name}_first"], [f"{name}_turned"], axis=2),
            node("Mul", [f"{name}0", "cosines"], [f"{name}_along"]),
            node("Mul", [f"{name}_turned", "sines"], [f"{name}_across"]),
            node("Add", [f"{name}_along", f"{name}_across"], [name]),
        ]
    return nodes
