"""Rotate master keys in forks that are killed at one of their steps; see test_keys.py.

A step is a statement that is about to be sent to Postgres, or a file that is about to be renamed or
removed. Each line of standard input is the number of a step. The output is "killed", or "done" if
the fork had fewer steps.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from sqlalchemy import Engine, event

from rag_assets.billing.key_ring import KeyRing
from rag_assets.common.settings import Settings
from rag_assets.storage.catalog.catalog import Catalog


class Steps:
    """Kills the process at one of its steps."""

    def __init__(self, last: int) -> None:
        self._left = last

    def take(self, *_: Any) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(self, name: str, _: tuple[Any, ...]) -> None:
        if name in {"os.rename", "os.remove"}:
            self.take()


def rotate_until(last: int) -> None:
    catalog = Catalog.open(os.environ["RAG_ASSETS_DATABASE_URL"])
    steps = Steps(last)
    event.listen(Engine, "before_cursor_execute", steps.take)
    event.listen(Engine, "commit", steps.take)
    sys.addaudithook(steps.audit)
    KeyRing(catalog, Settings.from_environment()).rotate()


for line in sys.stdin:
    child = os.fork()
    if child == 0:
        rotate_until(int(line))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    ended = {0: "done", -signal.SIGKILL: "killed"}
    sys.stdout.write(ended[os.waitstatus_to_exitcode(status)] + "\n")
    sys.stdout.flush()
