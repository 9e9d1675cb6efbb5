"""A provider's model, and that model as one tenant uses it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_assets.common.hashing import key_of
from rag_assets.common.tokens import count_tokens
from rag_assets.models.embedding.prices import Price
from rag_assets.models.embedding.protocol import CallLimits, Purpose


@dataclass(frozen=True, slots=True)
class KnownModel:
    """What holds for a model, whoever uses it.

    Attributes:
        dimensions: of a vector where nothing is chosen.
        choices: what may be chosen; empty where anything up to most may.
        most: dimensions at most.
        shortens: takes the number of dimensions with a request.
        native: of its vectors, which are filled up with zeros to what is chosen; None as chosen.
        input_tokens: of a text at most.
        request_tokens: of a request at most; None for any number.
        task_types: is told with a request what texts are for.
        document_prefix, query_prefix: put before a text to say what it is for.
        price: at the provider's own server; None if none is known.
    """

    dimensions: int
    most: int
    choices: tuple[int, ...] = ()
    shortens: bool = True
    native: int | None = None
    input_tokens: int = 8192
    request_tokens: int | None = None
    task_types: bool = False
    document_prefix: str = ""
    query_prefix: str = ""
    price: Price | None = None

    def problem_with(self, dimensions: int) -> str | None:
        """Why it has no vectors of so many dimensions, if it has none."""
        if self.choices and dimensions not in self.choices:
            listed = ", ".join(map(str, self.choices))
            return f"it has vectors of {listed} dimensions, not {dimensions}"
        if dimensions > self.most:
            return f"its vectors have {self.most} dimensions at most, not {dimensions}"
        return None


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
