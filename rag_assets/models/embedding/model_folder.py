"""Describe the folder of an embedding model, without loading the model.

A run without texts to embed only needs the embedder's id. So describing a folder opens only
small JSON files, and imports neither onnxruntime nor tokenizers. The weights of a tenant's own
folder are hashed once per process, and again if the file changes.

| file | decides | if missing |
|---|---|---|
| weights, tokenizer, word pieces read at once | see onnx.py | |
| config.json: hidden_size | dimensions, unless given | an error, unless given |
| modules.json | modules after the network: Pooling, Dense, Normalize (not Dropout) | Pooling |
| 1_Pooling/config.json | pooling, unless given; whether it includes the prefix | mean; it does |
| 2_Dense/config.json, model.safetensors | a projection of the pooled vector | none |
| config_sentence_transformers.json: prompts | prefixes, unless given | none |
| sentence_bert_config.json: do_lower_case | whether texts are read in lower case | no |
| README.md: language | languages of the training; changes no vector | unknown |

These are the files of sentence-transformers, with its rules for them. Vectors are normalized
whether or not Normalize is among the modules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.hashing import compute_key
from rag_assets.models.embedding.protocol import Purpose
from rag_assets.models.onnx import (
    find_tokenizer,
    find_weights,
    hash_file,
    list_weight_files,
    parse_positive,
    raise_missing,
    read_card_languages,
    read_json,
    read_json_list,
    read_window,
)

Pooling: TypeAlias = Literal["mean", "cls", "last"]

MODELS = Path(__file__).parent / "models"
DEFAULT_MODEL = "all-MiniLM-L6-v2"

_MANIFEST = "manifest.json"
_POOLING_MODES: Mapping[str, Pooling] = {
    "mean": "mean",
    "mean_tokens": "mean",
    "mean_sqrt_len": "mean",  # differs only in length, not in direction
    "mean_sqrt_len_tokens": "mean",
    "cls": "cls",
    "cls_token": "cls",
    "lasttoken": "last",
}
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")

_KNOWN_CHECKSUMS = frozenset(
    {
        # all-MiniLM-L6-v2: weights and tokenizer, as they are shipped.
        "f9fc4cb528583f95d1bfd316da400f195aaf6ae8f66a64b348481250c2e6e45d",
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        # bge-small-en-v1.5: weights quantized by Qdrant, weights from its authors, and the
        # tokenizer.
        "51f1bd0addd6e859e42c2c8021a5e5461385bb676a649f4b269aa445449f2431",
        "828e1496d7fabb79cfa4dcd84fa38625c0d3d21da474a00f08db0f559940cf35",
        "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
    }
)
"""SHA-256 of the files of those models that may be loaded from any folder."""


class FolderSettings(TypedDict, total=False):
    """Settings that replace those in a model's folder; None keeps the folder's setting.

    Attributes:
        dimensions: length of a vector, if it differs from the last Dense module's or
            hidden_size.
        pooling: how token vectors are combined, if the folder does not set it and it is not the
            mean.
        former: whether to use the rules of earlier versions; vectors that were computed by
            these rules may still be searched.
    """

    dimensions: int | None
    pooling: Pooling | None
    document_prefix: str | None
    query_prefix: str | None
    former: bool


@dataclass(frozen=True, slots=True)
class DenseLayer:
    """A projection of pooled vectors; it is not applied if the network already includes it."""

    weights: Path
    """The file with the tensors `linear.weight` and `linear.bias`."""
    dimensions: int | None
    activation: str
    """Function applied to the projected vectors, in lower case, such as "tanh"."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A local embedding model: its files and everything that determines its vectors."""

    name: str
    weights: Path
    tokenizer: Path
    digests: tuple[tuple[Path, str], ...]
    """SHA-256 of every file that determines a vector, by path."""
    dimensions: int
    window: int
    """Maximum tokens of one call, special tokens included."""
    pooling: Pooling
    """How token vectors are combined, unless the model itself combines them."""
    pools_prefix: bool = True
    """Whether the tokens of a prefix are pooled."""
    document_prefix: str = ""
    query_prefix: str = ""
    is_lowercase: bool = False
    dense: tuple[DenseLayer, ...] = ()

    @property
    def languages(self) -> frozenset[str] | None:
        """Return the languages that the model card names; None if it names none or all of them."""
        return read_card_languages(self.tokenizer.parent)

    @property
    def embedder_id(self) -> str:
        """Return local/NAME@DIMENSIONS+DIGEST, which stays the same if the folder is copied."""
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.name)
        hashes = [digest for _, digest in self.digests]
        # Include only settings that not every folder has, so that the ids of other folders do not
        # change.
        settings = {
            setting: value
            for setting, value in (
                ("document_prefix", self.document_prefix),
                ("query_prefix", self.query_prefix),
                (
                    "prefix_not_pooled",
                    bool(self.document_prefix or self.query_prefix) and not self.pools_prefix,
                ),
                ("lower_case", self.is_lowercase),
                ("activations", [layer.activation for layer in self.dense]),
            )
            if value
        }
        digest = compute_key(
            *("local_embedder", hashes, self.pooling, self.window, "windows averaged"),
            *([settings] if settings else []),
        )
        return f"local/{name}@{self.dimensions}+{digest[:12]}"

    @property
    def is_known(self) -> bool:
        """Return whether all files have the checksums of a published model."""
        return all(digest in _KNOWN_CHECKSUMS for _, digest in self.digests)

    def get_prefix(self, purpose: Purpose) -> str:
        """Return the prefix for texts with this purpose."""
        return self.query_prefix if purpose == "query" else self.document_prefix

    def verify(self) -> None:
        """Check the files against their digests, before they are loaded."""
        for path, expected in self.digests:
            if hash_file(path) != expected:
                raise ConfigurationError(
                    f"a file of the embedding model does not match its checksum: {path}",
                    hint="reinstall rag-assets, or restart after replacing a model of your own",
                )


