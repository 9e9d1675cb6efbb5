"""The interface of programs that search source code, and one that searches by vectors.

Each program has its own environment. Models that a program would load from a hub are served by
`model_server`; each program documents where it uses it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.code_questions.questions import DEPTH, FoundPassage
from benchmarks.rivals.environments import REQUIREMENTS, find_python_with_extensions, install_python
from benchmarks.rivals.model_server import MODEL


@dataclass(frozen=True, slots=True)
class ProgramFolders:
    """The folders and the model of a program.

    Attributes:
        environment: folder of its packages.
        root: copy of the repository for this program alone.
        home: its folder for settings.
        model: address of the served model.
    """

    environment: Path
    root: Path
    home: Path
    model: str

    def run(self, command: Sequence[str], **variables: str) -> str:
        """Run a command and return its output.

        Raises:
            CalledProcessError: it failed.
        """
        return self.run_process(command, **variables).stdout

    def run_process(
        self, command: Sequence[str], **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command and return the completed process.

        Raises:
            CalledProcessError: it failed.
        """
        environment = {"HOME": str(self.home), "PATH": os.environ["PATH"], **variables}
        return subprocess.run(
            [*command],
            cwd=self.root,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )


class Program(Protocol):
    """A program that answers questions about source code."""

    @property
    def name(self) -> str:
        """Return its label."""

    @property
    def package(self) -> str:
        """Return the name of its package, to look up its version."""

    def install(self, folder: Path) -> None:
        """Create its environment, unless it exists."""

    def index(self, folders: ProgramFolders) -> None:
        """Index the repository."""

    def ask(self, folders: ProgramFolders, question: str) -> list[FoundPassage]:
        """Return the first passages that it finds."""

    def close(self, folders: ProgramFolders) -> None:
        """Stop the processes it has started."""


@dataclass(frozen=True, slots=True)
class CocoIndexCode:
    """`ccc`: chunks along syntax trees with their vectors, in SQLite, behind a daemon."""

    name: str = "cocoindex-code"
    package: str = "cocoindex-code"

    def install(self, folder: Path) -> None:
        """Install with uv, on a Python whose SQLite loads the extension for its vectors."""
        requirements = REQUIREMENTS / f"{self.name}.txt"
        install_python(folder, requirements, find_python_with_extensions())

    def index(self, folders: ProgramFolders) -> None:
        """Index with the shipped model: its own default is downloaded from a hub."""
        embedding = {"model": f"openai/{MODEL}", "provider": "litellm"}
        (folders.home / ".cocoindex_code").mkdir(parents=True, exist_ok=True)
        settings = {"embedding": embedding, "envs": self._variables(folders)}
        (folders.home / ".cocoindex_code" / "global_settings.yml").write_text(json.dumps(settings))
        folders.run([self._command(folders), "init"], **self._variables(folders))
        for again in (True, True, False):
            try:
                folders.run([self._command(folders), "index"], **self._variables(folders))
            except subprocess.CalledProcessError as error:
                # On a busy machine its daemon may start to listen after the command's timeout.
                if not again or "in time" not in error.stderr:
                    raise
            else:
                return

    def ask(self, folders: ProgramFolders, question: str) -> list[FoundPassage]:
        """Ask with `ccc search`."""
        command = [
            self._command(folders),
            "search",
            "--json",
            "--limit",
            str(DEPTH),
            "--",
            question,
        ]
        answer = json.loads(folders.run(command, **self._variables(folders)))
        return [
            FoundPassage(hit["file_path"], hit["start_line"], hit["end_line"], text=hit["content"])
            for hit in answer["results"]
        ]

    def close(self, folders: ProgramFolders) -> None:
        """Stop its daemon with `ccc daemon stop`."""
        folders.run([self._command(folders), "daemon", "stop"], **self._variables(folders))

    @staticmethod
    def _command(folders: ProgramFolders) -> str:
        return str(folders.environment / "bin" / "ccc")

    @staticmethod
    def _variables(folders: ProgramFolders) -> dict[str, str]:
        return {
            "OPENAI_API_BASE": folders.model,
            "OPENAI_API_KEY": "none",
            "COCOINDEX_DISABLE_USAGE_TRACKING": "1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }


def read_version(program: Program, environment: Path) -> str:
    """Return the version of a program's package in its environment."""
    manifest = environment / "node_modules" / program.package / "package.json"
    if manifest.exists():
        return str(json.loads(manifest.read_text())["version"])
    [metadata] = environment.glob(
        f"lib/*/site-packages/{program.package.replace('-', '_')}-*.dist-info"
    )
    return metadata.name.removesuffix(".dist-info").rpartition("-")[2]
