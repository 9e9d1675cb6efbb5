"""Embedding on this machine's CPU, with an ONNX model from a folder."""

from __future__ import annotations

import asyncio
import json
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import BadVectors, ConfigurationError, InputRejected
from rag_assets.models.embedding.coverage import measure_unread_share
from rag_assets.models.embedding.model_folder import (
    DenseLayer,
    FolderSettings,
    ModelFolder,
    describe_folder,
)
from rag_assets.models.embedding.protocol import Answer, CallLimits, Embedder, Purpose, Vectors
from rag_assets.models.embedding.vectors import normalize_vector
from rag_assets.models.onnx import (
    build_inputs,
    count_cores,
    join_surrogates,
    load_session,
    load_tokenizer,
    plan_inputs,
)

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


_TEXTS_PER_CALL = 32  # takes two cores half a second: short enough to report progress and to stop


class LocalEmbedder(Embedder, ABC):
    """A model that embeds texts on this machine's cores, and is loaded at its first use.

    Each text is one call on one thread, and a pool of threads processes texts in parallel. On a CPU
    that is faster than padded batches, and a vector does not depend on other texts. A vector is the
    same bit for bit for any order, batch or number of threads. Only another kind of CPU may round
    the last bits differently.
    """

    limits = CallLimits(texts=_TEXTS_PER_CALL, concurrency=2)
    """The number of texts in a call affects neither vectors nor speed. Two calls may run at once,
    so that no thread is idle while a call ends."""

    def __init__(self, embedder_id: str, dimensions: int, threads: int | None) -> None:
        self.embedder_id = embedder_id
        self.dimensions = dimensions
        self._threads = threads or count_cores()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="embed")

    async def embed(
        self,
        texts: Sequence[str],
        *,
        purpose: Purpose = "document",
        deadline: float | None = None,
        is_bulk: bool = False,
    ) -> Answer:
        """Return one unit vector for each text, which must have a token; see Embedder.embed."""
        for position, text in enumerate(texts, start=1):
            if not text.strip():
                raise _build_rejection(position, len(texts))
        todo = deque(enumerate(texts))
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        tokens = np.zeros(len(texts), dtype=np.int64)
        loop = asyncio.get_running_loop()
        # Start one job per thread, not per text: the event loop wakes rarely, and clearing `todo`
        # stops all jobs.
        jobs = [
            loop.run_in_executor(self._pool, self._embed_remaining, todo, purpose, vectors, tokens)
            for _ in range(min(self._threads, len(texts)))
        ]
        try:
            await asyncio.gather(*jobs)
        finally:
            todo.clear()  # after a failure or a cancellation, no thread starts another text
        return Answer(vectors, int(tokens.sum()))

    @abstractmethod
    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens that the model reads for each text; they are not charged."""

    def check(self) -> None:
        """Load the model and embed a text with it; raise a ConfigurationError if this fails."""
        self._embed_one("text", "document")

    async def close(self) -> None:
        """Keep the loaded model for the next call; no connections are open."""

    @abstractmethod
    def _embed_one(self, text: str, purpose: Purpose) -> tuple[Vectors, int] | None:
        """Return a text's vector and number of tokens; None for a text without tokens.

        Several threads call this concurrently.
        """

    def _embed_remaining(
        self,
        todo: deque[tuple[int, str]],
        purpose: Purpose,
        vectors: Vectors,
        tokens: npt.NDArray[np.int64],
    ) -> None:
        """Embed texts from a queue that threads share, until it is empty; write results by row."""
        while True:
            try:
                index, text = todo.popleft()
            except IndexError:
                return
            embedded = self._embed_one(text, purpose)
            if embedded is None:
                raise _build_rejection(index + 1, len(vectors))
            vectors[index], tokens[index] = embedded


class OnnxEmbedder(LocalEmbedder):
    """An ONNX sentence-embedding model, run by onnxruntime on the CPU.

    A text longer than the model's window is cut into consecutive windows, each embedded separately.
    The vector of the text is the mean of the windows' unit vectors, weighted by their numbers of
    tokens and normalised again. No part of a text is left out. Only the first window has the
    prefix.
    """

    def __init__(
        self,
        folder: Path | None = None,
        threads: int | None = None,
        **settings: Unpack[FolderSettings],
    ) -> None:
        self._model = describe_folder(folder, **settings)
        super().__init__(self._model.embedder_id, self._model.dimensions, threads)
        self._tokenizer: Tokenizer | None = None
        self._network: Network | None = None

    @property
    def window(self) -> int:
        """Return the number of tokens that the model reads at once, special tokens included."""
        return self._model.window

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text with its prefix, special tokens included."""
        prefix = self._model.document_prefix
        return [_count_window_tokens(self._split_into_windows(prefix + text)) for text in texts]

    @property
    def languages(self) -> frozenset[str] | None:
        """Return the languages that the model card names; None if it names none or all."""
        return self._model.languages

    def compute_unread_share(self, texts: Sequence[str]) -> float | None:
        """Return the share of letters in words that the vocabulary does not cover; see coverage."""
        return measure_unread_share(self._get_tokenizer(), texts)

    def _embed_one(self, text: str, purpose: Purpose) -> tuple[Vectors, int] | None:
        network, prefix = self._get_network(), self._model.get_prefix(purpose)
        windows = self._split_into_windows(prefix + text)
        weights = [len(w.ids) - sum(w.special_tokens_mask) for w in windows]
        if not any(weights) or (prefix and not self._has_tokens(text)):
            return None
        tokens = _count_window_tokens(windows)
        prefix_tokens = self._count_prefix_tokens(prefix)
        if len(windows) == 1:
            return network.embed_window(windows[0], prefix_tokens).astype(np.float32), tokens
        total = np.zeros(self.dimensions)
        for number, (window, weight) in enumerate(zip(windows, weights, strict=True)):
            total += weight * network.embed_window(window, 0 if number else prefix_tokens)
        return normalize_vector(total).astype(np.float32), tokens

    def _split_into_windows(self, text: str) -> list[Encoding]:
        """Cut a text into windows of at most the model's length, each with special tokens."""
        text = text.lower() if self._model.is_lowercase else text
        first = self._get_tokenizer().encode(join_surrogates(text))
        return [first, *first.overflowing]

    def _has_tokens(self, text: str) -> bool:
        encoding = self._get_tokenizer().encode(join_surrogates(text), add_special_tokens=False)
        return bool(encoding.ids)

    def _count_prefix_tokens(self, prefix: str) -> int:
        """Return the number of tokens of the prefix if pooling ignores them; otherwise 0."""
        if self._model.pools_prefix or not prefix:
            return 0
        encoding = self._split_into_windows(prefix)[0]
        return len(encoding.ids) - encoding.special_tokens_mask[-1]

    def _get_tokenizer(self) -> Tokenizer:
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = _load_tokenizer(self._model)
            return self._tokenizer

    def _get_network(self) -> Network:
        with self._lock:  # several threads start at once; one of them loads
            if self._network is None:
                self._network = Network(self._model)
            return self._network


