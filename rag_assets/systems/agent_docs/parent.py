"""Ends this process once its parent has ended: a killed host closes nothing."""

from __future__ import annotations

import os
import threading
import time
from typing import Final

_SECONDS: Final = 1.0


def end_with(parent: int) -> None:
    """End this process once it has another parent.

    Args:
        parent: asked for before anything that takes time, in which it may be killed.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS)
        # A thread cannot raise in the main one, which waits for input.
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
