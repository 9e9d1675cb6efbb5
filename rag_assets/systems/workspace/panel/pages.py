"""All panel pages of workspaces, by path."""

from __future__ import annotations

from rag_assets.panel.frame import PanelPage, SystemPanel
from rag_assets.systems.workspace.panel import content_pages, status_pages

PANEL = SystemPanel(
    name="workspace",
    path="workspace",
    package="rag_assets.systems.workspace.panel",
    tabs={
        "": "Status",
        "/records": "Records",
        "/tree": "Tree",
        "/warnings": "Warnings",
        "/settings": "Settings",
    },
    pages=(
        PanelPage("", status_pages.overview),
        PanelPage("/status", status_pages.status, is_use=False),
        PanelPage("/switch", status_pages.switch, "POST"),
        PanelPage("/reindex", status_pages.reindex, "POST"),
        PanelPage("/records", content_pages.records),
        PanelPage("/record", content_pages.record),
        PanelPage("/tree", content_pages.tree),
        PanelPage("/tree/unplaced", content_pages.unplaced),
        PanelPage("/warnings", status_pages.warnings),
        PanelPage("/settings", status_pages.settings),
        PanelPage("/settings", status_pages.save, "POST"),
    ),
)
