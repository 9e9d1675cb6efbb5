"""Laravel itself, run on words, migrations and models, for comparison with our own reading."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

HERE = Path(__file__).parent
EXAMPLE = Path(__file__).parents[5] / "examples" / "laravel"


def words_by_laravel(words: Sequence[str]) -> list[list[str]]:
    """Return plural, singular, snake case and table name of each word."""
    return _php("words.php", list(words))


def schema_by_laravel(migrations: Sequence[Path], dumps: Sequence[Path] = ()) -> dict[str, Any]:
    """Return the tables that migrations create on SQLite, and Laravel's statements."""
    plan = {"dumps": list(map(str, dumps)), "migrations": list(map(str, migrations))}
    return _php("schema.php", plan)


def models_by_laravel(
    root: Path, prefixes: Mapping[str, str], models: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return table, key and relations of models according to Eloquent."""
    return _php("models.php", {"root": str(root), "prefixes": prefixes, "models": models})


def _php(script: str, given: object) -> Any:
    php = os.environ.get("RAG_ASSETS_TEST_PHP") or shutil.which("php")
    if php is None:
        pytest.skip("no PHP is installed: `make php`, or name one in RAG_ASSETS_TEST_PHP")
    with TemporaryDirectory() as directory:
        path = Path(directory) / "given.json"
        path.write_text(json.dumps(given), encoding="utf-8")
        command = [php, str(HERE / script), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)
