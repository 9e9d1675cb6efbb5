"""The cores that models on this machine may use."""

from __future__ import annotations

import os


def available_cores() -> int:
    """Return the number of cores that this process may use, by taskset or a container's cpuset."""
    if hasattr(os, "process_cpu_count"):  # from Python 3.13 on
        return int(os.process_cpu_count() or 1)
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
