"""Ten publications and five rollbacks, as commands."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from benchmarks.living.verdict import Move
from benchmarks.measure import CLI

Way: TypeAlias = Literal["rollback", "rollback --now"]
Step: TypeAlias = Mapping[str, Any] | Way | None
"""Fields to set before publishing, or a rollback; None publishes the current configuration."""

_ATTEMPTS = 5


def _build_chunker(tokens: int) -> dict[str, Any]:
    return {"chunker": {"chunker": "heading", "max_tokens": tokens, "overlap": 0}}


STEPS: Sequence[Step] = (
    _build_chunker(120),
    _build_chunker(60),
    "rollback",
    None,
    {"index": {"vector_index": "int8_hnsw"}},
    "rollback --now",
    _build_chunker(160),
    {"index": {"placement": "dedicated"}},
    "rollback",
    _build_chunker(90),
    {"embedder": {"provider": "deterministic", "dimensions": 256}},
    "rollback --now",
    None,
    "rollback",
    _build_chunker(200),
)
"""Ten publications, of which eight make a build, and five rollbacks."""


class Mover:
    """Runs steps, one after another.

    Args:
        tenant_id: the tenant whose builds are published.
        configure: sets fields of the tenant.
        command: runs `rag-assets`; returns exit code, output and errors.
    """

    def __init__(
        self,
        tenant_id: str,
        configure: Callable[[Mapping[str, Any]], None],
        command: Callable[..., tuple[int, str, str]],
    ) -> None:
        self._tenant = tenant_id
        self._configure, self._command = configure, command

    def run_step(self, step: Step) -> Move:
        """Run one step.

        A command that reports another writer is run again, as its user would.
        """
        began = time.time()
        if isinstance(step, str):
            arguments = ["rollback", self._tenant, "--reason", "a trial", *step.split()[1:]]
        else:
            if step is not None:
                self._configure(step)
            arguments = ["publish", self._tenant]
        waited: list[str] = []
        for _ in range(_ATTEMPTS):
            code, out, err = self._command("generations", *arguments, "--json")
            if not code:
                kind = step if isinstance(step, str) else "publish"
                return Move(kind, began, time.time(), _parse_number(out), tuple(waited))
            waited.append((out.strip() or err.strip())[-400:])
            if "is being written by" not in waited[-1]:
                break
        raise RuntimeError(f"{' '.join(arguments)} failed: {waited[-1]}")


def _parse_number(out: str) -> int:
    return int(json.loads(out)["number"])


def build_command_runner(environment: Mapping[str, str]) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs a command of an installation in a separate process."""

    def run(*arguments: str) -> tuple[int, str, str]:
        process = subprocess.run(
            [*CLI, *arguments],
            env=dict(environment),
            capture_output=True,
            text=True,
            check=False,
        )
        return process.returncode, process.stdout, process.stderr

    return run