def _load_tokenizer(model: ModelFolder) -> Tokenizer:
    tokenizer = load_tokenizer(model.tokenizer)
    # tokenizer.json sets truncation and padding for training; here, text beyond the window goes
    # into further windows.
    tokenizer.enable_truncation(max_length=model.window, stride=0)
    tokenizer.no_padding()
    return tokenizer


def _count_window_tokens(windows: list[Encoding]) -> int:
    return sum(len(window.ids) for window in windows)


def _build_rejection(position: int, count: int) -> InputRejected:
    return InputRejected(f"text {position} of {count} is empty or has no readable content")


_OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")
_RANK_OF_TEXTS = 2
_ACTIVATIONS = ("identity", "tanh", "relu")
_NUMBER_TYPES: Mapping[str, str] = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}


class Network:
    """A loaded model that turns tokens into one unit vector; usable from several threads."""

    def __init__(self, model: ModelFolder) -> None:
        model.verify()
        self._dimensions = model.dimensions
        self._pooling = model.pooling
        self._session = load_session(model.weights)
        self._inputs = plan_inputs(self._session, model.weights)
        self._output, returns_tokens = self._select_output(model)
        # An output for the whole text already includes all modules.
        self._dense = [_Dense(layer) for layer in model.dense] if returns_tokens else []

    def embed_window(self, window: Encoding, prefix_tokens: int = 0) -> npt.NDArray[np.float64]:
        """Embed a window as a unit vector; the first `prefix_tokens` tokens are not pooled."""
        answer = self._session.run([self._output], build_inputs(self._inputs, [window]))[0][0]
        pooled = answer if answer.ndim == 1 else self._pool(answer, prefix_tokens)
        if answer.ndim != 1:
            for dense in self._dense:
                pooled = dense.project(pooled)
        has_shape = pooled.shape == (self._dimensions,)
        if not (has_shape and np.isfinite(pooled).all() and pooled.any()):
            raise BadVectors(
                f"the local embedding model returned a vector of shape {pooled.shape} that is"
                f" not {self._dimensions} finite numbers with a direction"
            )
        return normalize_vector(pooled)

    def _pool(self, tokens: npt.NDArray[Any], prefix_tokens: int) -> npt.NDArray[np.float64]:
        """Combine the vectors of all tokens into one vector, by the configured pooling."""
        if self._pooling == "cls":
            return np.asarray(tokens[0], np.float64)
        if self._pooling == "last":
            return np.asarray(tokens[-1], np.float64)
        # The window is one text without padding: its mask is all ones, so the masked mean is a
        # plain mean.
        return np.asarray(np.mean(tokens[prefix_tokens:], axis=0, dtype=np.float64))

    def _select_output(self, model: ModelFolder) -> tuple[str, bool]:
        """Return the name of the output to read, and whether it has a vector for each token."""
        outputs = {node.name: node.shape for node in self._session.get_outputs()}
        name = next(n for n in (*_OUTPUTS, *outputs) if n in outputs)
        rank, length = len(outputs[name]), outputs[name][-1] if outputs[name] else None
        if rank not in {_RANK_OF_TEXTS, 3}:
            raise ConfigurationError(
                f"the ONNX model's output {name} has neither a vector per token nor a"
                f" vector per text: {model.weights}"
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
    """A loaded Dense module, which projects the pooled vector to another length."""

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
                hint="save the model with a current version of sentence-transformers",
            )
        self._path, self._activation = layer.weights, layer.activation
        self._matrix, self._bias = _load_dense_tensors(layer)

    def project(self, vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return a vector multiplied by the matrix, with bias and activation applied."""
        if self._matrix.shape[1] != len(vector):
            raise ConfigurationError(
                f"the Dense module expects {self._matrix.shape[1]} dimensions, not {len(vector)}:"
                f" {self._path}"
            )
        projected = self._matrix @ vector + self._bias
        if self._activation == "tanh":
            return np.tanh(projected)
        return np.maximum(projected, 0.0) if self._activation == "relu" else projected


def _load_dense_tensors(
    layer: DenseLayer,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Load the matrix and the bias of a Dense module from its safetensors file."""
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
