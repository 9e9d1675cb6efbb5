"""Code-graph servers from packages, each used as its documentation recommends."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.code_questions.questions import DEPTH, FoundPassage
from benchmarks.rivals.code_programs import ProgramFolders
from benchmarks.rivals.environments import (
    REQUIREMENTS,
    NotUsableError,
    install_node,
    install_python,
)
from benchmarks.rivals.model_server import MODEL

_NO_EXTENSION: Final = "extension load failed"


@dataclass(frozen=True, slots=True)
class CodeGraph:
    """CodeGraph: symbols and calls in SQLite, searched by words and along calls, not vectors."""

    name: str = "codegraph"
    package: str = "@colbymchenry/codegraph"

    def install(self, folder: Path) -> None:
        """Install with npm, from a lock file."""
        install_node(folder, REQUIREMENTS / self.name)

    def index(self, place: ProgramFolders) -> None:
        """Index with `codegraph init`."""
        place.run([self._command(place), "init", "."], CODEGRAPH_TELEMETRY="0")

    def ask(self, place: ProgramFolders, question: str) -> list[FoundPassage]:
        """Ask with `codegraph context`, which builds an agent's context for a task."""
        command = [self._command(place), "context", "-f", "json", "-n", str(DEPTH), question]
        told = json.loads(place.run(command, CODEGRAPH_TELEMETRY="0"))
        nodes = {node["id"]: node for node in told["nodes"]}
        first = [one["id"] for one in told.get("entryPoints", [])]
        ordered = dict.fromkeys([*first, *nodes])
        return [
            FoundPassage(one["filePath"], one["startLine"], one["endLine"], one["name"])
            for one in (nodes[id_] for id_ in ordered if id_ in nodes)
        ][:DEPTH]

    def close(self, place: ProgramFolders) -> None:
        """Do nothing: it starts no process."""

    @staticmethod
    def _command(place: ProgramFolders) -> Path:
        return place.environment / "node_modules" / ".bin" / "codegraph"


@dataclass(frozen=True, slots=True)
class GitNexus:
    """GitNexus: symbols, calls and flows in a graph database, searched by words and vectors."""

    name: str = "gitnexus"
    package: str = "gitnexus"

    def install(self, folder: Path) -> None:
        """Install with npm, from a lock file, without the runtime's download for GPUs."""
        skipped = {"ONNXRUNTIME_NODE_INSTALL": "skip", "ONNXRUNTIME_NODE_INSTALL_CUDA": "skip"}
        install_node(folder, REQUIREMENTS / self.name, **skipped)

    def index(self, place: ProgramFolders) -> None:
        """Index with `gitnexus analyze` and the shipped model: its own is downloaded from a hub."""
        command = [self._command(place), "analyze", "--embeddings", "--skip-agents-md"]
        place.run([*command, "--force"], **self._variables(place))

    def ask(self, place: ProgramFolders, question: str) -> list[FoundPassage]:
        """Ask with `gitnexus query`, which gives the answers of its server for agents.

        Raises:
            NotUsableError: neither words nor vectors can be searched.
        """
        command = [self._command(place), "query", "--limit", str(DEPTH), question]
        done = place.run_completely(command, **self._variables(place))
        if missing := [line for line in done.stderr.splitlines() if _NO_EXTENSION in line]:
            raise NotUsableError(
                "its database loads what searches from its own host when it runs, and its packages "
                f"do not carry it: {missing[0]}"
            )
        told = json.loads(done.stdout)
        symbols = [*told.get("process_symbols", []), *told.get("definitions", [])]
        return [
            FoundPassage(
                symbol["filePath"],
                symbol.get("startLine") or 0,
                symbol.get("endLine") or 0,
                symbol.get("name", ""),
            )
            for symbol in symbols
            if symbol.get("filePath")
        ][:DEPTH]

    def close(self, place: ProgramFolders) -> None:
        """Do nothing: it starts no process."""

    @staticmethod
    def _command(place: ProgramFolders) -> Path:
        return place.environment / "node_modules" / ".bin" / "gitnexus"

    @staticmethod
    def _variables(place: ProgramFolders) -> dict[str, str]:
        return {
            "GITNEXUS_EMBEDDING_URL": place.model,
            "GITNEXUS_EMBEDDING_MODEL": MODEL,
            "GITNEXUS_EMBEDDING_DIMS": "384",
            "GITNEXUS_HOME": str(place.home / "gitnexus"),
        }


@dataclass(frozen=True, slots=True)
class CodeReviewGraph:
    """code-review-graph: symbols, calls, routes and models in SQLite; words and vectors.

    Its packages contain its grammars.
    """

    name: str = "code-review-graph"
    package: str = "code-review-graph"

    def install(self, folder: Path) -> None:
        """Install with uv, from pinned requirements."""
        install_python(folder, REQUIREMENTS / f"{self.name}.txt")

    def index(self, place: ProgramFolders) -> None:
        """Index with `build` and `embed`, and the shipped model: its own comes from a hub."""
        for step in ("build", "embed"):
            place.run([self._command(place), step], **self._variables(place))

    def ask(self, place: ProgramFolders, question: str) -> list[FoundPassage]:
        """Ask with `search`, its server's tool for questions in words.

        Raises:
            NotUsableError: it has searched without its vectors.
        """
        command = [self._command(place), "search", "--limit", str(DEPTH), question]
        told = json.loads(place.run(command, **self._variables(place)))
        if told["search_mode"] not in ("hybrid", "semantic"):
            raise NotUsableError(f"it searched without vectors: {told['search_mode']}")
        return [
            FoundPassage(
                str(Path(one["file_path"]).relative_to(place.root)),
                one["line_start"] or 0,
                one["line_end"] or 0,
                one["name"],
            )
            for one in told["results"]
        ]

    def close(self, place: ProgramFolders) -> None:
        """Do nothing: it starts no process."""

    @staticmethod
    def _command(place: ProgramFolders) -> Path:
        return place.environment / "bin" / "code-review-graph"

    @staticmethod
    def _variables(place: ProgramFolders) -> dict[str, str]:
        return {
            "CRG_OPENAI_BASE_URL": place.model,
            "CRG_OPENAI_API_KEY": "none",
            "CRG_OPENAI_MODEL": MODEL,
        }
