"""All panel pages of workspaces, by path."""

from __future__ import annotations

from rag_assets.panel.frame import PanelPage, SystemPanel
from rag_assets.systems.workspace.panel import (
    overview,
    record_pages,
    setting_pages,
    tree_pages,
    warning_pages,
)

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
        PanelPage("", overview.overview),
        PanelPage("/status", overview.status, is_use=False),
        PanelPage("/switch", overview.switch, "POST"),
        PanelPage("/reindex", overview.reindex, "POST"),
        PanelPage("/records", record_pages.records),
        PanelPage("/record", record_pages.record),
        PanelPage("/tree", tree_pages.tree),
        PanelPage("/tree/unplaced", tree_pages.unplaced),
        PanelPage("/warnings", warning_pages.warnings),
        PanelPage("/settings", setting_pages.settings),
        PanelPage("/settings", setting_pages.save, "POST"),
    ),
)
