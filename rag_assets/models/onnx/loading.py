"""Loads ONNX models and their tokenizers, for use on the CPU by several threads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import ConfigurationError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

Inputs: TypeAlias = Mapping[str, type[np.signedinteger[Any]]]
"""A model's inputs and the integer type of each."""

_INTEGERS: dict[str, type[np.signedinteger[Any]]] = {
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}
_KNOWN = ("input_ids", "attention_mask", "token_type_ids")


def load_session(weights: Path) -> Any:
    """Load a model whose calls run on the calling thread.

    Raises:
        ConfigurationError: the file is not an ONNX model.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.log_severity_level = 3  # only errors; its warnings are about devices that are not used
    try:
        return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common base
        raise ConfigurationError(
            f"onnxruntime cannot load the model: {weights}",
            hint=str(error).splitlines()[0][:300] if str(error) else None,
        ) from error


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a tokenizer.

    Raises:
        ConfigurationError: the file is not a tokenizer.
    """
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the Rust library raises Exception itself
        raise ConfigurationError(f"the file is not a readable tokenizer: {path}") from error


def plan_inputs(session: Any, weights: Path) -> Inputs:
    """Select the inputs of a model that are known here.

    Raises:
        ConfigurationError: the model requires other inputs.
    """
    wanted = {node.name: node.type for node in session.get_inputs()}
    strange = [n for n, kind in wanted.items() if n not in _KNOWN or kind not in _INTEGERS]
    if strange:
        raise ConfigurationError(
            f"the ONNX model requires unknown inputs ({', '.join(strange)}): {weights}",
            hint=f"supported are {', '.join(_KNOWN)}",
        )
    return {name: _INTEGERS[kind] for name, kind in wanted.items()}


def feed(inputs: Inputs, encodings: list[Encoding]) -> dict[str, npt.NDArray[Any]]:
    """Return a model's inputs for texts with equal numbers of tokens, each (texts, tokens)."""
    values = {
        "input_ids": [encoding.ids for encoding in encodings],
        "attention_mask": [encoding.attention_mask for encoding in encodings],
        "token_type_ids": [encoding.type_ids for encoding in encodings],
    }
    return {name: np.array(values[name], dtype) for name, dtype in inputs.items()}


def encodable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode and tokenizers refuse."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
