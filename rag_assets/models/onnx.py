"""ONNX models on this machine's CPU: their folders, tokenizers and sessions.

Finding the files of a folder loads none of them:

| file | decides | if missing |
|---|---|---|
| model_quantized.onnx, model.onnx, in the folder or in onnx/ | weights | any single *.onnx |
| tokenizer.json | word pieces | an error |
| sentence_bert_config.json: max_seq_length, else tokenizer_config.json: model_max_length, | | |
| else config.json: max_position_embeddings | word pieces read at once | an error |
| config.json: model_type, max_position_embeddings, pad_token_id | the most that it can read | |

The meaning of a model's outputs belongs to embedding and reranking.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import ConfigurationError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


_WEIGHTS = ("model_quantized.onnx", "model.onnx", "onnx/model_quantized.onnx", "onnx/model.onnx")
_MAX_WINDOW_TOKENS = (
    1_000_000  # tokenizers write 1e30 for "no limit"; values this large are ignored
)
_LEARNED_POSITIONS = frozenset({"bert", "distilbert", "electra"})
"""Model types with one learned vector for each position, which cannot read beyond the last
position."""
_POSITIONS_AFTER_PADDING = frozenset(
    {"roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet"}
)
"""Such model types whose positions are counted from the padding token's id."""
_METADATA = re.compile(r"---[ \t]*\r?\n(.*?)\n---", re.DOTALL)
_LANGUAGE = re.compile(r"^language:[ \t]*([^\n]*(?:\n[ \t]*-[ \t][^\n]*)*)", re.MULTILINE)
_CODE = re.compile(r"[A-Za-z]{2,}(?:-[A-Za-z]+)?")
_MAX_METADATA_CHARACTERS = 1_000_000
"""Maximum characters of metadata; cards of evaluated models list their results there."""


