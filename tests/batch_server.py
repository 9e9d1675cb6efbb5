"""Batches at llmock, an independent server of OpenAI's API, with every way in which they can end.

llmock runs in the process of the tests. It takes three seconds for a batch of any size, so a test
ends batches itself.
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
    """The batches of llmock.

    Args:
        monkeypatch: restores the state of the server.
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
        """Return the address of the OpenAI API."""
        return self.llmock.base_url("openai")

    @property
    def batches(self) -> list[dict[str, Any]]:
        """Return the submitted batches, oldest first."""
        return list(self._state._batches.values())

    @property
    def texts(self) -> list[list[str]]:
        """Return the texts of each batch."""
        return [
            [json.loads(line)["body"]["input"] for line in self._input(batch).splitlines()]
            for batch in self.batches
        ]

    def finish(self) -> None:
        """Complete every batch."""
        for batch in self.batches:
            batch["ready_at"] = time.time() - 1
            self._state._refresh(batch)

    def end(self, status: str, **fields: Any) -> None:
        """End every batch that is still running, without a result."""
        for batch in self.batches:
            if not batch["done"]:
                batch.update({"status": status, "done": True, "ready_at": None, **fields})

    def change_results(self, change: Callable[[list[dict[str, Any]]], list[Any]]) -> None:
        """Change the result lines of the last batch."""
        file = self._state._files[self.batches[-1]["output_file_id"]]
        lines = change([json.loads(line) for line in file["content"].splitlines()])
        file["content"] = "\n".join(
            line if isinstance(line, str) else json.dumps(line) for line in lines
        )

    def lose_results(self) -> None:
        """Delete the result file of the last batch."""
        del self._state._files[self.batches[-1]["output_file_id"]]

    @contextmanager
    def refusing_results(self) -> Iterator[None]:
        """Return an invalid id for the result file of the last batch, within the block."""
        batch = self.batches[-1]
        file_id = batch["output_file_id"]
        batch["output_file_id"] = "?"
        yield
        batch["output_file_id"] = file_id

    def _input(self, batch: dict[str, Any]) -> str:
        content: str = self._state._files[batch["input_file_id"]]["content"]
        return content
