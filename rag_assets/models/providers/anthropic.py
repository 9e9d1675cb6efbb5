"""Anthropic: applications may use its chat models; the project itself does not call it."""

from __future__ import annotations

import re

from rag_assets.models.providers.base import Provider

# Without an embedding API: https://docs.claude.com/en/docs/build-with-claude/embeddings
ANTHROPIC = Provider(
    "anthropic",
    key="none",
    chat_names=re.compile(r"(^|[/.:])(anthropic|claude)([/.:-]|$)"),
    embeddings_of=("gemini", "openai"),
)
