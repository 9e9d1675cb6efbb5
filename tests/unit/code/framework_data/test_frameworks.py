"""Frameworks as data: the exact routes and tables of a small project of each framework."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from time import process_time

import pytest

from rag_assets.code.derived.documents import derived_documents
from rag_assets.code.derived.model import Derivation
from rag_assets.code.framework_data.definitions import built_in, framework_facts
from rag_assets.code.framework_data.statements import GRAMMARS
from rag_assets.code.model import FileFacts
from rag_assets.code.reading import read_code
from rag_assets.ingest.chunking.chunk_set import located

SAMPLES = Path(__file__).parent / "samples"
LANGUAGES = {
    ".cs": "csharp",
    ".ex": "elixir",
    ".go": "go",
    ".java": "java",
    ".js": "javascript",
    ".py": "python",
    ".rb": "ruby",
    ".rs": "rust",
    ".swift": "swift",
    ".ts": "typescript",
    ".tsx": "typescript",
}
HOSTILE_SECONDS = 20.0


def derive(files: Mapping[str, str]) -> Derivation:
    read = []
    for path, text in sorted(files.items()):
        language = LANGUAGES[Path(path).suffix]
        facts = tuple(located(read_code(text, f"text/x-{language}").facts, text))
        read.append(FileFacts(path, language, facts))
    return derived_documents(read)


def shown(derivation: Derivation) -> Iterator[str]:
    """Each document with where it leads and the place that states it, then what is computed."""
    for document in derivation.documents:
        first = document.statements[0]
        led = [one.target for one in document.statements if one.kind == "routes_to"]
        led += [one.source for one in document.statements if one.kind == "maps_to"]
        target = led[0] if led else "?"
        yield f"{document.name} -> {target} at {first.path}:{first.line_start}"
    for why in derivation.unresolved:
        yield f"unresolved {why.path}:{why.line} {why.reason}"


@pytest.mark.parametrize("framework", [one.name for one in built_in()])
def test_sample_of_framework_gives_exact_routes_and_tables(framework: str) -> None:
    folder = SAMPLES / framework
    files = {
        str(path.relative_to(folder)): path.read_text("utf-8")
        for path in folder.rglob("*")
        if path.suffix in LANGUAGES
    }
    expected = (folder / "expected.txt").read_text("utf-8").splitlines()
    assert sorted(shown(derive(files))) == expected


def test_clients_and_maps_are_no_routes() -> None:
    text = (
        "const express = require('express')\nconst app = express()\n"
        "axios.get('/orders')\ncache.get('/orders')\nrequest(app).post('/orders')\n"
    )
    assert [one.name for one in derive({"src/app.js": text}).documents] == []


def test_routes_in_tests_are_no_routes() -> None:
    text = "const express = require('express')\nconst app = express()\napp.get('/x', handler)\n"
    assert derive({"test/app.js": text}).documents == ()
    assert len(derive({"src/app.js": text}).documents) == 1


@pytest.mark.parametrize("language", sorted(GRAMMARS))
@pytest.mark.parametrize(
    "part", ["app.get('/x', ", "get(", "[Get(", "@Get('/a') ", "{", "scope do "]
)
def test_hostile_text_takes_bounded_time(language: str, part: str) -> None:
    started = process_time()
    text = part * (4_000 // len(part))
    facts, _ = framework_facts(text, language)
    derive_facts = FileFacts("a", language, tuple(located(facts, text)))
    derived_documents([derive_facts])
    assert process_time() - started < HOSTILE_SECONDS


def test_routers_that_mount_each_other_end() -> None:
    text = (
        "const express = require('express')\nconst a = express.Router()\n"
        "const b = express.Router()\na.use('/b', b)\nb.use('/a', a)\na.get('/x', handler)\n"
    )
    assert derive({"src/app.js": text}).documents
