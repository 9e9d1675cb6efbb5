"""Describes a folder with an embedding model without loading the model.

A run that finds nothing to do needs an embedder's id and nothing else, so describing a folder
opens small JSON files only; onnxruntime and tokenizers are not imported. The weights of a tenant's
own folder are hashed once per process and change of the file.

| file | decides | if missing |
|---|---|---|
| weights, tokenizer, word pieces read at once | see onnx_folder | |
| config.json: hidden_size | dimensions, unless given | an error, unless given |
| 1_Pooling/config.json | pooling, unless given | mean |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.hashing import key_of
from rag_assets.models.onnx.folder import (
    digest_of,
    find_tokenizer,
    find_weights,
    missing,
    positive,
    read_json,
    window_of,
    with_external_data,
)

Pooling: TypeAlias = Literal["mean", "cls"]

MODELS = Path(__file__).parent / "models"
DEFAULT_MODEL = "all-MiniLM-L6-v2"

_MANIFEST = "manifest.json"

_KNOWN = frozenset(
    {
        # all-MiniLM-L6-v2: weights and tokenizer, as they are shipped.
        "f9fc4cb528583f95d1bfd316da400f195aaf6ae8f66a64b348481250c2e6e45d",
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        # bge-small-en-v1.5: weights quantized by Qdrant, those of its authors, and the tokenizer.
        "51f1bd0addd6e859e42c2c8021a5e5461385bb676a649f4b269aa445449f2431",
        "828e1496d7fabb79cfa4dcd84fa38625c0d3d21da474a00f08db0f559940cf35",
        "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
    }
)
"""SHA-256 of the files of models that may be loaded wherever they lie."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A local embedding model: its files and everything that determines its vectors.

    Attributes:
        name: the folder's name.
        weights, tokenizer: the files to load.
        digests: SHA-256 of every file that determines a vector, by path.
        dimensions: length of a vector.
        window: tokens of one call, special ones included.
        pooling: how token vectors become one, if the model does not do it itself.
    """

    name: str
    weights: Path
    tokenizer: Path
    digests: tuple[tuple[Path, str], ...]
    dimensions: int
    window: int
    pooling: Pooling

    @property
    def embedder_id(self) -> str:
        """local/name@dimensions+digest; the same for copies of a folder, wherever they are."""
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.name)
        hashes = [digest for _, digest in self.digests]
        digest = key_of("local_embedder", hashes, self.pooling, self.window, "windows averaged")
        return f"local/{name}@{self.dimensions}+{digest[:12]}"

    @property
    def is_known(self) -> bool:
        """Whether all files are those of a published model, by their checksums."""
        return all(digest in _KNOWN for _, digest in self.digests)

    def verify(self) -> None:
        """Compare the files with their digests, before they are loaded.

        Raises:
            ConfigurationError: a file is damaged, or was replaced since it was described.
        """
        for path, expected in self.digests:
            if digest_of(path) != expected:
                raise ConfigurationError(
                    f"a file of the embedding model does not match its checksum: {path}",
                    hint="reinstall rag-assets, or restart after replacing a model of your own",
                )


def describe_folder(
    folder: Path | None = None,
    *,
    dimensions: int | None = None,
    pooling: Pooling | None = None,
) -> ModelFolder:
    """Describe a model's folder, by default that of the model shipped with the package.

    Args:
        folder: a folder with an ONNX model and its tokenizer.json.
        dimensions: length of a vector, if it is not config.json's hidden_size.
        pooling: if the folder does not set it and it is not the mean.

    Raises:
        ConfigurationError: the folder lacks a required file or setting, or holds several models.
    """
    folder = MODELS / DEFAULT_MODEL if folder is None else folder
    weights, tokenizer = find_weights(folder), find_tokenizer(folder)
    return ModelFolder(
        name=folder.resolve().name,
        weights=weights,
        tokenizer=tokenizer,
        digests=_digests(folder, (*with_external_data(weights), tokenizer)),
        dimensions=dimensions or _hidden_size(folder),
        window=window_of(folder),
        pooling=pooling or _pooling(folder),
    )


def _digests(folder: Path, files: tuple[Path, ...]) -> tuple[tuple[Path, str], ...]:
    # Only the shipped manifest is trusted: beside another model it may be stale or forged.
    manifest = read_json(folder / _MANIFEST) if folder.parent == MODELS else {}
    listed = manifest.get("files", {})
    return tuple(
        (path, listed[path.name]["sha256"] if path.name in listed else digest_of(path))
        for path in files
    )


def _hidden_size(folder: Path) -> int:
    config = read_json(folder / "config.json")
    return positive(config.get("hidden_size")) or missing(folder, "config.json: hidden_size")


def _pooling(folder: Path) -> Pooling:
    modes = {
        key.removeprefix("pooling_mode_")
        for key, value in read_json(folder / "1_Pooling" / "config.json").items()
        if key.startswith("pooling_mode_") and value is True
    }
    if modes <= {"mean_tokens"}:
        return "mean"
    if modes == {"cls_token"}:
        return "cls"
    raise ConfigurationError(
        f"the embedding model's pooling is not supported ({', '.join(sorted(modes))}): {folder}",
        hint="supported are mean_tokens and cls_token",
    )
