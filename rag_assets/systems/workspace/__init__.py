"""Workspace: pages, comments and rows that an application pushes as records."""

from rag_assets.systems.base import Profile, System

_HERE = "rag_assets.systems.workspace"

SYSTEM = System(
    name="workspace",
    # No thresholds: see the system of documents.
    profile=Profile(
        defaults={
            "chunker": {"chunker": "heading", "max_tokens": 1200, "overlap": 150},
            "chunkers": [{"formats": ["csv", "tsv", "xlsx"], "chunker": "record"}],
            "retrieval": {"top_k": 8, "mode": "hybrid"},
        },
        tells_readers_alone=True,
    ),
    commands={"workspace": f"{_HERE}.commands:app"},
    follow_up=f"{_HERE}.finishing:FOLLOW_UP",
    routers={
        "/rag/settings": f"{_HERE}.setting_routes:router",
        "/rag/tree": f"{_HERE}.tree_routes:router",
    },
)
