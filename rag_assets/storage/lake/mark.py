"""The file beside a tenant's tables that keeps the catalog's mark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.storage.lake.location import Location
from rag_assets.storage.lake.model import LakeMark

_NAME = "catalog_mark.json"


class MarkFile:
    """Reads and writes the mark.

    Args:
        location: the incarnation's folder.
        guard: called before every write.
    """

    def __init__(self, location: Location, guard: Callable[[], None]) -> None:
        self._location = location
        self._guard = guard

    def read(self) -> LakeMark | None:
        """The mark; None if there is none, or if its file was damaged.

        Raises:
            ServiceUnavailable: the location could not be read.
        """
        try:
            text = self._location.read(f"{self._location.url}/{_NAME}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unavailable("read", error) from error
        try:
            kept = json.loads(text)
            return LakeMark(int(kept["mark"]), set_back=bool(kept["set_back"]))
        except (ValueError, KeyError, TypeError):
            return None

    def write(self, mark: LakeMark) -> None:
        """Keep a mark in place of the former one.

        Raises:
            ServiceUnavailable: the location could not be written.
            TenantGone, TenantLocked: by the guard; nothing was written.
        """
        self._guard()
        try:
            self._location.write(_NAME, json.dumps(asdict(mark)))
        except OSError as error:
            raise _unavailable("written", error) from error

    def delete(self) -> None:
        """Delete the mark, if there is one."""
        self._guard()
        self._location.delete(_NAME)


def _unavailable(participle: str, error: OSError) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"the catalog's mark beside the lake cannot be {participle}: {error.strerror or error}",
        hint="check RAG_ASSETS_LAKE_URL, its credentials, permissions and free space",
    )
