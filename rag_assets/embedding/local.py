"""Embedding on this machine's own cores, with a model from a folder."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rag_assets.embedding.model_folder import ModelFolder, Pooling, describe_folder
from rag_assets.embedding.protocol import Vectors
from rag_assets.embedding.vectors import unit
from rag_assets.errors import BadVectors, ConfigurationError, InputRejected

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_BATCH = 32  # about half a second of two cores: often enough to report progress and to stop
_INTEGERS: dict[str, type[np.signedinteger[Any]]] = {
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}
_OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")


def available_cores() -> int:
    """Cores this process may run on: what taskset or a container's cpuset leaves of them."""
    if hasattr(os, "process_cpu_count"):  # from Python 3.13 on
        return int(os.process_cpu_count() or 1)
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class OnnxEmbedder:
    """An ONNX sentence-embedding model, run by onnxruntime on the CPU.

    Each text is one call on one thread, and texts run side by side in a pool of threads. On a CPU
    that is faster than padded batches, and a vector cannot depend on its company: it is the same
    bit for bit whatever the order, the batch or the number of threads (on one kind of CPU;
    another may round the last bits otherwise).

    A text longer than the model's window is cut into consecutive windows, each embedded on its
    own; its vector is the mean of their unit vectors, weighted by their tokens, normalised again.
    Nothing of a text is left out. texts_windowed counts such texts.

    The model is loaded at the first use, not when the object is made.

    Args:
        folder: a folder as model_folder describes it; by default the shipped all-MiniLM-L6-v2.
        threads: texts embedded at once; by default the cores available to this process.
        dimensions: see describe_folder.
        pooling: see describe_folder.

    Raises:
        ConfigurationError: the folder does not hold a usable model (also at the first use).
    """

    def __init__(
        self,
        folder: Path | None = None,
        threads: int | None = None,
        *,
        dimensions: int | None = None,
        pooling: Pooling | None = None,
    ) -> None:
        self._model = describe_folder(folder, dimensions=dimensions, pooling=pooling)
        self._threads = threads or available_cores()
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._tokenizer: Tokenizer | None = None
        self._network: _Network | None = None
        self._windowed = 0

    @property
    def embedder_id(self) -> str:
        """local/name@dimensions and a digest of weights, tokenizer, pooling and window."""
        return self._model.embedder_id

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._model.dimensions

    @property
    def window(self) -> int:
        """Tokens the model reads at once, special ones included."""
        return self._model.window

    @property
    def batch_size(self) -> int:
        """Texts a call takes at most; their number changes neither vectors nor speed."""
        return _BATCH

    @property
    def concurrency(self) -> int:
        """Calls under way at once; two, so that no thread waits while one ends."""
        return 2

    @property
    def texts_windowed(self) -> int:
        """Texts embedded so far that were longer than the model's window."""
        return self._windowed

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text, in order; see Embedder.embed.

        Raises:
            InputRejected: a text is empty, white space, or nothing the tokenizer keeps.
            ConfigurationError: the model cannot be loaded.
        """
        for position, text in enumerate(texts, start=1):
            if not text.strip():
                raise _rejected(position, len(texts))
        todo = deque(enumerate(texts))
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        loop, pool = asyncio.get_running_loop(), self._thread_pool()
        # A job per thread, not per text: the loop is woken rarely, and todo is where to stop.
        jobs = [
            loop.run_in_executor(pool, self._work_off, todo, vectors)
            for _ in range(min(self._threads, len(texts)))
        ]
        try:
            await asyncio.gather(*jobs)
        finally:
            todo.clear()  # after a failure or a cancellation no thread begins another text
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens the model reads for each text, special ones included; nothing is charged."""
        tokenizer = self._loaded_tokenizer()
        return [sum(len(w.ids) for w in _windows(tokenizer, text)) for text in texts]

    def close(self) -> None:
        """End the threads and let the model go; a later call would load it again."""
        with self._lock:
            pool, self._pool, self._network = self._pool, None, None
        if pool is not None:
            pool.shutdown(cancel_futures=True)

    def _work_off(self, todo: deque[tuple[int, str]], vectors: Vectors) -> None:
        """Embed texts into their rows until none is left; runs in several threads at once."""
        while True:
            try:
                index, text = todo.popleft()
            except IndexError:
                return
            vector = self._embed_one(text)
            if vector is None:
                raise _rejected(index + 1, len(vectors))
            vectors[index] = vector

    def _embed_one(self, text: str) -> Vectors | None:
        """Return the vector of a text, or None if the tokenizer keeps nothing of it."""
        network = self._loaded_network()
        windows = _windows(self._loaded_tokenizer(), text)
        weights = [len(w.ids) - sum(w.special_tokens_mask) for w in windows]
        if not any(weights):
            return None
        if len(windows) == 1:
            return network.vector(windows[0]).astype(np.float32)
        with self._lock:
            self._windowed += 1
        total = np.zeros(self.dimensions)
        for window, weight in zip(windows, weights, strict=True):
            total += weight * network.vector(window)
        return unit(total).astype(np.float32)

    def _thread_pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="embed")
            return self._pool

    def _loaded_tokenizer(self) -> Tokenizer:
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = _load_tokenizer(self._model)
            return self._tokenizer

    def _loaded_network(self) -> _Network:
        with self._lock:  # several threads start with the first texts; one of them loads
            if self._network is None:
                self._network = _Network(self._model)
            return self._network


class _Network:
    """A loaded model: tokens in, one unit vector out."""

    def __init__(self, model: ModelFolder) -> None:
        model.verify()
        self._dimensions = model.dimensions
        self._pooling = model.pooling
        self._session = _load_session(model)
        self._inputs = self._plan_inputs(model)
        self._output = self._plan_output(model)

    def vector(self, window: Encoding) -> npt.NDArray[np.float64]:
        """Embed one window of tokens, as a unit vector."""
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


def _load_tokenizer(model: ModelFolder) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(model.tokenizer))
    except Exception as error:  # the Rust library raises Exception itself
        raise ConfigurationError(f"not a readable tokenizer: {model.tokenizer}") from error
    # What tokenizer.json says of both is for training; what is cut off comes as further windows.
    tokenizer.enable_truncation(max_length=model.window, stride=0)
    tokenizer.no_padding()
    return tokenizer


def _windows(tokenizer: Tokenizer, text: str) -> list[Encoding]:
    """Cut a text into pieces of at most the model's window, special tokens in each."""
    first = tokenizer.encode(_encodable(text))
    return [first, *first.overflowing]


def _encodable(text: str) -> str:
    """Replace lone surrogates: no tokenizer takes what has no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _rejected(position: int, count: int) -> InputRejected:
    return InputRejected(f"text {position} of {count} is empty or holds nothing that can be read")
