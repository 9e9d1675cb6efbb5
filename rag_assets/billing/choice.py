"""Which embedder a tenant gets that leaves the choice to us, and where its key comes from."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rag_assets.models.embedding.config import EmbedderConfig

Vendor: TypeAlias = Literal["openai", "gemini", "anthropic"]
KeySource: TypeAlias = Literal["none needed", "variable", "stored", "missing"]

ON_THIS_MACHINE = frozenset({"local", "deterministic"})
"""Providers that need no key and no network."""
_AUTO_MODELS = {"openai": "text-embedding-3-small", "gemini": "gemini-embedding-001"}
_AUTO_DIMENSIONS = 1536
_CANDIDATES: dict[Vendor | None, tuple[str, ...]] = {
    "openai": ("openai",),
    "gemini": ("gemini",),
    # Anthropic has no embedding API: https://docs.claude.com/en/docs/build-with-claude/embeddings
    "anthropic": ("gemini", "openai"),
    None: ("openai", "gemini"),
}
# A name as its vendor gives it, or behind a gateway: openrouter/anthropic/claude-3.5-sonnet,
# us.anthropic.claude-3-5-haiku-v1:0, models/gemini-2.5-flash. gpt-oss is served by others.
_VENDORS: tuple[tuple[Vendor, re.Pattern[str]], ...] = (
    ("anthropic", re.compile(r"(^|[/.:])(anthropic|claude)([/.:-]|$)")),
    ("gemini", re.compile(r"(^|[/.:])(gemini|learnlm)([/.:-]|$)")),
    ("openai", re.compile(r"(^|[/.:])(gpt-(?!oss)|chatgpt-|codex-|o[1-9](-|$))")),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The embedder that a tenant gets.

    Attributes:
        embedder: with a provider that is not "auto".
        key: where the provider's key comes from; "missing": nothing can be embedded yet.
    """

    embedder: EmbedderConfig
    key: KeySource


def choose(
    embedder: EmbedderConfig,
    *,
    chat_model: str | None = None,
    stored: Set[str] = frozenset(),
    serving: str | None = None,
) -> Choice:
    """Find a tenant's embedder.

    What is configured is taken. "auto" goes by the tenant's chat model, whose key the tenant has
    anyway; a tenant with Anthropic's, or with none that is known, gets whichever it has a key for.
    A build that answers keeps its provider while that one's key is there: another would cost the
    tenant all its embeddings again.

    Args:
        embedder: as configured.
        chat_model: the name of the model that the tenant chats with.
        stored: the providers that the tenant has a stored key for.
        serving: the provider of the build that answers now.
    """
    if embedder.provider == "auto":
        preferred = _CANDIDATES[vendor_of(chat_model)]
        kept = (serving,) if serving in _AUTO_MODELS else ()
        usable = (provider for provider in (*kept, *preferred) if provider in stored)
        embedder = _auto(embedder, next(usable, preferred[0]))
    return Choice(embedder, _key_source(embedder, stored))


def vendor_of(chat_model: str | None) -> Vendor | None:
    """Whose chat model it is, by its name; None for one of somebody else's."""
    name = (chat_model or "").strip().lower()
    return next((vendor for vendor, pattern in _VENDORS if pattern.search(name)), None)


def _auto(embedder: EmbedderConfig, provider: str) -> EmbedderConfig:
    chosen = {
        "provider": provider,
        "model": _AUTO_MODELS[provider],
        "dimensions": _AUTO_DIMENSIONS,
    }
    return EmbedderConfig.model_validate({**embedder.model_dump(exclude_none=True), **chosen})


def _key_source(embedder: EmbedderConfig, stored: Set[str]) -> KeySource:
    if embedder.provider in ON_THIS_MACHINE:
        return "none needed"
    if embedder.api_key is not None:
        return "variable"
    if embedder.provider in stored:
        return "stored"
    # A server of one's own often asks for none.
    return "none needed" if embedder.provider == "openai-compatible" else "missing"
