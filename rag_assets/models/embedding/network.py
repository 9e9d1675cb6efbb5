"""A sentence-embedding network in onnxruntime, with any of the supported inputs and outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import BadVectors, ConfigurationError
from rag_assets.models.embedding.model_folder import DenseLayer, ModelFolder
from rag_assets.models.embedding.vectors import unit
from rag_assets.models.onnx.loading import feed, load_session, plan_inputs

if TYPE_CHECKING:
    from tokenizers import Encoding

_OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")
_RANK_OF_TEXTS = 2
_ACTIVATIONS = ("identity", "tanh", "relu")
_NUMBER_TYPES: Mapping[str, str] = MappingProxyType({"F64": "<f8", "F32": "<f4", "F16": "<f2"})


class Network:
    """A loaded model: tokens in, one unit vector out; usable from several threads at once.

    Raises:
        ConfigurationError: the files are damaged, not an ONNX model, or of an unsupported shape.
    """

    def __init__(self, model: ModelFolder) -> None:
        model.verify()
        self._dimensions = model.dimensions
        self._pooling = model.pooling
        self._session = load_session(model.weights)
        self._inputs = plan_inputs(self._session, model.weights)
        self._output, returns_tokens = self._plan_output(model)
        # An output for the whole text already includes all modules.
        self._dense = [_Dense(layer) for layer in model.dense] if returns_tokens else []

    def vector(self, window: Encoding, prefix_tokens: int = 0) -> npt.NDArray[np.float64]:
        """Embed one window of tokens, and return a unit vector.

        Args:
            window: one text, without padding.
            prefix_tokens: number of first tokens that the mean leaves out.

        Raises:
            BadVectors: the model returned no finite vector, or zeros.
            ConfigurationError: a Dense module does not accept the vectors that it is given.
        """
        answer = self._session.run([self._output], feed(self._inputs, [window]))[0][0]
        pooled = answer if answer.ndim == 1 else self._project(self._pool(answer, prefix_tokens))
        shaped = pooled.shape == (self._dimensions,)
        if not (shaped and np.isfinite(pooled).all() and pooled.any()):
            raise BadVectors(
                f"the local embedding model returned a vector of shape {pooled.shape} that is"
                f" not {self._dimensions} finite numbers with a direction"
            )
        return unit(pooled)

    def _pool(self, tokens: npt.NDArray[Any], prefix_tokens: int) -> npt.NDArray[np.float64]:
        """Combine the vectors of all tokens into one vector."""
        if self._pooling == "cls":
            return np.asarray(tokens[0], np.float64)
        if self._pooling == "last":
            return np.asarray(tokens[-1], np.float64)
        # The window is one text without padding: its mask is all ones, so the masked mean is a
        # plain mean.
        return np.asarray(np.mean(tokens[prefix_tokens:], axis=0, dtype=np.float64))

    def _project(self, vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        for dense in self._dense:
            vector = dense.project(vector)
        return vector

    def _plan_output(self, model: ModelFolder) -> tuple[str, bool]:
        """Return the name of the output to read, and whether it contains token vectors."""
        outputs = {node.name: node.shape for node in self._session.get_outputs()}
        name = next(n for n in (*_OUTPUTS, *outputs) if n in outputs)
        rank, length = len(outputs[name]), outputs[name][-1] if outputs[name] else None
        if rank not in {_RANK_OF_TEXTS, 3}:
            raise ConfigurationError(
                f"the ONNX model's output {name} is neither of tokens nor of texts: {model.weights}"
            )
        expected = model.dimensions if rank == _RANK_OF_TEXTS or not model.dense else length
        if isinstance(length, int) and length != expected:
            raise ConfigurationError(
                f"the ONNX model returns {length} dimensions, not {model.dimensions}:"
                f" {model.weights}",
                hint=f"set the embedder's dimensions to {length}",
            )
        return str(name), rank != _RANK_OF_TEXTS


class _Dense:
    """A loaded Dense module.

    Raises:
        ConfigurationError: its activation or its file is not supported.
    """

    def __init__(self, layer: DenseLayer) -> None:
        if layer.activation not in _ACTIVATIONS:
            raise ConfigurationError(
                f"the Dense module's activation is not supported ({layer.activation or 'none'}):"
                f" {layer.weights.with_name('config.json')}",
                hint=f"supported are {', '.join(_ACTIVATIONS)}",
            )
        if layer.weights.suffix != ".safetensors" or not layer.weights.is_file():
            raise ConfigurationError(
                f"the Dense module has no model.safetensors: {layer.weights.parent}",
                hint="save the model with a current sentence-transformers",
            )
        self._path, self._activation = layer.weights, layer.activation
        self._matrix, self._bias = _load_dense(layer)

    def project(self, vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Project a vector.

        Raises:
            ConfigurationError: the module expects vectors of another length.
        """
        if self._matrix.shape[1] != len(vector):
            raise ConfigurationError(
                f"the Dense module takes {self._matrix.shape[1]} dimensions, not {len(vector)}:"
                f" {self._path}"
            )
        projected = self._matrix @ vector + self._bias
        if self._activation == "tanh":
            return np.tanh(projected)
        return np.maximum(projected, 0.0) if self._activation == "relu" else projected


def _load_dense(layer: DenseLayer) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Load the matrix and the bias of a Dense module from its safetensors file.

    Raises:
        ConfigurationError: the file is damaged, or has other tensors.
    """
    content = layer.weights.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8:start])
        tensors = {
            name: np.frombuffer(
                content[start:][slice(*tensor["data_offsets"])], _NUMBER_TYPES[tensor["dtype"]]
            ).reshape(tensor["shape"])
            for name, tensor in header.items()
            if name != "__metadata__"
        }
        matrix = tensors["linear.weight"].astype(np.float64)
        rows, _ = matrix.shape
        bias = tensors.get("linear.bias", np.zeros(rows)).astype(np.float64).reshape(rows)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"the Dense module's file has no readable linear.weight with its bias: {layer.weights}",
            hint="save it as safetensors with numbers of 16, 32 or 64 bits (not bfloat16)",
        ) from error
    return matrix, bias
