"""What a folder with an ONNX model holds, read without loading the model.

A run that finds nothing to do asks for an embedder's id and nothing else, so describing a folder
opens small JSON files only; onnxruntime and tokenizers are not imported. The weights of a folder
that is not ours are hashed once per process and change of the file.

| file | decides | if missing |
|---|---|---|
| model_quantized.onnx, model.onnx, in the folder or in onnx/ | weights | any single *.onnx |
| tokenizer.json | word pieces | an error |
| config.json: hidden_size | dimensions, unless given | an error, unless given |
| sentence_bert_config.json: max_seq_length, else tokenizer_config.json: model_max_length, | | |
| else config.json: max_position_embeddings | word pieces read at once | an error |
| 1_Pooling/config.json | pooling, unless given | mean |
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rag_assets.errors import ConfigurationError
from rag_assets.hashing import key_of

Pooling: TypeAlias = Literal["mean", "cls"]

MODELS = Path(__file__).parent / "models"
DEFAULT_MODEL = "all-MiniLM-L6-v2"

_WEIGHTS = ("model_quantized.onnx", "model.onnx", "onnx/model_quantized.onnx", "onnx/model.onnx")
_TOKENIZER = "tokenizer.json"
_MANIFEST = "manifest.json"
_LARGEST_WINDOW = 1_000_000  # tokenizers write 1e30 for "no limit": then it is not the limit


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A local embedding model: where it lies and everything that determines its vectors.

    Attributes:
        name: the folder's name.
        weights, tokenizer: the files to load.
        digests: SHA-256 of every file that determines a vector, by path.
        dimensions: length of a vector.
        window: tokens read at once, special ones included.
        pooling: how token vectors become one, where the model does not do it itself.
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
        """local/name@dimensions+digest; the same for copies of a folder, wherever they lie."""
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.name)
        hashes = [digest for _, digest in self.digests]
        digest = key_of("local_embedder", hashes, self.pooling, self.window, "windows averaged")
        return f"local/{name}@{self.dimensions}+{digest[:12]}"

    def verify(self) -> None:
        """Compare the files with their digests, before they are loaded.

        Raises:
            ConfigurationError: a file is damaged, or was replaced since it was described.
        """
        for path, expected in self.digests:
            if _file_sha256(path) != expected:
                raise ConfigurationError(
                    f"the embedding model's file does not have its checksum: {path}",
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
        dimensions: length of a vector, where config.json's hidden_size is not it.
        pooling: where the folder does not say it and it is not the mean.

    Raises:
        ConfigurationError: the folder lacks what is needed, or holds several models.
    """
    folder = MODELS / DEFAULT_MODEL if folder is None else folder
    if not folder.is_dir():
        raise ConfigurationError(
            f"no such folder with an embedding model: {folder}",
            hint="give the folder that holds model.onnx and tokenizer.json",
        )
    weights, tokenizer = _weights(folder), folder / _TOKENIZER
    if not tokenizer.is_file():
        raise ConfigurationError(f"the embedding model lacks its tokenizer.json: {folder}")
    config = _read_json(folder / "config.json")
    return ModelFolder(
        name=folder.resolve().name,
        weights=weights,
        tokenizer=tokenizer,
        digests=_digests(folder, (*_with_external_data(weights), tokenizer)),
        dimensions=dimensions or _hidden_size(folder, config),
        window=_window(folder, config),
        pooling=pooling or _pooling(folder),
    )


def _weights(folder: Path) -> Path:
    for name in _WEIGHTS:
        if (folder / name).is_file():
            return folder / name
    found = sorted([*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")])
    if len(found) == 1:
        return found[0]
    names = ", ".join(path.name for path in found) or "none"
    raise ConfigurationError(
        f"expected one ONNX model in {folder}, found: {names}",
        hint="keep one of them, or name it model.onnx",
    )


def _with_external_data(weights: Path) -> tuple[Path, ...]:
    """Add the files beside the model that hold weights beyond ONNX's 2 GB."""
    beside = (weights.with_name(weights.name + suffix) for suffix in ("_data", ".data"))
    return (weights, *(path for path in beside if path.is_file()))


def _digests(folder: Path, files: tuple[Path, ...]) -> tuple[tuple[Path, str], ...]:
    # Only the shipped manifest is believed: beside another model it might be anybody's or stale.
    manifest = _read_json(folder / _MANIFEST) if folder.parent == MODELS else {}
    listed = manifest.get("files", {})
    return tuple(
        (path, listed[path.name]["sha256"] if path.name in listed else _file_sha256(path))
        for path in files
    )


def _file_sha256(path: Path) -> str:
    facts = path.stat()
    return _hash_file(path, facts.st_size, facts.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _hash_file(path: Path, size: int, mtime_ns: int) -> str:
    """Hash a file; size and mtime are there to hash a changed one again."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _hidden_size(folder: Path, config: dict[str, Any]) -> int:
    return _positive(config.get("hidden_size")) or _missing(folder, "config.json: hidden_size")


def _window(folder: Path, config: dict[str, Any]) -> int:
    sentence = _read_json(folder / "sentence_bert_config.json")
    tokenizer = _read_json(folder / "tokenizer_config.json")
    return (
        _positive(sentence.get("max_seq_length"))
        or _positive(tokenizer.get("model_max_length"))
        or _positive(config.get("max_position_embeddings"))
        or _missing(folder, "sentence_bert_config.json: max_seq_length")
    )


def _pooling(folder: Path) -> Pooling:
    modes = {
        key.removeprefix("pooling_mode_")
        for key, value in _read_json(folder / "1_Pooling" / "config.json").items()
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


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and 0 < value < _LARGEST_WINDOW else None


def _missing(folder: Path, what: str) -> int:
    raise ConfigurationError(f"the embedding model does not say its {what}: {folder}")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"not a readable JSON file: {path}") from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"not a JSON object: {path}")
    return content
