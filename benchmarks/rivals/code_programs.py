"""Programs that search source code, each used as its documentation recommends.

Each has an environment of its own. What a program would load from a hub it is given
by `model_server`; each says so where it does.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from benchmarks.code_questions.questions import DEPTH, Found
from benchmarks.rivals.model_server import MODEL

REQUIREMENTS: Final = Path(__file__).resolve().parent / "requirements"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program works.

    Attributes:
        environment: the folder of its packages.
        root: a copy of the repository that it alone uses.
        home: its folder for settings.
        model: address of the served model.
    """

    environment: Path
    root: Path
    home: Path
    model: str

    def run(self, command: Sequence[str | Path], **variables: str) -> str:
        """What a command prints.

        Raises:
            CalledProcessError: it failed.
        """
        given = {"HOME": str(self.home), "PATH": os.environ["PATH"], **variables}
        done = subprocess.run(
            [str(part) for part in command],
            cwd=self.root,
            env=given,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout


class Program(Protocol):
    """A program that is asked."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def package(self) -> str:
        """The name of its package, by which its version is known."""

    def install(self, folder: Path) -> None:
        """Make its environment, unless it is there."""

    def index(self, place: Place) -> None:
        """Index the repository."""

    def ask(self, place: Place, question: str) -> list[Found]:
        """The first passages that it finds."""

    def close(self, place: Place) -> None:
        """End what it has started."""


@dataclass(frozen=True, slots=True)
class CocoIndexCode:
    """`ccc`: chunks along syntax trees with their vectors, in SQLite, behind a process."""

    name: str = "cocoindex-code"
    package: str = "cocoindex-code"

    def install(self, folder: Path) -> None:
        """With uv, from pinned requirements."""
        wanted, made = REQUIREMENTS / "cocoindex-code.txt", folder / "requirements.txt"
        if made.exists() and made.read_text() == wanted.read_text():
            return
        uv = str(Path(sys.executable).with_name("uv"))
        venv = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)]
        subprocess.run(venv, check=True)
        install = [uv, "pip", "install", "--quiet", "--require-hashes", "-r", str(wanted)]
        python = folder / "bin" / "python"
        environment = {**os.environ, "PYTHONPATH": ""}
        subprocess.run([*install, "--python", str(python)], check=True, env=environment)
        shutil.copyfile(wanted, made)

    def index(self, place: Place) -> None:
        """With the shipped model: its own default is loaded from a hub."""
        embedding = {"model": f"openai/{MODEL}", "provider": "litellm"}
        (place.home / ".cocoindex_code").mkdir(parents=True, exist_ok=True)
        settings = {"embedding": embedding, "envs": self._variables(place)}
        (place.home / ".cocoindex_code" / "global_settings.yml").write_text(json.dumps(settings))
        place.run([self._command(place), "init"], **self._variables(place))
        for again in (True, True, False):
            try:
                place.run([self._command(place), "index"], **self._variables(place))
            except subprocess.CalledProcessError as error:
                # On a busy machine its process begins to listen after the command has given up.
                if not again or "in time" not in error.stderr:
                    raise
            else:
                return

    def ask(self, place: Place, question: str) -> list[Found]:
        """By `ccc search`."""
        command = [self._command(place), "search", "--json", "--limit", str(DEPTH), "--", question]
        found = json.loads(place.run(command, **self._variables(place)))
        return [
            Found(one["file_path"], one["start_line"], one["end_line"], text=one["content"])
            for one in found["results"]
        ]

    def close(self, place: Place) -> None:
        """By `ccc daemon stop`."""
        place.run([self._command(place), "daemon", "stop"], **self._variables(place))

    @staticmethod
    def _command(place: Place) -> Path:
        return place.environment / "bin" / "ccc"

    @staticmethod
    def _variables(place: Place) -> dict[str, str]:
        return {
            "OPENAI_API_BASE": place.model,
            "OPENAI_API_KEY": "none",
            "COCOINDEX_DISABLE_USAGE_TRACKING": "1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }


@dataclass(frozen=True, slots=True)
class CodeGraph:
    """CodeGraph: symbols and calls in SQLite, found by words and along calls; it has no vectors."""

    name: str = "codegraph"
    package: str = "@colbymchenry/codegraph"

    def install(self, folder: Path) -> None:
        """With npm, from a lock file."""
        install_node(folder, REQUIREMENTS / self.name)

    def index(self, place: Place) -> None:
        """By `codegraph init`."""
        place.run([self._command(place), "init", "."], CODEGRAPH_TELEMETRY="0")

    def ask(self, place: Place, question: str) -> list[Found]:
        """By `codegraph context`, which builds what an agent is given for a task."""
        command = [self._command(place), "context", "-f", "json", "-n", str(DEPTH), question]
        told = json.loads(place.run(command, CODEGRAPH_TELEMETRY="0"))
        nodes = {node["id"]: node for node in told["nodes"]}
        first = [one["id"] for one in told.get("entryPoints", [])]
        ordered = dict.fromkeys([*first, *nodes])
        return [
            Found(one["filePath"], one["startLine"], one["endLine"], one["name"])
            for one in (nodes[id_] for id_ in ordered if id_ in nodes)
        ][:DEPTH]

    def close(self, place: Place) -> None:
        """Nothing runs."""

    @staticmethod
    def _command(place: Place) -> Path:
        return place.environment / "node_modules" / ".bin" / "codegraph"


@dataclass(frozen=True, slots=True)
class GitNexus:
    """GitNexus: symbols, calls and flows in a graph database, found by words and vectors."""

    name: str = "gitnexus"
    package: str = "gitnexus"

    def install(self, folder: Path) -> None:
        """With npm, from a lock file; the runtime's download for graphic cards is left out."""
        skipped = {"ONNXRUNTIME_NODE_INSTALL": "skip", "ONNXRUNTIME_NODE_INSTALL_CUDA": "skip"}
        install_node(folder, REQUIREMENTS / self.name, **skipped)

    def index(self, place: Place) -> None:
        """By `gitnexus analyze`, with vectors of the shipped model: its own is from a hub."""
        command = [self._command(place), "analyze", "--embeddings", "--skip-agents-md"]
        place.run([*command, "--force"], **self._variables(place))

    def ask(self, place: Place, question: str) -> list[Found]:
        """By `gitnexus query`, as its server for agents answers."""
        command = [self._command(place), "query", "--limit", str(DEPTH), question]
        told = json.loads(place.run(command, **self._variables(place)))
        symbols = [*told.get("process_symbols", []), *told.get("definitions", [])]
        return [
            Found(
                one["filePath"],
                one.get("startLine") or 0,
                one.get("endLine") or 0,
                one.get("name", ""),
            )
            for one in symbols
            if one.get("filePath")
        ][:DEPTH]

    def close(self, place: Place) -> None:
        """Nothing runs."""

    @staticmethod
    def _command(place: Place) -> Path:
        return place.environment / "node_modules" / ".bin" / "gitnexus"

    @staticmethod
    def _variables(place: Place) -> dict[str, str]:
        return {
            "GITNEXUS_EMBEDDING_URL": place.model,
            "GITNEXUS_EMBEDDING_MODEL": MODEL,
            "GITNEXUS_EMBEDDING_DIMS": "384",
            "GITNEXUS_HOME": str(place.home / "gitnexus"),
        }


PROGRAMS: Final[tuple[Program, ...]] = (CocoIndexCode(), CodeGraph(), GitNexus())


def version_of(program: Program, environment: Path) -> str:
    """The version of a program's package in its environment."""
    manifest = environment / "node_modules" / program.package / "package.json"
    if manifest.exists():
        return str(json.loads(manifest.read_text())["version"])
    [found] = environment.glob(
        f"lib/*/site-packages/{program.package.replace('-', '_')}-*.dist-info"
    )
    return found.name.removesuffix(".dist-info").rpartition("-")[2]


def install_node(folder: Path, wanted: Path, **variables: str) -> None:
    """Make an environment of npm's, unless it is there.

    Args:
        folder: of the environment.
        wanted: that holds package.json and package-lock.json.
        variables: for the installation.
    """
    made, told = folder / "made.json", (wanted / "package-lock.json").read_text()
    if made.exists() and made.read_text() == told:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(wanted / name, folder / name)
    environment = {**os.environ, **variables}
    # Not `npm ci`: it misses packages of other platforms in a lock file made on this one.
    command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=folder, check=True, env=environment)
    made.write_text(told)
