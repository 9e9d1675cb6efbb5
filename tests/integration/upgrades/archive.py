"""The archive that a release keeps of an installation, to be upgraded by later releases.

catalog.sql      a dump in plain SQL, which every later Postgres reads
home/            tenants.yaml, sources, lake and blobs; no index, which the lake restores
master.key       encrypts the provider keys of this installation, and of no other
questions.json   requests to the service, with the answers of the release
"""

from __future__ import annotations

import json
import lzma
import shutil
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.databases import recreate_database
from tests.dumps import run_postgres_program
from tests.installation import Installation
from tests.integration.api.conftest import Api

DATA = Path(__file__).parent / "data"
_CATALOG, _KEY, _QUESTIONS = "catalog.sql", "master.key", "questions.json"
_STORES = ("lake", "blobs")
_VARIES = frozenset({"debug", "last_shown_at", "query_id", "search_id", "took_ms"})
"""Fields of an answer that differ each time."""


@dataclass(frozen=True)
class Question:
    """A request to the service, and its answer.

    Attributes:
        tenant: the tenant of the caller's token.
        role: of the caller.
        answer: without fields that vary.
    """

    tenant: str
    method: str
    path: str
    body: Any = None
    subject: str = "ann"
    role: str = "member"
    answer: Any = None

    def ask(self, api: Api) -> Any:
        """Return the answer of a service, without fields that vary."""
        token = api.token(self.subject, self.tenant, role=self.role)
        answer = api.send(self.method, self.path, self.body, token=token)
        assert answer.is_success, (self, answer.text)
        return _without_varying(answer.json())

    def answered(self, api: Api) -> Question:
        """Return the question with the answer of a service."""
        return replace(self, answer=self.ask(api))


def _without_varying(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_varying(v) for k, v in value.items() if k not in _VARIES}
    if isinstance(value, list):
        return [_without_varying(one) for one in value]
    return value


def keep(
    installation: Installation, ask: Callable[[Installation], Sequence[Question]], file: Path
) -> None:
    """Write the archive of an installation in its state before the questions are asked."""
    url, home = installation.environment["RAG_ASSETS_DATABASE_URL"], installation.home
    with (
        TemporaryDirectory() as folder,
        lzma.open(file, "xb", preset=9 | lzma.PRESET_EXTREME) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        options = ("--no-owner", "--no-privileges", f"--file={folder}/{_CATALOG}")
        run_postgres_program("pg_dump", *options, url)
        asked = [asdict(question) for question in ask(installation)]
        (Path(folder) / _QUESTIONS).write_text(json.dumps(asked, ensure_ascii=False))
        for name in (_CATALOG, _QUESTIONS):
            archive.add(Path(folder) / name, name)
        archive.add(installation.environment["RAG_ASSETS_MASTER_KEY_FILE"], _KEY)
        for path in _kept_files(home):
            archive.add(path, Path("home") / path.relative_to(home), recursive=False)


def _kept_files(home: Path) -> Iterator[Path]:
    """Yield what a backup of the home folder needs: not caches, logs and sockets."""
    for path in sorted(home.rglob("*")):
        parts = path.relative_to(home).parts
        is_store = len(parts) > 1 and parts[1] in _STORES
        is_marker = len(parts) == 2 and path.is_file()
        if parts[0] != ".local" or is_store or is_marker:
            yield path


def restore(file: Path, installation: Installation) -> list[Question]:
    """Restore an archive into a new installation; return the questions.

    As after a move to another machine, home folder, database, Elasticsearch and prefix differ from
    the release's.
    """
    folder = installation.home.parent / file.name
    with lzma.open(file) as packed, tarfile.open(fileobj=packed) as archive:
        archive.extractall(folder, filter="data")  # owned by whoever restores it
    shutil.copytree(folder / "home", installation.home, dirs_exist_ok=True, symlinks=True)
    shutil.copy(folder / _KEY, installation.environment["RAG_ASSETS_MASTER_KEY_FILE"])
    url = installation.environment["RAG_ASSETS_DATABASE_URL"]
    recreate_database(url)
    options = ("--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", f"--file={folder / _CATALOG}")
    run_postgres_program("psql", *options, url)
    return [Question(**load) for load in json.loads((folder / _QUESTIONS).read_text())]