def describe_folder(folder: Path | None = None, **settings: Unpack[FolderSettings]) -> ModelFolder:
    """Describe a model's folder, by default the shipped one; refuse an unusable folder."""
    folder = MODELS / DEFAULT_MODEL if folder is None else folder
    dimensions, pooling = settings.get("dimensions"), settings.get("pooling")
    if settings.get("former"):
        return _describe_by_former_rules(folder, dimensions, pooling)
    weights, tokenizer = find_weights(folder), find_tokenizer(folder)
    pooling_folder, dense_folders = _read_modules(folder)
    pooling_config = read_json(pooling_folder / "config.json")
    dense = tuple(_describe_dense_layer(dense_folder) for dense_folder in dense_folders)
    projections = (layer.weights for layer in dense if layer.weights.is_file())
    files = (*list_weight_files(weights), tokenizer, *projections)
    document, query = settings.get("document_prefix"), settings.get("query_prefix")
    prompts = _read_prompts(folder)
    return ModelFolder(
        name=folder.resolve().name,
        weights=weights,
        tokenizer=tokenizer,
        digests=_hash_files(folder, files),
        dimensions=dimensions
        or (dense[-1].dimensions if dense else None)
        or _read_hidden_size(folder),
        window=read_window(folder),
        pooling=pooling or _read_pooling(pooling_folder, pooling_config),
        pools_prefix=pooling_config.get("include_prompt") is not False,
        document_prefix=prompts["document"] if document is None else document,
        query_prefix=prompts["query"] if query is None else query,
        is_lowercase=read_json(folder / "sentence_bert_config.json").get("do_lower_case") is True,
        dense=dense,
    )


def _describe_by_former_rules(
    folder: Path, dimensions: int | None, pooling: Pooling | None
) -> ModelFolder:
    """Describe a folder by the rules of earlier versions.

    They ignore prompts, modules, lower case and the number of positions.
    """
    weights, tokenizer = find_weights(folder), find_tokenizer(folder)
    pooling_config = read_json(folder / "1_Pooling" / "config.json")
    pooling_config.pop("pooling_mode", None)
    return ModelFolder(
        name=folder.resolve().name,
        weights=weights,
        tokenizer=tokenizer,
        digests=_hash_files(folder, (*list_weight_files(weights), tokenizer)),
        dimensions=dimensions or _read_hidden_size(folder),
        window=parse_positive(read_json(folder / "sentence_bert_config.json").get("max_seq_length"))
        or parse_positive(read_json(folder / "tokenizer_config.json").get("model_max_length"))
        or parse_positive(read_json(folder / "config.json").get("max_position_embeddings"))
        or raise_missing(folder, "sentence_bert_config.json: max_seq_length"),
        pooling=pooling or _read_pooling(folder / "1_Pooling", pooling_config),
    )


