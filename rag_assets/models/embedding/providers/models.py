"""The models of providers that are known by name, and what they take.

Sources: the providers' references of their embeddings interfaces, as of November 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


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

    def problem_with(self, dimensions: int) -> str | None:
        """Why it has no vectors of so many dimensions, if it has none."""
        if self.choices and dimensions not in self.choices:
            listed = ", ".join(map(str, self.choices))
            return f"it has vectors of {listed} dimensions, not {dimensions}"
        if dimensions > self.most:
            return f"its vectors have {self.most} dimensions at most, not {dimensions}"
        return None


_OPENAI_REQUEST = 300_000

OPENAI: Mapping[str, KnownModel] = MappingProxyType(
    {
        "text-embedding-3-small": KnownModel(1536, 1536, request_tokens=_OPENAI_REQUEST),
        "text-embedding-3-large": KnownModel(3072, 3072, request_tokens=_OPENAI_REQUEST),
        "text-embedding-ada-002": KnownModel(
            1536, 1536, (1536,), shortens=False, request_tokens=_OPENAI_REQUEST
        ),
    }
)
GEMINI: Mapping[str, KnownModel] = MappingProxyType(
    {
        "gemini-embedding-001": KnownModel(
            1536, 3072, (768, 1536, 3072), input_tokens=2048, task_types=True
        ),
        "gemini-embedding-2": KnownModel(
            1536,
            3072,
            (768, 1536, 3072),
            document_prefix="title: none | text: ",
            query_prefix="task: search result | query: ",
        ),
        # Shut down at Google in January 2026; some compatible servers still have it.
        "text-embedding-004": KnownModel(
            768,
            1536,
            (768, 1536),
            shortens=False,
            native=768,
            input_tokens=2048,
            task_types=True,
        ),
    }
)
DEFAULT_MODELS: Mapping[str, str] = MappingProxyType(
    {"openai": "text-embedding-3-small", "gemini": "gemini-embedding-001"}
)
_BY_PROVIDER: Mapping[str, Mapping[str, KnownModel]] = MappingProxyType(
    {"openai": OPENAI, "openai-compatible": OPENAI, "gemini": GEMINI}
)


def known_model(provider: str, model: str) -> KnownModel | None:
    """What is known of a provider's model; a compatible server may offer OpenAI's by name."""
    return _BY_PROVIDER[provider].get(model)


def names_of(provider: str) -> str:
    """The known models of a provider, for a message."""
    return ", ".join(_BY_PROVIDER[provider])
