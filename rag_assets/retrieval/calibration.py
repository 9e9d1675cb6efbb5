"""Calibration of a threshold: the cosine between a question and a passage that chance explains.

A question is compared with random passages of its tenant. Most of them do not answer it, so their
median and the spread below it describe chance; the few passages that do answer it change neither.
The floor of a question lies WIDTH spreads above that median. The threshold is the median of the
floors of a tenant's first questions, and never above the figure in the system's description.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

QUESTIONS: Final = 30
"""Distinct questions that calibrate a threshold."""
SAMPLES: Final = 40
"""Random passages that each question is compared with."""
FEWEST_SAMPLES: Final = 4
"""Minimum number of distinct passages for a comparison."""
WIDTH: Final = 1.0
"""Spreads between the median of random passages and the floor (decision 17)."""


def floor_of_question(cosines: Sequence[float], width: float = WIDTH) -> float:
    """Return the cosine above which a passage is nearer to a question than chance explains.

    Args:
        cosines: between the question and random passages; at least one.
        width: spreads above their median.
    """
    middle = median(cosines)
    # Use only values below the median: passages that answer the question lie above it.
    spread = median(middle - cosine for cosine in cosines if cosine <= middle)
    # Half of a normal distribution's values below its median lie within .6745 deviations of it.
    return middle + width * spread / 0.6745


def floor_of(floors: Sequence[float]) -> float:
    """Return the threshold for several questions: the median of their floors."""
    return median(floors)
