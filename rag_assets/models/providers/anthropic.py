"""Anthropic: applications may use its chat models; this project itself does not call it."""

from __future__ import annotations

import re

from rag_assets.models.providers.base import Provider

# Anthropic has no embedding API: https://docs.claude.com/en/docs/build-with-claude/embeddings
ANTHROPIC = Provider(
    "anthropic",
    key="none",
    chat_names=re.compile(r"(^|[/.:])(anthropic|claude)([/.:-]|$)"),
    embeddings_of=("gemini", "openai"),
)
