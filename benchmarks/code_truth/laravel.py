"""Run Laravel itself, in the release that an application requires, on that application."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pygit2

from rag_assets.common.errors import ConfigurationError

SCRIPTS: Final = Path(__file__).parent / "php"
_TAG: Final = re.compile(r"refs/tags/v(\d+)\.(\d+)\.(\d+)$")
_SCHEMA: Final = 11
"""The first major version whose schema builder alters SQLite tables by itself."""

_FORBIDDEN: Final = (
    "exec,shell_exec,system,passthru,proc_open,popen,pcntl_exec,pcntl_fork,mail,"
    "curl_exec,fsockopen,pfsockopen,stream_socket_client,unlink,rmdir,rename"
)
"""Functions that an application's providers and migrations may not call."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The routes or tables that Laravel made.

    Attributes:
        content: routes, or columns by table.
        failed: reasons, by what Laravel could not run.
        version: version of Laravel.
    """

    content: Any
    failed: Mapping[str, str]
    version: str


class Releases:
    """Releases of Laravel, from a clone of its repository.

    Args:
        repository: `git clone` of laravel/framework, bare or not.
        work: folder to unpack releases into.
    """

    def __init__(self, repository: Path, work: Path) -> None:
        self._repository = pygit2.Repository(str(repository))
        self._work = work
        tags = (_TAG.match(name) for name in self._repository.references)
        self._versions = sorted(tuple(map(int, tag.groups())) for tag in tags if tag)

    def ensure_folder(self, version: str, *, at_least: int = 0) -> Path:
        """Return the folder Illuminate of a version, or of the newest release of its major version.

        Args:
            version: `v11.28.1`, as in a lock file.
            at_least: lowest major version to use.
        """
        numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
        major = max(numbers[0], at_least)
        same = [version for version in self._versions if version[0] == major]
        if not same:
            raise ConfigurationError(f"the clone of Laravel has no release of version {major}")
        return self._unpack(numbers if numbers in same else same[-1])

    def _unpack(self, version: tuple[int, ...]) -> Path:
        name = "v" + ".".join(map(str, version))
        folder = self._work / name
        if not folder.exists():
            tree = self._repository.revparse_single(name).peel(pygit2.Tree)
            sources = tree["src/Illuminate"]
            assert isinstance(sources, pygit2.Tree)  # noqa: S101 - a folder of every release
            _write_tree(sources, folder)
        return folder


def _write_tree(tree: pygit2.Tree, folder: Path) -> None:
    folder.mkdir(parents=True)
    for entry in tree:
        if isinstance(entry, pygit2.Tree):
            _write_tree(entry, folder / str(entry.name))
        elif isinstance(entry, pygit2.Blob) and str(entry.name).endswith((".php", ".stub")):
            (folder / str(entry.name)).write_bytes(entry.data)


def read_laravel_routes(root: Path, releases: Releases) -> Truth:
    """Return the routes of the router after the application's own providers booted.

    Args:
        root: the application's worktree.
        releases: releases of Laravel.
    """
    return _run_script("routes", root, releases.ensure_folder(_read_locked_version(root)))


def read_laravel_tables(root: Path, releases: Releases) -> Truth:
    """Return the columns that the application's migrations create on SQLite, by table.

    Args:
        root: the application's worktree.
        releases: releases of Laravel.
    """
    return _run_script(
        "tables", root, releases.ensure_folder(_read_locked_version(root), at_least=_SCHEMA)
    )


def _read_locked_version(root: Path) -> str:
    lock = json.loads((root / "composer.lock").read_text("utf-8"))
    versions = {package["name"]: package["version"] for package in lock["packages"]}
    if "laravel/framework" not in versions:
        raise ConfigurationError(f"{root}/composer.lock has no laravel/framework")
    return str(versions["laravel/framework"])


def _run_script(script_name: str, root: Path, laravel: Path) -> Truth:
    php = shutil.which("php")
    if php is None:
        raise ConfigurationError("PHP is not installed", hint="make php")
    loaded = json.loads((root / "composer.json").read_text("utf-8")).get("autoload", {})
    plan = {
        "root": str(root),
        "laravel": str(laravel),
        "prefixes": loaded.get("psr-4", {}),
        "files": [str(root / statement) for statement in loaded.get("files", [])],
    }
    with TemporaryDirectory() as folder:
        plan_file = Path(folder) / "given.json"
        plan_file.write_text(json.dumps(plan), encoding="utf-8")
        settings = [f"disable_functions={_FORBIDDEN}", "allow_url_fopen=0", "display_errors=stderr"]
        command = [php, *(part for setting in settings for part in ("-d", setting))]
        process = subprocess.run(
            [*command, SCRIPTS / f"{script_name}.php", plan_file],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    if process.returncode != 0:
        raise ConfigurationError(f"{root.name}: Laravel failed: {process.stderr[:500]}")
    printed = json.loads(process.stdout[process.stdout.index("{") :])
    refused = {
        f"refused by SQLite {n}": statement
        for n, statement in enumerate(printed.get("refused", []), 1)
    }
    return Truth(printed[script_name], {**printed["failed"], **refused}, printed["version"])
