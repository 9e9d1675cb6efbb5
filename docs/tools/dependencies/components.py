"""All locked components: Python packages, jars, models and their data."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rag_assets.ingest.parsing.languages import find_language_model
from rag_assets.runtime.elasticsearch_install import COMPILER, read_locked_jars

ROOT = Path(__file__).resolve().parents[3]
LOCK = ROOT / "requirements" / "lock.txt"
BOOTSTRAP = ROOT / "requirements" / "bootstrap.txt"

_MODELS = ROOT / "rag_assets" / "models"
_PACKAGE = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*])?==(?P<version>[^ ;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_VIA = re.compile(r"^ +# (?:via )?(?:  )?(?P<parent>\S+(?: \(.*\))?)$")
_PROJECT = "rag-assets"
_DEVELOPMENT = "rag-assets (pyproject.toml:dev)"

Ecosystem = Literal["pypi", "maven", "model"]


@dataclass(frozen=True, slots=True)
class Component:
    """One locked package, jar or model.

    Attributes:
        ecosystem: its registry.
        group: the Maven group; empty elsewhere.
        name: as its registry spells it.
        version: as locked.
        sha256: hashes of its files: a package has a file for every platform.
        parents: names of the packages that need it; empty if unknown.
        development: whether only tests, checks and benchmarks need it.
    """

    ecosystem: Ecosystem
    group: str
    name: str
    version: str
    sha256: tuple[str, ...]
    parents: tuple[str, ...] = ()
    development: bool = False

    @property
    def full_name(self) -> str:
        """Return a name that is unique in its ecosystem."""
        return f"{self.group}:{self.name}" if self.group else self.name


def list_components() -> list[Component]:
    """Return all locked components, sorted."""
    components = [*list_packages(), *_list_jars(), *_list_models()]
    return sorted(components, key=lambda c: (c.ecosystem, c.full_name, c.version))


def list_packages(lock: Path = LOCK, bootstrap: Path = BOOTSTRAP) -> list[Component]:
    """Return the Python packages of the lock file, and the installer used for setup."""
    locked = list(_parse_packages(lock.read_text(encoding="utf-8")))
    run_with = _find_runtime_names(locked)
    installers = [
        replace(package, development=True)
        for package in _parse_packages(bootstrap.read_text(encoding="utf-8"))
    ]
    return [*(replace(p, development=p.name not in run_with) for p in locked), *installers]


def _parse_packages(text: str) -> Iterator[Component]:
    for entry in re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE):
        match = _PACKAGE.match(entry)
        if match is None:
            continue
        parents = [via["parent"] for line in entry.split("\n") if (via := _VIA.match(line))]
        yield Component(
            "pypi",
            "",
            match["name"],
            match["version"],
            tuple(sorted(_HASH.findall(entry))),
            tuple(sorted(p for p in parents if p != "via")),
        )


def _find_runtime_names(locked: Sequence[Component]) -> frozenset[str]:
    """Return the names of the project's direct and indirect runtime dependencies."""
    needed: set[str] = set()
    while True:
        more = {
            package.name
            for package in locked
            if any(_is_needed(parent, needed) for parent in package.parents)
        }
        if more <= needed:
            return frozenset(needed)
        needed |= more


def _is_needed(parent: str, needed: set[str]) -> bool:
    return parent in needed or (parent.startswith(_PROJECT) and parent != _DEVELOPMENT)


def _list_jars() -> Iterator[Component]:
    for jar in (*read_locked_jars(), COMPILER):
        yield Component("maven", jar.group, jar.artifact, jar.version, (jar.sha256,))


def _list_models() -> Iterator[Component]:
    for manifest in sorted(_MODELS.glob("*/models/*/manifest.json")):
        files = json.loads(manifest.read_text(encoding="utf-8"))["files"]
        weights = [facts["sha256"] for name, facts in files.items() if name.endswith(".onnx")]
        yield Component("model", "", manifest.parent.name, weights[0][:12], tuple(weights))
    # A package contains it, under a different licence.
    digest = hashlib.sha256(find_language_model().read_bytes()).hexdigest()
    yield Component("model", "", "lid.176.ftz", digest[:12], (digest,))
