"""Which embedder a tenant has, as tenants.yaml says it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from rag_assets.common.references import require_reference
from rag_assets.models.embedding.addresses import normal_base_url
from rag_assets.models.embedding.model_folder import MODELS, Pooling
from rag_assets.models.embedding.prices import Price
from rag_assets.models.embedding.providers.models import DEFAULT_MODELS, known_model, names_of

MAX_DIMENSIONS = 4096
"""The longest vector Elasticsearch indexes."""

Provider: TypeAlias = Literal[
    "local", "openai", "gemini", "openai-compatible", "auto", "deterministic"
]
ModelName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9._:/@-]+$", min_length=1, max_length=200)
]
Prefix: TypeAlias = Annotated[str, StringConstraints(max_length=1000)]

_REMOTE = frozenset(
    {"api_key", "requests_per_minute", "tokens_per_minute", "concurrency", "max_input_tokens"}
    | {"batch_size"}
)
_PREFIXES = frozenset({"document_prefix", "query_prefix"})
_CHOSEN = frozenset({"model", "dimensions"})
_OPTIONS: Mapping[Provider, frozenset[str]] = MappingProxyType(
    {
        "local": _CHOSEN | {"path", "pooling", "threads"},
        "deterministic": frozenset({"dimensions", "seconds_per_text"}),
        "openai": _CHOSEN | _REMOTE | _PREFIXES | {"base_url", "batch_above"},
        "gemini": _CHOSEN | _REMOTE | _PREFIXES | {"base_url"},
        "openai-compatible": _CHOSEN | _REMOTE | _PREFIXES | {"base_url"},
        # No key: whose it would be is what is yet to be found out.
        "auto": _REMOTE - {"api_key", "max_input_tokens"},
    }
)


class EmbedderConfig(BaseModel):
    """Which embedder a tenant uses; without anything set, the model shipped with the package.

    Attributes:
        provider: "local" runs an ONNX model on this machine's cores. "openai", "gemini" and
            "openai-compatible" (any server that speaks OpenAI's language, by its base_url) ask a
            server, with the tenant's own key. "auto" follows from the tenant's chat model and keys.
            "deterministic" makes vectors from a hash of the text: for tests and benchmarks, since
            it finds nothing by meaning.
        model: the model's name at its provider; local: the name of a shipped one.
        path: local: the absolute folder of a model of your own, instead of a shipped one.
        dimensions: length of a vector, where there is a choice or the model is not known. local:
            needed only where the model's config.json does not say it. deterministic: any, by
            default 384.
        pooling: local: how token vectors become one, where the model's folder does not say it.
        threads: local: texts embedded at once; by default the cores of this process.
        seconds_per_text: deterministic: time spent on each text.
        base_url: of a server other than the provider's own, which has to be public and encrypted
            unless the operator lets it through.
        api_key: the environment variable that holds the key, as $NAME, instead of a stored key.
        document_prefix, query_prefix: put before texts and questions, where a model wants it.
        requests_per_minute, tokens_per_minute: the limits of the account, honoured before the
            provider has to refuse.
        concurrency: requests under way at once.
        max_input_tokens: of a text; one that is longer is reported, and never sent.
        batch_size: texts in a request.
        price: in dollars, where it is not the listed one, or none is known.
        revision: a word of your own, such as a date: vectors made under another one are not used.
            For a provider that changed the model behind its name.
        batch_above: openai: texts that a run must lack for them to go through the provider's
            batch API, at half the price and within a day; without it, none do.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Provider = "local"
    model: ModelName | None = None
    path: Path | None = None
    dimensions: int | None = Field(default=None, ge=1, le=MAX_DIMENSIONS)
    pooling: Pooling | None = None
    threads: int | None = Field(default=None, ge=1, le=1024)
    seconds_per_text: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    base_url: str | None = Field(default=None, max_length=2000)
    api_key: str | None = None
    document_prefix: Prefix | None = None
    query_prefix: Prefix | None = None
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    concurrency: int | None = Field(default=None, ge=1, le=256)
    max_input_tokens: int | None = Field(default=None, ge=1)
    batch_size: int | None = Field(default=None, ge=1, le=100)
    price: Price | None = None
    revision: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._-]{1,40}$")
    batch_above: int | None = Field(default=None, ge=0)

    @field_validator("base_url")
    @classmethod
    def _url(cls, url: str | None) -> str | None:
        return None if url is None else normal_base_url(url)

    @field_validator("api_key")
    @classmethod
    def _by_name(cls, reference: str | None) -> str | None:
        if reference is not None:
            require_reference("embedder.api_key", reference)
        return reference

    @model_validator(mode="after")
    def _only_options_of_the_provider(self) -> Self:
        known = {"provider", "price", "revision", *_OPTIONS[self.provider]}
        foreign = [name for name, value in self if value is not None and name not in known]
        if foreign:
            raise ValueError(f"the provider {self.provider!r} takes no {', '.join(foreign)}")
        return self

    @model_validator(mode="after")
    def _one_usable_model(self) -> Self:
        if self.provider == "local":
            self._require_folder_or_shipped()
        elif self.provider in {"openai", "gemini", "openai-compatible"}:
            self._require_server_and_dimensions()
        return self

    @property
    def model_name(self) -> str:
        """The model at its provider, chosen or by default; "" where that says nothing."""
        return self.model or DEFAULT_MODELS.get(self.provider, "")

    def _require_folder_or_shipped(self) -> None:
        if self.model is not None and self.path is not None:
            raise ValueError("give either model (a shipped one) or path (your own), not both")
        if self.path is not None and not self.path.is_absolute():
            raise ValueError(f"path must be absolute: {self.path}")
        if self.model is not None and self.model not in _shipped():
            raise ValueError(
                f"no model {self.model!r} is shipped (there is: {', '.join(_shipped())});"
                " give the path of its folder"
            )

    def _require_server_and_dimensions(self) -> None:
        if self.provider == "openai-compatible" and not (self.base_url and self.model):
            raise ValueError("an openai-compatible server needs its base_url and a model")
        model = known_model(self.provider, self.model_name)
        if model is None:
            if self.dimensions is None:
                raise ValueError(
                    f"the model {self.model_name!r} is not known: give its dimensions"
                    f" (known are {names_of(self.provider)})"
                )
        elif self.dimensions is not None and (problem := model.problem_with(self.dimensions)):
            raise ValueError(f"dimensions do not fit {self.model_name}: {problem}")


def _shipped() -> list[str]:
    return sorted(folder.name for folder in MODELS.iterdir() if folder.is_dir())
