"""Installations side by side in one process, each with its own environment."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rag_assets.cli.session import Session
from rag_assets.resources import stores
from tests.installation import CommandResult, Installation


class Site:
    """An installation whose commands run with their own environment.

    Args:
        home: its home folder.
        environment: of its commands.
    """

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self.home = home
        self.environment = {**environment, "RAG_ASSETS_HOME": str(home)}

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment of its commands, with their default addresses.

        A run in this process exports the address of its installation's lake.
        """
        local = self.home / ".local"
        places = {"RAG_ASSETS_LAKE_URL": str(local / "lake")}
        return {**places, **self.environment, "RAG_ASSETS_HOME": str(self.home)}

    def run(self, *arguments: str, stdin: str = "", **env: str) -> CommandResult:
        """Run a command."""
        made = Installation(self.home, {**self.variables, **env})
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("sys.stdin", io.StringIO(stdin))
            result = made.command(*arguments)
        stores.close_all()
        return result

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Yield a read-only session in the site's environment."""
        with pytest.MonkeyPatch.context() as environment:
            for name, value in self.variables.items():
                environment.setenv(name, value)
            with Session(reconciles=False) as session:
                yield session
        stores.close_all()

    def done(self, *arguments: str, **env: str) -> Any:
        """Run a command that must succeed; return its JSON."""
        result = self.run(*arguments, "--json", **env)
        assert result.code == 0, (result.out, result.err)
        return json.loads(result.out)

    def refused(self, *arguments: str, **env: str) -> str:
        """Run a command that must be refused; return its message and hint."""
        result = self.run(*arguments, **env)
        assert result.code == 1, (result.out, result.err)
        return result.err

    def hits(self, question: str = "where are backups kept?") -> list[str]:
        found = self.done("search", "acme", question)
        return [hit["text"] for hit in found["hits"]]

    @property
    def id(self) -> str:
        return str(self.done("installation", "show")["installation"])
