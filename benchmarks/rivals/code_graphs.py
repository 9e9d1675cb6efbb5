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

    def index(self, folders: ProgramFolders) -> None:
        """Index with `codegraph init`."""
        folders.run([self._command(folders), "init", "."], CODEGRAPH_TELEMETRY="0")

    def ask(self, folders: ProgramFolders, question: str) -> list[FoundPassage]:
        """Ask with `codegraph context`, which builds an agent's context for a task."""
        command = [
            self._command(folders),
            "context",
            "-f",
            "json",
            "-n",
            str(DEPTH),
            question,
        ]
        answer = json.loads(folders.run(command, CODEGRAPH_TELEMETRY="0"))
        nodes = {node["id"]: node for node in answer["nodes"]}
        first = [entry["id"] for entry in answer.get("entryPoints", [])]
        ordered = dict.fromkeys([*first, *nodes])
        return [
            FoundPassage(entry["filePath"], entry["startLine"], entry["endLine"], entry["name"])
            for entry in (nodes[id_] for id_ in ordered if id_ in nodes)
        ][:DEPTH]

    def close(self, folders: ProgramFolders) -> None:
        """Do nothing: it starts no process."""

    @staticmethod
    def _command(folders: ProgramFolders) -> str:
        return str(folders.environment / "node_modules" / ".bin" / "codegraph")


@dataclass(frozen=True, slots=True)
class GitNexus:
    """GitNexus: symbols, calls and flows in a graph database, searched by words and vectors."""

    name: str = "gitnexus"
    package: str = "gitnexus"

    def install(self, folder: Path) -> None:
        """Install with npm, from a lock file, without the runtime's download for GPUs."""
        skipped = {"ONNXRUNTIME_NODE_INSTALL": "skip", "ONNXRUNTIME_NODE_INSTALL_CUDA": "skip"}
        install_node(folder, REQUIREMENTS / self.name, **skipped)

    def index(self, folders: ProgramFolders) -> None:
        """Index with `gitnexus analyze` and the shipped model: its own is downloaded from a hub."""
        command = [
            self._command(folders),
            "analyze",
            "--embeddings",
            "--skip-agents-md",
        ]
        folders.run([*command, "--force"], **self._variables(folders))

    def ask(self, folders: ProgramFolders, question: str) -> list[FoundPassage]:
        """Ask with `gitnexus query`, which gives the answers of its server for agents.

        Raises:
            NotUsableError: neither words nor vectors can be searched.
        """
        command = [
            self._command(folders),
            "query",
            "--limit",
            str(DEPTH),
            question,
        ]
        process = folders.run_process(command, **self._variables(folders))
        if missing := [line for line in process.stderr.splitlines() if _NO_EXTENSION in line]:
            raise NotUsableError(
                "its database downloads the search extension at run time, and its packages do "
                f"not contain it: {missing[0]}"
            )
        answer = json.loads(process.stdout)
        symbols = [*answer.get("process_symbols", []), *answer.get("definitions", [])]
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

    def close(self, folders: ProgramFolders) -> None:
        """Do nothing: it starts no process."""

    @staticmethod
    def _command(folders: ProgramFolders) -> str:
        return str(folders.environment / "node_modules" / ".bin" / "gitnexus")

    @staticmethod
    def _variables(folders: ProgramFolders) -> dict[str, str]:
        return {
            "GITNEXUS_EMBEDDING_URL": folders.model,
            "GITNEXUS_EMBEDDING_MODEL": MODEL,
            "GITNEXUS_EMBEDDING_DIMS": "384",
            "GITNEXUS_HOME": str(folders.home / "gitnexus"),
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

    def index(self, folders: ProgramFolders) -> None:
        """Index with `build` and `embed`, and the shipped model: its own comes from a hub."""
        for step in ("build", "embed"):
            folders.run([self._command(folders), step], **self._variables(folders))

    def ask(self, folders: ProgramFolders, question: str) -> list[FoundPassage]:
        """Ask with `search`, its server's tool for questions in words.

        Raises:
            NotUsableError: it has searched without its vectors.
        """
        command = [
            self._command(folders),
            "search",
            "--limit",
            str(DEPTH),
            question,
        ]
        answer = json.loads(folders.run(command, **self._variables(folders)))
        if answer["search_mode"] not in ("hybrid", "semantic"):
            raise NotUsableError(f"it searched without vectors: {answer['search_mode']}")
        return [
            FoundPassage(
                str(Path(hit["file_path"]).relative_to(folders.root)),
                hit["line_start"] or 0,
                hit["line_end"] or 0,
                hit["name"],
            )
            for hit in answer["results"]
        ]

    def close(self, folders: ProgramFolders) -> None:
        """Do nothing: it starts no process."""

    @staticmethod
    def _command(folders: ProgramFolders) -> str:
        return str(folders.environment / "bin" / "code-review-graph")

    @staticmethod
    def _variables(folders: ProgramFolders) -> dict[str, str]:
        return {
            "CRG_OPENAI_BASE_URL": folders.model,
            "CRG_OPENAI_API_KEY": "none",
            "CRG_OPENAI_MODEL": MODEL,
        }
