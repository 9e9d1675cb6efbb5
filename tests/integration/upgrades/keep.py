"""Keep data of this release for later ones: `python -m tests.integration.upgrades.keep`."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.installation import new_installation
from tests.integration.upgrades.archive import DATA, keep
from tests.integration.upgrades.example import ask, fill
from tests.servers import elasticsearch_server, postgres_server


def main() -> None:
    """Create the example's installation on servers of its own, and write its archive."""
    file = DATA / f"{version('rag-assets')}.tar.xz"
    with (
        TemporaryDirectory() as folder,
        postgres_server() as postgres,
        elasticsearch_server(heap="512m") as elasticsearch,
        new_installation(Path(folder) / "home", postgres, elasticsearch) as installation,
    ):
        fill(installation)
        keep(installation, ask, file)
    sys.stdout.write(f"{file}: {file.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
