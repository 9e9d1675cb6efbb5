"""Opens what a configuration names: the store of indexes, and the embedding model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from rag_assets.common.errors import ConfigurationError
from rag_assets.models.embedding.protocol import Embedder
from rag_assets.systems.agent_docs.cutting import Chunking
from rag_assets.systems.agent_docs.globs import lies_below
from rag_assets.systems.agent_docs.manager import RagIndexManager
from rag_assets.systems.agent_docs.settings import Configuration, RagSettings
from rag_assets.systems.agent_docs.stores import PassageStore

_CACHE: Final = ".fastembed_cache"
_BGE: Final = "bge-small-en-v1.5"
_NEEDED: Final = ("onnxruntime", "tokenizers")


def open_manager(configuration: Configuration) -> RagIndexManager:
    """The manager of indexes that a configuration describes.

    Raises:
        ConfigurationError: there is no embedder to be loaded.
    """
    rag = configuration.rag
    chunking = Chunking(rag.chunk_size.value, rag.chunk_overlap.value)
    return RagIndexManager(open_embedder(configuration), open_store(rag), chunking)


def open_store(rag: RagSettings) -> PassageStore:
    """The store that settings name; nothing is written before there is an index."""
    path = rag.path.value
    if rag.store.value == "memory":
        from rag_assets.systems.agent_docs.memory_store import MemoryStore

        return MemoryStore()
    if rag.store.value == "file":
        from rag_assets.systems.agent_docs.file_store import FileStore

        return FileStore(path)
    from rag_assets.systems.agent_docs.sqlite_store import SqliteStore

    return SqliteStore(rag.database)


def open_embedder(configuration: Configuration) -> Embedder:
    """The embedder that a configuration names, or the shipped one; its weights are not loaded yet.

    Raises:
        ConfigurationError: a package or the model is missing.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"no embedder can be loaded: {', '.join(missing)} is not installed",
            hint="install it, or set `strategy: preload`",
        )
    from rag_assets.models.embedding.local import OnnxEmbedder

    given = configuration.rag.model.value
    if given is not None:
        if configuration.has_projects_model:
            require_known(given, configuration.rag.model.origin)
        return OnnxEmbedder(given, pooling=pooling_of(given))
    for folder in cached_models(configuration.base.value, configuration.rag.allow.value):
        return OnnxEmbedder(folder, pooling="cls")
    return OnnxEmbedder()


def require_known(folder: Path, origin: str) -> None:
    """Refuse a model that a project's file names, unless it is a published one.

    Raises:
        ConfigurationError: its files are not those of a model that is known by its checksums.
    """
    from rag_assets.models.embedding.model_folder import describe_folder

    if not describe_folder(folder, pooling=pooling_of(folder)).is_known:
        raise ConfigurationError(
            f"{origin}: the model in {folder} is of nobody who is known, by its checksums",
            hint="a project's file may name published models only; name yours as `rag: {model: …}`"
            " in ~/.config/swebash/agents.yaml, or allow its folder there as `rag: {allow: […]}`",
        )


def pooling_of(folder: Path) -> Literal["cls"] | None:
    """How a model's vectors are made, where its folder may not say it."""
    return "cls" if _BGE in str(folder) else None


def cached_models(base: Path, allowed: Sequence[Path]) -> Iterator[Path]:
    """Yield the usable folders of bge-small-en-v1.5 in a cache that another program filled.

    The cache may have come with a repository: files that are not the published ones are used only
    from where the user allows it.
    """
    from rag_assets.models.embedding.model_folder import describe_folder

    for holder in sorted((base / _CACHE).glob(f"*{_BGE}*")):
        for weights in sorted(holder.rglob("*.onnx")):
            folder = weights.parent
            # A download may be unfinished; the shipped model is always there.
            with suppress(ConfigurationError):
                if describe_folder(folder, pooling="cls").is_known or lies_below(folder, allowed):
                    yield folder
