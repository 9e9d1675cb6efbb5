"""The cosine below which a hit is left out, where a tenant does not say.

A cosine means something else for every embedder, and what is worth an answer depends on what a
profile is for: so a threshold belongs to both. Without one here, the ranking alone decides.
"""

from __future__ import annotations

from collections.abc import Mapping

_SMALL = "openai/text-embedding-3-small"
_LARGE = "openai/text-embedding-3-large"

_THRESHOLDS: Mapping[tuple[str, str], float] = {
    # documents and workspace have none with the local model: on the judged questions of
    # docs/quality.md no cosine of it tells answers from what is merely near them.
    ("team-guidelines", _SMALL): 0.75,
    ("experience", _SMALL): 0.70,
    ("code-memory", _LARGE): 0.25,
}


def threshold_of(profile: str, embedder_id: str) -> float | None:
    """The least cosine of a hit for a profile with an embedder; None for no threshold.

    Args:
        profile: its name.
        embedder_id: of the vectors that are compared: `provider/model@dimensions`, and more.
    """
    return _THRESHOLDS.get((profile, embedder_id.partition("@")[0]))