def find_weights(folder: Path) -> Path:
    """Return the path of the only ONNX file in a model's folder, or the one with a usual name."""
    if not folder.is_dir():
        raise ConfigurationError(
            f"the model's folder does not exist: {folder}",
            hint="set the path of the folder that holds model.onnx and tokenizer.json",
        )
    for name in _WEIGHTS:
        if (folder / name).is_file():
            return folder / name
    models = sorted([*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")])
    if len(models) == 1:
        return models[0]
    names = ", ".join(path.name for path in models) or "none"
    raise ConfigurationError(
        f"expected one ONNX model in {folder}, found: {names}",
        hint="remove all but one of these files, or rename the right file to model.onnx",
    )


def find_tokenizer(folder: Path) -> Path:
    """Return the path of tokenizer.json in a model's folder."""
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.is_file():
        raise ConfigurationError(
            f"the model's folder has no tokenizer.json: {folder}",
            hint="save it with AutoTokenizer.from_pretrained(MODEL).save_pretrained(FOLDER)",
        )
    return tokenizer


def list_weight_files(weights: Path) -> tuple[Path, ...]:
    """Return the ONNX file and, for a model above 2 GB, the separate files with its weights."""
    data_files = (weights.with_name(weights.name + suffix) for suffix in ("_data", ".data"))
    return (weights, *(path for path in data_files if path.is_file()))


def read_window(folder: Path) -> int:
    """Return a model's window: the maximum tokens of one call, special tokens included.

    A window that exceeds the number of the model's positions is reduced to that number.
    """
    config = read_json(folder / "config.json")
    positions = parse_positive(config.get("max_position_embeddings"))
    if positions and config.get("model_type") in _POSITIONS_AFTER_PADDING:
        positions -= 1 + (parse_positive(config.get("pad_token_id")) or 1)
    window = (
        parse_positive(read_json(folder / "sentence_bert_config.json").get("max_seq_length"))
        or parse_positive(read_json(folder / "tokenizer_config.json").get("model_max_length"))
        or positions
        or raise_missing(folder, "sentence_bert_config.json: max_seq_length")
    )
    is_limited = config.get("model_type") in _LEARNED_POSITIONS | _POSITIONS_AFTER_PADDING
    return min(window, positions) if positions and is_limited else window


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; it is cached until the file changes."""
    status = path.stat()
    return _hash_file(path, status.st_size, status.st_mtime_ns)


@functools.cache
def read_card_languages(folder: Path) -> frozenset[str] | None:
    """Return the languages that the model card of a folder names, as ISO 639-1 codes.

    The languages are in the metadata at the start of the card, as authors of models publish it.
    None if the card does not name a language or is not readable, because a wrong card must not make
    a model unusable.
    """
    try:
        with (folder / "README.md").open(encoding="utf-8", errors="replace") as file:
            head = _METADATA.match(file.read(_MAX_METADATA_CHARACTERS))
    except OSError:
        return None
    # Parse only this entry, since the results of an evaluated model may be tens of thousands of
    # lines of YAML.
    entry = _LANGUAGE.search(head[1]) if head else None
    codes = [code.lower() for code in _CODE.findall(entry[1])] if entry else []
    if not codes or "multilingual" in codes:
        return None
    return frozenset(code.partition("-")[0] for code in codes)


def parse_positive(value: object) -> int | None:
    """Return a configured number if it is an integer from 1 to the largest window; else None."""
    return value if isinstance(value, int) and 0 < value < _MAX_WINDOW_TOKENS else None


def raise_missing(folder: Path, setting: str) -> NoReturn:
    """Raise the ConfigurationError for a folder that does not have a required setting."""
    raise ConfigurationError(f"the model's folder lacks {setting}: {folder}")


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; empty if the file does not exist."""
    content = _load_json(path)
    if not isinstance(content, dict | None):
        raise ConfigurationError(f"the file is not a JSON object: {path}")
    return content or {}


def read_json_list(path: Path) -> list[dict[str, Any]]:
    """Return the JSON list of objects in a file; empty if the file does not exist."""
    content = _load_json(path)
    if content is None:
        return []
    if not isinstance(content, list) or not all(isinstance(item, dict) for item in content):
        raise ConfigurationError(f"the file is not a JSON list of objects: {path}")
    return content


def _load_json(path: Path) -> object:
    """Load JSON from a file; None if the file does not exist."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the file is not readable JSON: {path}") from error


@functools.lru_cache(maxsize=64)
def _hash_file(path: Path, size: int, mtime_ns: int) -> str:
    """Return the SHA-256 of a file; it is computed again if the size or the time has changed."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


Inputs: TypeAlias = Mapping[str, type[np.signedinteger[Any]]]
"""A model's inputs and the integer type of each."""

_INTEGERS: dict[str, type[np.signedinteger[Any]]] = {
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}
_KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def load_session(weights: Path) -> Any:
    """Load a model into an onnxruntime session, whose calls run on the calling thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.log_severity_level = 3  # only errors; its warnings are about devices that are not used
    try:
        return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common base
        raise ConfigurationError(
            f"onnxruntime cannot load the model: {weights}", hint=cut_message(error)
        ) from error


def cut_message(error: Exception) -> str | None:
    """Return the first line of an onnxruntime error, cut to 300 characters; None if empty."""
    return str(error).splitlines()[0][:300] if str(error) else None


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a tokenizer from tokenizer.json."""
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the Rust library raises Exception itself
        raise ConfigurationError(f"the file is not a readable tokenizer: {path}") from error


def plan_inputs(session: Any, weights: Path) -> Inputs:
    """Return the inputs that a model requires, after checking that all of them are supported."""
    required = {node.name: node.type for node in session.get_inputs()}
    unknown = [n for n, kind in required.items() if n not in _KNOWN_INPUTS or kind not in _INTEGERS]
    if unknown:
        raise ConfigurationError(
            f"the ONNX model requires unknown inputs ({', '.join(unknown)}): {weights}",
            hint=f"supported are {', '.join(_KNOWN_INPUTS)}",
        )
    return {name: _INTEGERS[kind] for name, kind in required.items()}


def build_inputs(inputs: Inputs, encodings: list[Encoding]) -> dict[str, npt.NDArray[Any]]:
    """Return the model's inputs by name, of shape (texts, tokens), for texts of equal length."""
    values = {
        "input_ids": [encoding.ids for encoding in encodings],
        "attention_mask": [encoding.attention_mask for encoding in encodings],
        "token_type_ids": [encoding.type_ids for encoding in encodings],
    }
    return {name: np.array(values[name], dtype) for name, dtype in inputs.items()}


def join_surrogates(text: str) -> str:
    """Return a text that tokenizers accept, without lone surrogates.

    A pair of surrogates is joined into its character; a lone surrogate is replaced.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def count_cores() -> int:
    """Return the number of cores that this process may use, within its CPU affinity."""
    if hasattr(os, "process_cpu_count"):  # from Python 3.13 on
        return int(os.process_cpu_count() or 1)
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
