"""A sentence-embedding network in onnxruntime, with any supported inputs and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import BadVectors, ConfigurationError
from rag_assets.models.embedding.model_folder import ModelFolder
from rag_assets.models.embedding.vectors import unit
from rag_assets.models.onnx.loading import feed, load_session, plan_inputs

if TYPE_CHECKING:
    from tokenizers import Encoding

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
        self._session = load_session(model.weights)
        self._inputs = plan_inputs(self._session, model.weights)
        self._output = self._plan_output(model)

    def vector(self, window: Encoding) -> npt.NDArray[np.float64]:
        """Embed one window of tokens, as a unit vector.

        Raises:
            BadVectors: the model returned no finite vector, or zeros.
        """
        answer = self._session.run([self._output], feed(self._inputs, [window]))[0][0]
        if answer.ndim == 1:  # the model pools itself
            pooled = answer
        elif self._pooling == "cls":
            pooled = answer[0]
        else:
            # One text without padding: the mask is all ones, so its mean is a plain mean.
            pooled = np.mean(answer, axis=0, dtype=np.float64)
        shaped = pooled.shape == (self._dimensions,)
        if not (shaped and np.isfinite(pooled).all() and pooled.any()):
            raise BadVectors(
                f"the local embedding model returned a vector of shape {pooled.shape} that is"
                f" not {self._dimensions} finite numbers with a direction"
            )
        return unit(pooled)

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
