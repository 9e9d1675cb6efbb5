"""Keep data of this release for later ones: `python -m tests.integration.upgrades.keep`.

Only the code of a release's tag may write its archive, and only once.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import pygit2

from tests.installation import new_installation
from tests.integration.upgrades.archive import DATA, keep
from tests.integration.upgrades.example import ask, fill
from tests.servers import elasticsearch_server, postgres_server

ROOT = Path(__file__).resolve().parents[3]


def main() -> None:
    """Create the example's installation on servers of its own, and write its archive."""
    file = choose_file(read_version(ROOT), ROOT, DATA)
    with (
        TemporaryDirectory() as folder,
        postgres_server() as postgres,
        elasticsearch_server(heap="512m") as elasticsearch,
        new_installation(Path(folder) / "home", postgres, elasticsearch) as installation,
    ):
        fill(installation)
        keep(installation, ask, file)
    sys.stdout.write(f"{file}: {file.stat().st_size:,} bytes\n")


def read_version(root: Path) -> str:
    """Return the version in a checkout's pyproject.toml, which may be newer than the installed."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def choose_file(release: str, root: Path, folder: Path) -> Path:
    """Return the file of a release's archive.

    Raises:
        SystemExit: the archive exists, or the checkout does not have exactly the tag's code.
    """
    file, tag = folder / f"{release}.tar.xz", f"v{release}"
    if file.exists():
        raise SystemExit(f"error: {file} exists, and an archive is never changed")
    repository = pygit2.Repository(str(root))
    reference = repository.references.get(f"refs/tags/{tag}")
    is_tag = reference is not None and reference.peel(pygit2.Commit).id == repository.head.target
    if not is_tag or repository.status(untracked_files="no"):
        raise SystemExit(f"error: this is not the code of {tag}; run `git switch --detach {tag}`")
    return file


if __name__ == "__main__":
    main()
