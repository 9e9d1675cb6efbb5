"""Distributions for tests: metadata on Python's path, wheels of the project, and environments."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
_SOURCES = ("rag_assets", "resources", "sensors", "checks", "examples", "client")
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


def distribution(folder: Path, name: str, systems: Mapping[str, str], version: str = "1.0") -> None:
    """Write the metadata of an installed distribution.

    Args:
        folder: a folder on Python's path.
        systems: entry points of systems, as "module:attribute" by name.
    """
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = (f"{key} = {value}\n" for key, value in systems.items())
    (info / "entry_points.txt").write_text("[rag_assets.systems]\n" + "".join(lines))


def find_dependencies(*requirements: str) -> dict[str, metadata.Distribution]:
    """Return the installed distributions that requirements need, by normalized name."""
    found: dict[str, metadata.Distribution] = {}
    rest = [Requirement(line) for line in requirements]
    seen: set[tuple[str, frozenset[str]]] = set()
    while rest:
        wanted = rest.pop()
        name, extras = canonicalize_name(wanted.name), frozenset(wanted.extras)
        if (wanted.marker is not None and not wanted.marker.evaluate()) or (name, extras) in seen:
            continue
        seen.add((name, extras))
        found[name] = metadata.distribution(name)
        rest += _requirements(found[name], extras)
    return found


def _requirements(
    distribution: metadata.Distribution, extras: Collection[str]
) -> Iterator[Requirement]:
    """Yield the requirements of a distribution that apply here with these extras."""
    for line in distribution.requires or ():
        needed = Requirement(line)
        chosen = [{"extra": extra} for extra in (*extras, "")]
        if needed.marker is None or any(map(needed.marker.evaluate, chosen)):
            needed.marker = None
            yield needed


def wheel_requirements(wheel: Path, extras: Collection[str] = ()) -> list[str]:
    """Return the requirements of a wheel that apply here with these extras."""
    info = "-".join(wheel.name.split("-")[:2]) + ".dist-info/"
    distribution = metadata.PathDistribution(zipfile.Path(wheel, info))
    return [str(needed) for needed in _requirements(distribution, extras)]


def build_wheel(folder: Path, project: str = ".") -> Path:
    """Build a wheel from a copy of the sources, without network; return its path.

    Args:
        folder: an empty folder for the copy and the wheel.
        project: the folder of the project's pyproject.toml in the checkout.
    """
    source = folder / "source"
    for name in _SOURCES:
        ignored = shutil.ignore_patterns("__pycache__", "rag_assets_client")
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copyfile(ROOT / name, source / name)
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder))
    subprocess.run([*_PIP, "wheel", *options, str(source / project)], check=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def install_wheel(wheel: Path, environment: Path, extras: Sequence[str] = ()) -> Path:
    """Install a wheel into a new environment that has only the packages that the wheel requires.

    These packages are linked from the environment of the tests.

    Args:
        environment: a folder that does not exist.
        extras: extras of the wheel that are installed too.

    Returns:
        The folder of the environment's programs.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    options = ("--no-deps", "--no-index", "--no-compile")
    subprocess.run([*_PIP, "--python", str(python), "install", *options, str(wheel)], check=True)
    [packages] = environment.glob("lib/python*/site-packages")
    installed = Path(sysconfig.get_path("purelib"))
    required = find_dependencies(*wheel_requirements(wheel, extras))
    for name in _top_level_of(required.values(), installed):
        if not (packages / name).exists():
            (packages / name).symlink_to(installed / name)
    # The wheel of every project made by `create-dagster` contains this file.
    (packages / "pyproject.toml").write_text('[project]\nname = "team"\n')
    (environment / "share").symlink_to(Path(sysconfig.get_path("data")) / "share")
    return python.parent


def _top_level_of(distributions: Iterable[metadata.Distribution], installed: Path) -> Iterator[str]:
    """Yield the top-level files and folders in site-packages that belong to distributions."""
    for distribution in distributions:
        tops = {file.parts[0] for file in distribution.files or ()}
        yield from sorted(top for top in tops if top != ".." and (installed / top).exists())
