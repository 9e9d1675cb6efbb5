"""All pages, by path."""

from __future__ import annotations

from rag_assets.panel.frame import PanelPage, SystemPanel
from rag_assets.panel.thresholds import THRESHOLD_PAGES
from rag_assets.systems.team_guidelines.panel import (
    document_pages,
    knowledge,
    model_pages,
    plain_text,
    trial,
    uploading,
    usage_pages,
)

_DOCUMENT = "/documents/{document:str}"

PANEL = SystemPanel(
    name="team-guidelines",
    path="guidelines",
    package="rag_assets.systems.team_guidelines.panel",
    tabs={"": "Guidelines", "/try": "Try it", "/models": "Models", "/usage": "Usage"},
    pages=(
        PanelPage("", knowledge.overview),
        PanelPage("/list", knowledge.part),
        PanelPage("/watch", knowledge.watch, is_use=False),
        PanelPage("/same", knowledge.same_name),
        PanelPage("/delete", knowledge.delete, "POST"),
        PanelPage("/upload", uploading.upload, "POST", streamed=True),
        PanelPage(
            "/text", plain_text.save, "POST", most_bytes=plain_text.MOST_BYTES, texts=("text",)
        ),
        PanelPage("/text/tokens", plain_text.tokens, "POST", most_bytes=plain_text.MOST_BYTES),
        PanelPage(_DOCUMENT, document_pages.document),
        PanelPage(f"{_DOCUMENT}/file", document_pages.file),
        PanelPage(f"{_DOCUMENT}/retry", document_pages.retry, "POST"),
        PanelPage(f"{_DOCUMENT}/enabled", document_pages.set_enabled, "POST"),
        PanelPage("/try", trial.form),
        PanelPage("/try", trial.attempt, "POST", texts=("task",)),
        *THRESHOLD_PAGES,
        PanelPage("/models", model_pages.models),
        PanelPage("/models/progress", model_pages.progress, is_use=False),
        PanelPage("/models/keys", model_pages.set_key, "POST", is_sensitive=True),
        PanelPage("/models/keys/test", model_pages.test_key, "POST"),
        PanelPage("/models/keys/delete", model_pages.delete_key, "POST", is_sensitive=True),
        PanelPage("/models/provider", model_pages.change_provider, "POST"),
        PanelPage("/usage", usage_pages.usage),
        PanelPage("/usage.csv", usage_pages.table),
    ),
)
