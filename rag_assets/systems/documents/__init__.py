"""Documents, the simplest system: folders and pushed records, searched as they are."""

from rag_assets.plugins.system import Profile, System

SYSTEM = System(
    name="documents",
    # There are no thresholds: on the judged questions of docs/quality.md, no cosine of the local
    # model separates answers from passages that are merely similar.
    profile=Profile(
        defaults={
            # The chunks are sized for the local model, which reads 256 word pieces at a time.
            "chunker": {"chunker": "heading", "max_tokens": 220, "overlap": 32},
            "chunkers": [{"formats": ["csv", "tsv", "xlsx"], "chunker": "record"}],
            "retrieval": {"top_k": 5, "mode": "hybrid"},
        }
    ),
)
