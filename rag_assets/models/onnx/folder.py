"""Finds the files of a published ONNX model in a folder, without loading them.

| file | decides | if missing |
|---|---|---|
| model_quantized.onnx, model.onnx, in the folder or in onnx/ | weights | any single *.onnx |
| tokenizer.json | word pieces | an error |
| sentence_bert_config.json: max_seq_length, else tokenizer_config.json: model_max_length, | | |
| else config.json: max_position_embeddings | word pieces read at once | an error |
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any, NoReturn

from rag_assets.common.errors import ConfigurationError

_WEIGHTS = ("model_quantized.onnx", "model.onnx", "onnx/model_quantized.onnx", "onnx/model.onnx")
_LARGEST_WINDOW = 1_000_000  # tokenizers write 1e30 for "no limit": then it is not the limit


def find_weights(folder: Path) -> Path:
    """Find the model in a folder.

    Raises:
        ConfigurationError: the folder does not exist, or does not hold exactly one model.
    """
    if not folder.is_dir():
        raise ConfigurationError(
            f"the model's folder does not exist: {folder}",
            hint="set the path of the folder that holds model.onnx and tokenizer.json",
        )
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


def find_tokenizer(folder: Path) -> Path:
    """Find the tokenizer in a model's folder.

    Raises:
        ConfigurationError: tokenizer.json is missing.
    """
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.is_file():
        raise ConfigurationError(f"the model's folder has no tokenizer.json: {folder}")
    return tokenizer


def with_external_data(weights: Path) -> tuple[Path, ...]:
    """The model's file, and the files that hold its weights beyond ONNX's limit of 2 GB."""
    beside = (weights.with_name(weights.name + suffix) for suffix in ("_data", ".data"))
    return (weights, *(path for path in beside if path.is_file()))


def window_of(folder: Path) -> int:
    """The model's window: tokens of one call, special ones included.

    Raises:
        ConfigurationError: no file of the folder sets it.
    """
    return (
        positive(read_json(folder / "sentence_bert_config.json").get("max_seq_length"))
        or positive(read_json(folder / "tokenizer_config.json").get("model_max_length"))
        or positive(read_json(folder / "config.json").get("max_position_embeddings"))
        or missing(folder, "sentence_bert_config.json: max_seq_length")
    )


def digest_of(path: Path) -> str:
    """SHA-256 of a file, which is read once per process and change."""
    facts = path.stat()
    return _hash_file(path, facts.st_size, facts.st_mtime_ns)


def positive(value: object) -> int | None:
    """A configured number, if it is a positive integer within the largest window."""
    return value if isinstance(value, int) and 0 < value < _LARGEST_WINDOW else None


def missing(folder: Path, what: str) -> NoReturn:
    """Refuse a folder that lacks a required setting."""
    raise ConfigurationError(f"the model's folder lacks {what}: {folder}")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file; empty if the file does not exist.

    Raises:
        ConfigurationError: it is not readable, or not an object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the file is not readable JSON: {path}") from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"the file is not a JSON object: {path}")
    return content


@functools.lru_cache(maxsize=64)
def _hash_file(path: Path, size: int, mtime_ns: int) -> str:
    """Hash a file; size and mtime are part of the cache key, so that a change is noticed."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