def _hash_files(folder: Path, files: tuple[Path, ...]) -> tuple[tuple[Path, str], ...]:
    # Trust only the manifest of shipped models: next to another model, it may be outdated or
    # forged.
    manifest = read_json(folder / _MANIFEST) if folder.parent == MODELS else {}
    listed = manifest.get("files", {})
    return tuple(
        (path, listed[path.name]["sha256"] if path.name in listed else hash_file(path))
        for path in files
    )


def _read_hidden_size(folder: Path) -> int:
    config = read_json(folder / "config.json")
    return parse_positive(config.get("hidden_size")) or raise_missing(
        folder, "config.json: hidden_size"
    )


def _read_modules(folder: Path) -> tuple[Path, list[Path]]:
    """Return the folders of the Pooling and the Dense modules."""
    modules = [
        (str(module.get("type", "")).rpartition(".")[2], folder / str(module.get("path", "")))
        for module in read_json_list(folder / "modules.json")
    ]
    kinds = [kind for kind, _ in modules if kind != "Dropout"]
    if not re.fullmatch(r"(Transformer( Pooling)?( Dense)*( Normalize)?)?", " ".join(kinds)):
        raise ConfigurationError(
            f"the embedding model's modules are not supported ({', '.join(kinds)}): {folder}",
            hint="supported, in this order: Transformer, Pooling, any number of Dense, Normalize",
        )
    pooling = next((path for kind, path in modules if kind == "Pooling"), folder / "1_Pooling")
    return pooling, [path for kind, path in modules if kind == "Dense"]


def _describe_dense_layer(folder: Path) -> DenseLayer:
    """Return the description of a Dense module in this folder, without loading its weights."""
    config = read_json(folder / "config.json")
    activation = str(config.get("activation_function", "")).rpartition(".")[2].lower()
    weights, older = folder / "model.safetensors", folder / "pytorch_model.bin"
    if older.is_file() and not weights.is_file():
        weights = older
    return DenseLayer(weights, parse_positive(config.get("out_features")), activation)


def _read_prompts(folder: Path) -> dict[Purpose, str]:
    """Return the prefixes that the folder's files set for texts and for questions."""
    path = folder / "config_sentence_transformers.json"
    config = read_json(path)
    prompts, default_name = config.get("prompts") or {}, config.get("default_prompt_name") or ""
    if not (
        isinstance(prompts, dict)
        and all(isinstance(prompt, str | None) for prompt in prompts.values())
        and isinstance(default_name, str)
    ):
        raise ConfigurationError(
            f"prompts must map names to texts, and default_prompt_name must be a name: {path}"
        )
    default = prompts.get(default_name) or ""
    document = next((prompts[name] for name in _DOCUMENT_PROMPTS if name in prompts), default)
    return {"document": document or "", "query": prompts.get("query", default) or ""}


def _read_pooling(folder: Path, config: Mapping[str, Any]) -> Pooling:
    setting = config.get("pooling_mode") or []
    listed_modes = setting if isinstance(setting, list) else [setting]
    if not all(isinstance(mode, str) for mode in listed_modes):
        raise ConfigurationError(f"pooling_mode must be a string: {folder / 'config.json'}")
    modes = set(listed_modes) | {
        key.removeprefix("pooling_mode_")
        for key, value in config.items()
        if key.startswith("pooling_mode_") and value is True
    }
    if not modes:
        return "mean"
    if len(modes) == 1 and modes <= _POOLING_MODES.keys():
        return _POOLING_MODES[min(modes)]
    raise ConfigurationError(
        f"the embedding model's pooling is not supported ({', '.join(sorted(modes))}): {folder}",
        hint="set exactly one of mean_tokens, cls_token and lasttoken",
    )
