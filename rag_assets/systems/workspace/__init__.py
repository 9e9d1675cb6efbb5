"""Workspace: pages, comments and rows that an application pushes as records."""

from rag_assets.plugins.system import Migrations, Profile, System

_HERE = "rag_assets.systems.workspace"

SYSTEM = System(
    name="workspace",
    # No thresholds are set, for the same reason as in the documents system.
    profile=Profile(
        defaults={
            "chunker": {"chunker": "page", "max_tokens": 1200, "overlap": 150},
            "chunkers": [{"formats": ["csv", "tsv", "xlsx"], "chunker": "record"}],
            # This embedder needs the tenant's own key; an operator may choose another embedder,
            # such as the local one.
            "embedder": {"provider": "openai", "model": "text-embedding-3-large"},
            "retrieval": {"top_k": 8, "mode": "hybrid"},
        },
        tells_readers_alone=True,
        most_hits=20,
        typed_records=True,
        keeps_model=True,
        drops_described_secrets=True,
    ),
    source_kinds={"sql": f"{_HERE}.pulling:SQL"},
    tables={
        "pulled_sources": f"{_HERE}.tables:pulled_sources",
        "pulled_queries": f"{_HERE}.tables:pulled_queries",
        "pulled_rows": f"{_HERE}.tables:pulled_rows",
    },
    problems={"no-workspace": f"{_HERE}.errors:NoWorkspace"},
    migrations=Migrations(package=f"{_HERE}.migrations", head="0002"),
    texts=(
        *("pulled_rows.shown", "pulled_rows.field", "pulled_rows.problem"),
        "pulled_sources.error",
    ),
    jobs={"pull_sources": f"{_HERE}.definitions:pull_tenants"},
    sensors={"sql_sources": f"{_HERE}.definitions:sql_sources_sensor"},
    schedules={"nightly_keys": f"{_HERE}.definitions:nightly_keys"},
    commands={"workspace": f"{_HERE}.commands:app"},
    command_help={"workspace": "Pages of a workspace and their readers."},
    follow_up=f"{_HERE}.settings:FOLLOW_UP",
    panels={"/workspace": f"{_HERE}.panel:PANEL"},
    routers={
        "/rag/settings": f"{_HERE}.routes:settings_router",
        "/rag/tree, /rag/access": f"{_HERE}.routes:tree_router",
        "/rag/tree as lines": f"{_HERE}.routes:tree_lines",
        "/rag/tree/reconcile": f"{_HERE}.routes:manifests",
    },
)
