"""Batches at llmock, a server that is not ours, and what can become of them there.

llmock runs in the tests' own process and takes three seconds for a batch, whatever it holds: a
test says itself when one ends, and how.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock


class BatchServer:
    """llmock's batches.

    Args:
        llmock: the server.
        monkeypatch: puts back what is changed.
    """

    def __init__(self, llmock: LLMock, monkeypatch: pytest.MonkeyPatch) -> None:
        from llmock.routers import batch

        self.llmock = llmock
        self._state = batch
        monkeypatch.setattr(batch, "_BATCH_DELAY", 3600.0)
        batch._batches.clear()
        batch._files.clear()

    @property
    def base_url(self) -> str:
        """Where OpenAI's interface is."""
        return self.llmock.base_url("openai")

    @property
    def batches(self) -> list[dict[str, Any]]:
        """What was handed over, the oldest first."""
        return list(self._state._batches.values())

    @property
    def texts(self) -> list[list[str]]:
        """The texts of each batch."""
        return [
            [json.loads(line)["body"]["input"] for line in self._input(batch).splitlines()]
            for batch in self.batches
        ]

    def finish(self) -> None:
        """Let every batch end."""
        for batch in self.batches:
            batch["ready_at"] = time.time() - 1
            self._state._refresh(batch)

    def end(self, status: str, **fields: Any) -> None:
        """End every batch that has not, with no result."""
        for batch in self.batches:
            if not batch["done"]:
                batch.update({"status": status, "done": True, "ready_at": None, **fields})

    def change_results(self, change: Callable[[list[dict[str, Any]]], list[Any]]) -> None:
        """Change the lines of what came out of the last batch."""
        file = self._state._files[self.batches[-1]["output_file_id"]]
        lines = change([json.loads(line) for line in file["content"].splitlines()])
        file["content"] = "\n".join(
            line if isinstance(line, str) else json.dumps(line) for line in lines
        )

    def lose_results(self) -> None:
        """Have no file of the last batch's results any more."""
        del self._state._files[self.batches[-1]["output_file_id"]]

    @contextmanager
    def refusing_results(self) -> Iterator[None]:
        """Give meanwhile no sensible answer about where the last batch's results are."""
        batch = self.batches[-1]
        file_id = batch["output_file_id"]
        batch["output_file_id"] = "?"
        yield
        batch["output_file_id"] = file_id

    def _input(self, batch: dict[str, Any]) -> str:
        content: str = self._state._files[batch["input_file_id"]]["content"]
        return content
