"""A sentence-embedding network loaded by onnxruntime, whichever inputs and outputs it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rag_assets.embedding.model_folder import ModelFolder
from rag_assets.embedding.vectors import unit
from rag_assets.errors import BadVectors, ConfigurationError

if TYPE_CHECKING:
    from tokenizers import Encoding

_INTEGERS: dict[str, type[np.signedinteger[Any]]] = {
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}
_OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")


class Network:
    """A loaded model: tokens in, one unit vector out; usable from several threads at once.

    Raises:
        ConfigurationError: the files are damaged, not an ONNX model, or one of another shape.
    """

    def __init__(self, model: ModelFolder) -> None:
        model.verify()
        self._dimensions = model.dimensions
        self._pooling = model.pooling
        self._session = _load_session(model)
        self._inputs = self._plan_inputs(model)
        self._output = self._plan_output(model)

    def vector(self, window: Encoding) -> npt.NDArray[np.float64]:
        """Embed one window of tokens, as a unit vector.

        Raises:
            BadVectors: the model returned something else than finite numbers with a direction.
        """
        values = {
            "input_ids": window.ids,
            "attention_mask": window.attention_mask,
            "token_type_ids": window.type_ids,
        }
        feed = {name: np.array([values[name]], dtype) for name, dtype in self._inputs.items()}
        answer = self._session.run([self._output], feed)[0][0]
        if answer.ndim == 1:  # the model pools itself
            pooled = answer
        elif self._pooling == "cls":
            pooled = answer[0]
        else:
            # One text without padding: the mask is all ones, and the mean over it a plain mean.
            pooled = np.mean(answer, axis=0, dtype=np.float64)
        shaped = pooled.shape == (self._dimensions,)
        if not (shaped and np.isfinite(pooled).all() and pooled.any()):
            raise BadVectors(
                f"the local embedding model returned a vector of shape {pooled.shape} that is"
                f" not {self._dimensions} finite numbers with a direction"
            )
        return unit(pooled)

    def _plan_inputs(self, model: ModelFolder) -> dict[str, type[np.signedinteger[Any]]]:
        known = ("input_ids", "attention_mask", "token_type_ids")
        wanted = {node.name: node.type for node in self._session.get_inputs()}
        strange = [n for n, kind in wanted.items() if n not in known or kind not in _INTEGERS]
        if strange:
            raise ConfigurationError(
                f"the ONNX model asks for unknown inputs ({', '.join(strange)}): {model.weights}",
                hint=f"supported are {', '.join(known)}",
            )
        return {name: _INTEGERS[kind] for name, kind in wanted.items()}

    def _plan_output(self, model: ModelFolder) -> str:
        outputs = {node.name: node.shape for node in self._session.get_outputs()}
        name = next(n for n in (*_OUTPUTS, *outputs) if n in outputs)
        rank, length = len(outputs[name]), outputs[name][-1] if outputs[name] else None
        if rank not in {2, 3}:
            raise ConfigurationError(
                f"the ONNX model's output {name} is neither of tokens nor of texts: {model.weights}"
            )
        if isinstance(length, int) and length != model.dimensions:
            raise ConfigurationError(
                f"the ONNX model returns {length} dimensions, not {model.dimensions}:"
                f" {model.weights}",
                hint=f"set the embedder's dimensions to {length}",
            )
        return str(name)


def _load_session(model: ModelFolder) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.log_severity_level = 3  # errors; its warnings are about devices that are not used
    try:
        return onnxruntime.InferenceSession(
            model.weights, options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime's own kinds have no common base
        raise ConfigurationError(
            f"onnxruntime cannot load the embedding model: {model.weights}",
            hint=str(error).splitlines()[0][:300] if str(error) else None,
        ) from error
