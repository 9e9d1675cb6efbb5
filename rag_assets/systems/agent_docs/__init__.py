"""Lets command-line agents read and search their documentation: locally, or as tenants."""

from rag_assets.plugins.system import Profile, System

_HERE = "rag_assets.systems.agent_docs"

SYSTEM = System(
    name="agent-docs",
    profile=Profile(
        defaults={
            "chunker": {"chunker": "passage", "max_characters": 2_000, "overlap": 200},
            "embedder": {"provider": "local"},
            # Unquantized, to find the same passages as the local stores.
            "index": {"vector_index": "hnsw"},
            "retrieval": {"top_k": 5, "mode": "knn"},
        },
        repeats_texts=True,
        keeps_passages=True,
        retrieval_steps=(
            *("recall", "exact", "verify", "fuse", "score", "read", "rerank", "budget"),
        ),
    ),
    source_kinds={"globs": f"{_HERE}.globs:GLOBS"},
    chunkers={"passage": f"{_HERE}.passages:PASSAGE"},
    retrieval_steps={"exact": f"{_HERE}.tenant_search:ExactOrder"},
    commands={"agent": f"{_HERE}.commands:app"},
    command_help={"agent": "Documentation of command-line agents, on this machine only."},
    own_process_commands=frozenset({"agent"}),
    tools={"rag_search": f"{_HERE}.tenant_search:SEARCH"},
    tenant_lists={"agents": f"{_HERE}.tenants:AGENTS"},
)
