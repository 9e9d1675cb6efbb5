"""A provider's embedding model, and the model with a tenant's settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rag_assets.common.hashing import key_of
from rag_assets.common.tokens import count_tokens
from rag_assets.models.embedding.prices import Price
from rag_assets.models.embedding.protocol import CallLimits, Purpose
from rag_assets.models.embedding.vectors import MAX_BATCH
from rag_assets.models.transport.settings import ConnectionSettings


@dataclass(frozen=True, slots=True)
class KnownModel:
    """The properties of a model, the same for all tenants.

    Attributes:
        dimensions: default number of dimensions of a vector.
        choices: the numbers of dimensions that may be chosen; empty if any number up to `most`
            may be chosen.
        most: the highest number of dimensions.
        shortens: whether a request may set the number of dimensions.
        native: number of dimensions of the vectors that the model returns; they are padded with
            zeros to the chosen number. None if it returns vectors with the chosen number.
        input_tokens: maximum tokens of a text.
        request_tokens: maximum tokens of a request; None for no limit.
        request_texts: maximum texts of a request.
        task_types: whether a request states the use of its texts.
        document_prefix, query_prefix: text put before a text to state its use.
        price: price at the provider's own server; None if unknown.
    """

    dimensions: int
    most: int
    choices: tuple[int, ...] = ()
    shortens: bool = True
    native: int | None = None
    input_tokens: int = 8192
    request_tokens: int | None = None
    request_texts: int = MAX_BATCH
    task_types: bool = False
    document_prefix: str = ""
    query_prefix: str = ""
    price: Price | None = None

    def problem_with(self, dimensions: int) -> str | None:
        """Return why the model cannot return vectors with these dimensions; None if it can."""
        if self.choices and dimensions not in self.choices:
            listed = ", ".join(map(str, self.choices))
            return f"it has vectors of {listed} dimensions, not {dimensions}"
        if dimensions > self.most:
            return f"its vectors have {self.most} dimensions at most, not {dimensions}"
        return None


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model with a tenant's settings; all is known without a request to the provider.

    Attributes:
        provider: name of the provider.
        name: name of the model at the provider.
        dimensions: number of dimensions of the stored vectors.
        requested_dimensions: number of dimensions sent with a request; None if requests cannot
            set it.
        native: number of dimensions of the returned vectors, which are padded with zeros to
            `dimensions`.
        task_types: whether a request states the use of its texts.
        base_url: address of a server other than the provider's own.
        document_prefix, query_prefix: text put before each text to state its use.
        limits: limits of a call.
        key_optional: whether the server may accept requests without a key.
        settings: settings of the provider's connections.
    """

    provider: str
    name: str
    dimensions: int
    requested_dimensions: int | None
    native: int
    task_types: bool
    base_url: str | None
    document_prefix: str
    query_prefix: str
    limits: CallLimits
    key_optional: bool
    settings: ConnectionSettings = field(default_factory=ConnectionSettings)

    @property
    def embedder_id(self) -> str:
        """Return provider/model@dimensions, and a digest of all else that affects a vector."""
        plain = f"{self.provider}/{self.name}@{self.dimensions}"
        recipe = {
            name: value
            for name, value in (
                ("base_url", self.base_url),
                ("document_prefix", self.document_prefix),
                ("query_prefix", self.query_prefix),
                ("native", None if self.native == self.dimensions else self.native),
                ("task_types", self.task_types),
                ("settings", self.settings.recipe()),
            )
            if value
        }
        return f"{plain}+{key_of('remote_embedder', recipe)[:12]}" if recipe else plain

    def prefix(self, purpose: Purpose) -> str:
        """Return the prefix for texts with this purpose."""
        return self.query_prefix if purpose == "query" else self.document_prefix

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Estimate the tokens of documents by OpenAI's encoding, which is close to the others."""
        return count_tokens([self.document_prefix + text for text in texts])
