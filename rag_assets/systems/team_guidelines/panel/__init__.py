"""The pages of the panel of team guidelines, by path."""

from __future__ import annotations

from rag_assets.panel.frame import PanelPage, SystemPanel
from rag_assets.panel.thresholds import THRESHOLD_PAGES
from rag_assets.systems.team_guidelines.panel import documents, models

_DOCUMENT = "/documents/{document:str}"

PANEL = SystemPanel(
    name="team-guidelines",
    path="guidelines",
    package="rag_assets.systems.team_guidelines.panel",
    tabs={"": "Guidelines", "/try": "Try it", "/models": "Models", "/usage": "Usage"},
    pages=(
        PanelPage("", documents.show_overview),
        PanelPage("/list", documents.show_list),
        PanelPage("/watch", documents.show_progress, is_use=False),
        PanelPage("/same", documents.find_same_name),
        PanelPage("/delete", documents.delete, "POST"),
        PanelPage("/upload", documents.upload, "POST", streamed=True),
        PanelPage(
            "/text", documents.save, "POST", most_bytes=documents.MAX_FORM_BYTES, texts=("text",)
        ),
        PanelPage(
            "/text/tokens", documents.count_tokens, "POST", most_bytes=documents.MAX_FORM_BYTES
        ),
        PanelPage(_DOCUMENT, documents.show_document),
        PanelPage(f"{_DOCUMENT}/file", documents.download),
        PanelPage(f"{_DOCUMENT}/retry", documents.retry, "POST"),
        PanelPage(f"{_DOCUMENT}/enabled", documents.set_enabled, "POST"),
        PanelPage("/try", models.show_try_form),
        PanelPage("/try", models.try_task, "POST", texts=("task",)),
        *THRESHOLD_PAGES,
        PanelPage("/models", models.show),
        PanelPage("/models/progress", models.show_progress, is_use=False),
        PanelPage("/models/keys", models.set_key, "POST", is_sensitive=True),
        PanelPage("/models/keys/test", models.test_key, "POST"),
        PanelPage("/models/keys/delete", models.delete_key, "POST", is_sensitive=True),
        PanelPage("/models/provider", models.change_provider, "POST"),
        PanelPage("/usage", models.show_usage),
        PanelPage("/usage.csv", models.export_usage),
    ),
)
