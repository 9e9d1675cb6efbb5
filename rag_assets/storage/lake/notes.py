"""Notes in the lake: small files about the catalog, in its root and in tenants' folders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.storage.lake.location import Location


class LakeNotes:
    """Reads and writes notes (see NoteStore).

    Args:
        location: the root of the lake.
    """

    def __init__(self, location: Location) -> None:
        self._location = location

    def read(self, name: str) -> str | None:
        """Return a note; None if it does not exist."""
        with _available("read"):
            try:
                return self._location.read(f"{self._location.url}/{name}")
            except (FileNotFoundError, NotADirectoryError):
                return None

    def write(self, name: str, text: str) -> None:
        """Write a whole note."""
        with _available("written"):
            self._location.write(name, text)

    def delete(self, name: str) -> None:
        """Delete a note, if it exists."""
        with _available("deleted"):
            self._location.delete(name)


@contextmanager
def _available(done: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ServiceUnavailable(
            f"a note in the lake cannot be {done}: {error.strerror or error}",
            hint="check RAG_ASSETS_LAKE_URL, its credentials, permissions and free space",
        ) from error
