"""A provider's model as one tenant uses it: what determines its vectors, and what it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_assets.common.hashing import key_of
from rag_assets.common.tokens import count_tokens
from rag_assets.models.embedding.config import EmbedderConfig
from rag_assets.models.embedding.protocol import CallLimits, Purpose
from rag_assets.models.embedding.providers.models import KnownModel, known_model
from rag_assets.models.embedding.vectors import MAX_BATCH

DEFAULT_CONCURRENCY = 8


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """What an endpoint has to know of its model; found without asking the provider.

    Attributes:
        provider: openai, gemini or openai-compatible.
        name: of the model at the provider.
        dimensions: of the vectors that are kept.
        asked_dimensions: sent along with a request; None where the model takes none.
        native: dimensions of what comes back, filled up with zeros to dimensions.
        task_types: the provider is told with a request what texts are for.
        base_url: of a server other than the provider's own.
        document_prefix, query_prefix: put before texts.
        limits: of a call.
        key_optional: the server may take requests without a key.
    """

    provider: str
    name: str
    dimensions: int
    asked_dimensions: int | None
    native: int
    task_types: bool
    base_url: str | None
    document_prefix: str
    query_prefix: str
    limits: CallLimits
    key_optional: bool

    @property
    def embedder_id(self) -> str:
        """provider/model@dimensions, and a digest of what else determines a vector."""
        plain = f"{self.provider}/{self.name}@{self.dimensions}"
        recipe = {
            name: value
            for name, value in (
                ("base_url", self.base_url),
                ("document_prefix", self.document_prefix),
                ("query_prefix", self.query_prefix),
                ("native", None if self.native == self.dimensions else self.native),
                ("task_types", self.task_types),
            )
            if value
        }
        return f"{plain}+{key_of('remote_embedder', recipe)[:12]}" if recipe else plain

    def prefix(self, purpose: Purpose) -> str:
        """What is put before a text."""
        return self.query_prefix if purpose == "query" else self.document_prefix

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of documents as they are sent, in OpenAI's encoding: others' are close to it."""
        return count_tokens([self.document_prefix + text for text in texts])


def remote_model(config: EmbedderConfig) -> RemoteModel:
    """What a configuration of a provider comes to.

    Args:
        config: of provider openai, gemini or openai-compatible.
    """
    known = known_model(config.provider, config.model_name)
    model = known or _as_configured(config)
    dimensions = config.dimensions or model.dimensions
    before_documents, before_queries = config.document_prefix, config.query_prefix
    return RemoteModel(
        provider=config.provider,
        name=config.model_name,
        dimensions=dimensions,
        asked_dimensions=dimensions if model.shortens else None,
        native=model.native or dimensions,
        task_types=model.task_types,
        base_url=config.base_url,
        document_prefix=(model.document_prefix if before_documents is None else before_documents),
        query_prefix=model.query_prefix if before_queries is None else before_queries,
        limits=_limits(config, model),
        key_optional=config.provider == "openai-compatible" and config.api_key is None,
    )


def _as_configured(config: EmbedderConfig) -> KnownModel:
    """A model that is not known: Gemini's take dimensions and task types, a server's may not."""
    dimensions = config.dimensions or 0
    gemini = config.provider == "gemini"
    return KnownModel(
        dimensions,
        dimensions,
        shortens=gemini,
        input_tokens=2048 if gemini else 8192,
        task_types=gemini,
    )


def _limits(config: EmbedderConfig, model: KnownModel) -> CallLimits:
    return CallLimits(
        texts=config.batch_size or MAX_BATCH,
        concurrency=config.concurrency or DEFAULT_CONCURRENCY,
        tokens=model.request_tokens,
        input_tokens=config.max_input_tokens or model.input_tokens,
    )
