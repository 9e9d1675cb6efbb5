"""From a tenant's configuration to its embedder, and to the embedder's id without making one.

Importing this loads neither onnxruntime nor a provider's SDK. A provider is one entry in
_PROVIDERS: which options it takes, how its id is found cheaply, how it is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rag_assets.embedding.deterministic import (
    DEFAULT_DIMENSIONS,
    DeterministicEmbedder,
    deterministic_embedder_id,
)
from rag_assets.embedding.model_folder import DEFAULT_MODEL, MODELS, Pooling, describe_folder
from rag_assets.embedding.prices import Price, listed_price, provider_and_model
from rag_assets.embedding.protocol import Embedder
from rag_assets.embedding.revision import RevisedEmbedder, revised_id

MAX_DIMENSIONS = 4096
"""The longest vector Elasticsearch indexes."""


class EmbedderConfig(BaseModel):
    """Which embedder a tenant uses; without anything set, the model shipped with the package.

    Attributes:
        provider: "local" runs an ONNX model on this machine's cores. "deterministic" makes vectors
            from a hash of the text: for tests and benchmarks, since it finds nothing by meaning.
        model: local: the name of a shipped model.
        path: local: the absolute folder of a model of your own, instead of a shipped one.
        dimensions: length of a vector. local: needed only where the model's config.json does not
            say it. deterministic: any, by default 384.
        pooling: local: how token vectors become one, where the model's folder does not say it.
        threads: local: texts embedded at once; by default the cores of this process.
        seconds_per_text: deterministic: time spent on each text.
        price: in dollars, where it is not the listed one, or none is known.
        revision: a word of your own, such as a date: vectors made under another one are not used.
            For a provider that changed the model behind its name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Literal["local", "deterministic"] = "local"
    model: str | None = None
    path: Path | None = None
    dimensions: int | None = Field(default=None, ge=1, le=MAX_DIMENSIONS)
    pooling: Pooling | None = None
    threads: int | None = Field(default=None, ge=1, le=1024)
    seconds_per_text: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    price: Price | None = None
    revision: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._-]{1,40}$")

    @model_validator(mode="after")
    def _only_options_of_the_provider(self) -> Self:
        known = {"provider", "price", "revision", *_PROVIDERS[self.provider].options}
        foreign = [name for name, value in self if value is not None and name not in known]
        if foreign:
            raise ValueError(f"the provider {self.provider!r} takes no {', '.join(foreign)}")
        return self

    @model_validator(mode="after")
    def _one_usable_model(self) -> Self:
        if self.model is not None and self.path is not None:
            raise ValueError("give either model (a shipped one) or path (your own), not both")
        if self.path is not None and not self.path.is_absolute():
            raise ValueError(f"path must be absolute: {self.path}")
        if self.provider == "local" and self.model is not None and self.model not in _shipped():
            raise ValueError(
                f"no model {self.model!r} is shipped (there is: {', '.join(_shipped())});"
                " give the path of its folder"
            )
        return self


def build_embedder(config: EmbedderConfig) -> Embedder:
    """Make the configured embedder; models are loaded at their first use.

    Raises:
        ConfigurationError: the configured model's folder is missing or not usable.
    """
    embedder = _PROVIDERS[config.provider].build(config)
    return embedder if config.revision is None else RevisedEmbedder(embedder, config.revision)


def embedder_id_of(config: EmbedderConfig) -> str:
    """Return build_embedder(config).embedder_id, in well under a millisecond as a rule.

    A model of your own is hashed once per process, about 2 ms per 3 MB.

    Raises:
        ConfigurationError: the configured model's folder is missing or not usable.
    """
    return revised_id(_PROVIDERS[config.provider].identify(config), config.revision)


def price_of(config: EmbedderConfig) -> Price | None:
    """What embedding costs with this configuration; None if no price is known.

    Raises:
        ConfigurationError: the configured model's folder is missing or not usable.
    """
    if config.price is not None:
        return config.price
    # Whose server it is decides about the price, whatever model it offers.
    if getattr(config, "base_url", None) is not None:
        return None
    return listed_price(*provider_and_model(embedder_id_of(config)))


@dataclass(frozen=True, slots=True)
class _Provider:
    options: frozenset[str]
    identify: Callable[[EmbedderConfig], str]
    build: Callable[[EmbedderConfig], Embedder]


def _build_local(config: EmbedderConfig) -> Embedder:
    from rag_assets.embedding.local import OnnxEmbedder

    return OnnxEmbedder(
        _folder(config), config.threads, dimensions=config.dimensions, pooling=config.pooling
    )


def _identify_local(config: EmbedderConfig) -> str:
    return describe_folder(
        _folder(config), dimensions=config.dimensions, pooling=config.pooling
    ).embedder_id


def _folder(config: EmbedderConfig) -> Path:
    return config.path or MODELS / (config.model or DEFAULT_MODEL)


def _build_deterministic(config: EmbedderConfig) -> Embedder:
    return DeterministicEmbedder(
        config.dimensions or DEFAULT_DIMENSIONS, config.seconds_per_text or 0.0
    )


def _identify_deterministic(config: EmbedderConfig) -> str:
    return deterministic_embedder_id(config.dimensions or DEFAULT_DIMENSIONS)


def _shipped() -> list[str]:
    return sorted(folder.name for folder in MODELS.iterdir() if folder.is_dir())


_PROVIDERS = {
    "local": _Provider(
        frozenset({"model", "path", "dimensions", "pooling", "threads"}),
        _identify_local,
        _build_local,
    ),
    "deterministic": _Provider(
        frozenset({"dimensions", "seconds_per_text"}),
        _identify_deterministic,
        _build_deterministic,
    ),
}
