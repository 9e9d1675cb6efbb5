"""Documents: folders and pushed records, searched as they are. The simplest system."""

from rag_assets.plugins.system import Profile, System

SYSTEM = System(
    name="documents",
    # No thresholds: on the judged questions of docs/quality.md, no cosine of the local model
    # separates answers from passages that are merely similar.
    profile=Profile(
        defaults={
            # Sized for the local model, which reads 256 word pieces at a time.
            "chunker": {"chunker": "heading", "max_tokens": 220, "overlap": 32},
            "chunkers": [{"formats": ["csv", "tsv", "xlsx"], "chunker": "record"}],
            "retrieval": {"top_k": 5, "mode": "hybrid"},
        }
    ),
)
