"""Documents, the simplest system: searches in folders and pushed records."""

from rag_assets.plugins.system import Profile, System

SYSTEM = System(
    name="documents",
    # No thresholds are set: on the judged questions of docs/quality.md, no cosine of the local
    # model separates answers from passages that are only similar.
    profile=Profile(
        defaults={
            # Chunks fit the local model, which reads at most 256 word pieces.
            "chunker": {"chunker": "heading", "max_tokens": 220, "overlap": 32},
            "chunkers": [{"formats": ["csv", "tsv", "xlsx"], "chunker": "record"}],
            "retrieval": {"top_k": 5, "mode": "hybrid"},
        }
    ),
)
