"""Run the tests that failed in a full run once more, alone: `python -m tests.rerun`.

A full run has three workers, their servers and daemons on two cores. A test that waits for a
process may fail there and pass alone. Its name is printed, so that somebody repairs it. If more
than three tests failed, the load is not the cause, and none is run again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

_FAILED = Path(".pytest_cache/v/cache/lastfailed")
_MOST = 3


def main() -> int:
    """Return pytest's exit status for the tests that failed; 1 if there were more than three."""
    failed = list(json.loads(_FAILED.read_text()))
    if not 0 < len(failed) <= _MOST:
        return 1
    sys.stdout.write("\n  ".join(["FAILED UNDER LOAD, once more alone:", *failed]) + "\n")
    return pytest.main(["-ra", *failed])


if __name__ == "__main__":
    sys.exit(main())
