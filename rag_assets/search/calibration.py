"""Calibration of a threshold: the highest cosine between a question and a passage due to chance.

A question is compared with random passages of its tenant. Most of these passages do not answer it,
so their median cosine and the spread of the cosines below that median describe chance. The few
passages that answer the question change neither. The floor of a question lies WIDTH spreads above
the median. The threshold is the median of the floors of a tenant's first questions, and never
higher than the threshold in the system's description.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

QUESTIONS: Final = 30
"""Number of distinct questions that calibrate a threshold."""
SAMPLES: Final = 40
"""Number of random passages that each question is compared with."""
FEWEST_SAMPLES: Final = 4
"""Minimum number of distinct passages for a comparison."""
WIDTH: Final = 1.0
"""Distance from the median of random passages up to the floor, in spreads (decision 17)."""


def floor_of_question(cosines: Sequence[float], width: float = WIDTH) -> float:
    """Return the cosine above which a passage is nearer to a question than chance explains.

    Args:
        cosines: cosines between the question and random passages; at least one.
        width: distance from their median up to the floor, in spreads.
    """
    middle = median(cosines)
    # Use only values below the median: passages that answer the question lie above it.
    spread = median(middle - cosine for cosine in cosines if cosine <= middle)
    # In a normal distribution, half of the values below the median lie within .6745 standard
    # deviations of it.
    return middle + width * spread / 0.6745


def floor_of(floors: Sequence[float]) -> float:
    """Return the threshold for several questions: the median of their floors."""
    return median(floors)
