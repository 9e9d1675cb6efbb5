"""A folder with an ONNX model as models are published: what is in it, without loading anything.

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
    """The model in a folder.

    Raises:
        ConfigurationError: there is no such folder, no model in it, or more than one.
    """
    if not folder.is_dir():
        raise ConfigurationError(
            f"no such folder with a model: {folder}",
            hint="give the folder that holds model.onnx and tokenizer.json",
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
    """What cuts the model's texts into word pieces.

    Raises:
        ConfigurationError: there is none.
    """
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.is_file():
        raise ConfigurationError(f"the model lacks its tokenizer.json: {folder}")
    return tokenizer


def with_external_data(weights: Path) -> tuple[Path, ...]:
    """The model with the files beside it that hold weights beyond ONNX's 2 GB."""
    beside = (weights.with_name(weights.name + suffix) for suffix in ("_data", ".data"))
    return (weights, *(path for path in beside if path.is_file()))


def window_of(folder: Path) -> int:
    """Word pieces that the model reads at once, special ones included.

    Raises:
        ConfigurationError: the folder does not say.
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
    """A number of a configuration if it is one that limits anything."""
    return value if isinstance(value, int) and 0 < value < _LARGEST_WINDOW else None


def missing(folder: Path, what: str) -> NoReturn:
    """Refuse a folder that does not say what is needed."""
    raise ConfigurationError(f"the model does not say its {what}: {folder}")


def read_json(path: Path) -> dict[str, Any]:
    """An object from a file, empty where there is none.

    Raises:
        ConfigurationError: it is not readable, or no object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"not a readable JSON file: {path}") from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"not a JSON object: {path}")
    return content


@functools.lru_cache(maxsize=64)
def _hash_file(path: Path, size: int, mtime_ns: int) -> str:
    """Hash a file; size and mtime are there to hash a changed one again."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
