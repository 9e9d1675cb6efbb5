"""The result of syncing one tenant, and its JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_assets.cli.commands.runs import STAGES, RunResult
from rag_assets.common.errors import RagAssetsError

PRINTED_COUNTS = {
    "raw_documents": ("added", "changed", "removed", "failed"),
    "parsed_text": ("parsed", "reused", "failed"),
    "chunks": ("chunks", "reused", "masked_secrets", "dropped_secrets"),
    "embeddings": ("embedded", "reused", "tokens", "requests", "retries"),
    "search_index": ("upserted", "deleted"),
}
_LAST_VALUE_COUNTS = (
    *("documents", "touched", "held", "generation", "live entries", "pending", "slice"),
    "waiting for batches",
)
_JSON_NAMES = {"submitted": "handed over"}
"""Names of counts in the JSON output, which is a contract and keeps the former names."""


@dataclass
class TenantSync:
    """The result of syncing one tenant, over all its runs.

    Attributes:
        held: documents that disappeared and are kept until a person allows their deletion.
        waiting: documents that wait for a batch at the provider.
    """

    tenant: str
    nothing_to_do: bool = False
    runs: list[str] = field(default_factory=list)
    stages: dict[str, dict[str, float]] = field(default_factory=dict)
    cost: float = 0.0
    promised: float = 0.0
    waiting: int = 0
    held: int = 0
    seconds: float = 0.0
    error: RagAssetsError | None = None

    @property
    def unpriced(self) -> int:
        """Return the number of tokens without a known price."""
        return int(self.stages.get("embeddings", {}).get("unpriced tokens", 0))

    def add(self, result: RunResult) -> None:
        """Add the result of another run."""
        self.runs.append(result.run_id)
        for name, stage in result.stages.items():
            total = self.stages.setdefault(name, defaultdict(float))
            total["seconds"] += stage.seconds
            self.held = int(stage.counts.get("held", self.held))
            self.cost += stage.cost or 0.0
            self.promised += stage.promised
            for count, value in stage.counts.items():
                total[count] = value if count in _LAST_VALUE_COUNTS else total[count] + value

    @classmethod
    def from_json(cls, answer: Mapping[str, Any]) -> TenantSync:
        """Read the result that another process printed as JSON."""
        error = answer["error"]
        former = {shown: count for count, shown in _JSON_NAMES.items()}
        stages = {
            name: {former.get(count, count): value for count, value in stage.items()}
            for name, stage in answer["stages"].items()
            if any(stage.values())
        }
        cost = stages.get("embeddings", {}).pop("cost", None)
        return cls(
            answer["tenant"],
            nothing_to_do=answer["nothing_to_do"],
            runs=answer["runs"],
            stages=stages,
            cost=cost or 0.0,
            waiting=answer["waiting_for_batches"],
            held=answer["held_deletions"],
            seconds=answer["seconds"],
            error=None if error is None else RagAssetsError(error["message"], hint=error["hint"]),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of `sync --json`, a stable contract."""
        stages: dict[str, dict[str, float | None]] = {
            name: {
                _JSON_NAMES.get(count, count): (
                    round(value, 3) if count == "seconds" else int(value)
                )
                for count, value in {
                    **dict.fromkeys(PRINTED_COUNTS[name], 0),
                    "seconds": 0.0,
                    **self.stages.get(name, {}),
                }.items()
            }
            for name in STAGES
        }
        cost = None if self.unpriced and not self.cost else round(self.cost, 8)
        stages["embeddings"]["cost"] = cost
        error = self.error and {"message": self.error.message, "hint": self.error.hint}
        return {
            "tenant": self.tenant,
            "nothing_to_do": self.nothing_to_do,
            "held_deletions": self.held,
            "waiting_for_batches": self.waiting,
            "runs": self.runs,
            "stages": stages,
            "seconds": round(self.seconds, 3),
            "error": error,
        }
