"""Environments of the other programs: one each, from pinned requirements, made when missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

REQUIREMENTS: Final = Path(__file__).resolve().parent / "requirements"
_LOADS_EXTENSIONS: Final = """
import sqlite3, sys
connection = sqlite3.connect(":memory:")
connection.enable_load_extension(True)
sys.exit(sys.version_info < (3, 11))
"""
_PYTHONS: Final = ("python3", *(f"python3.{minor}" for minor in range(11, 15)))


class NotUsableError(Exception):
    """A program cannot be used on this machine; the message is the reason."""


def install_python(folder: Path, requirements: Path, python: str = sys.executable) -> Path:
    """Create an environment with uv, unless it exists.

    Args:
        folder: folder of the environment.
        requirements: its pinned requirements.
        python: interpreter to base it on.

    Returns:
        The environment's interpreter.
    """
    marker, interpreter = folder / "requirements.txt", folder / "bin" / "python"
    content = f"# {python}\n{requirements.read_text()}"
    if marker.exists() and marker.read_text() == content:
        return interpreter
    uv = str(Path(sys.executable).with_name("uv"))
    venv = [uv, "venv", "--quiet", "--clear", "--python", python, str(folder)]
    subprocess.run(venv, check=True)
    install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--require-hashes"]
    # NLTK, which LlamaIndex uses, refuses data files that are hard links into uv's cache.
    install += ["--link-mode", "copy", "--python", str(interpreter), "-r", str(requirements)]
    subprocess.run(install, check=True, env={**os.environ, "PYTHONPATH": ""})
    marker.write_text(content)
    return interpreter


def find_python_with_extensions(candidates: Sequence[str] = ()) -> str:
    """Return an interpreter whose SQLite loads extensions: many are built without.

    Args:
        candidates: interpreters to choose from; by default this one, then those on the path.

    Raises:
        NotUsableError: none does.
    """
    on_path = (
        found for name in _PYTHONS if (found := shutil.which(name, path=_build_search_path()))
    )
    pythons = list(dict.fromkeys(candidates or (sys.executable, *on_path)))
    for python in pythons:
        process = subprocess.run(
            [python, "-c", _LOADS_EXTENSIONS], check=False, capture_output=True
        )
        if process.returncode == 0:
            return python
    raise NotUsableError(
        f"no Python of 3.11 or newer whose sqlite3 loads extensions; asked: {', '.join(pythons)}. "
        "Install one that does, as Debian's python3, or put it on the PATH"
    )


def _build_search_path() -> str:
    # Shims of version managers come first on PATH and hide the system's interpreters.
    return os.pathsep.join(("/usr/local/bin", "/usr/bin", os.environ["PATH"]))


def install_node(folder: Path, lock_folder: Path, **variables: str) -> None:
    """Create an npm environment, unless it exists.

    Args:
        folder: folder of the environment.
        lock_folder: contains package.json and package-lock.json.
        variables: environment variables of the installation.
    """
    marker, content = folder / "made.json", (lock_folder / "package-lock.json").read_text()
    if marker.exists() and marker.read_text() == content:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(lock_folder / name, folder / name)
    environment = {**os.environ, **variables}
    # Not `npm ci`, which misses other platforms' packages in a lock file made on this one.
    command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=folder, check=True, env=environment)
    marker.write_text(content)
