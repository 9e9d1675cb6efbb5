"""Fixtures of sources."""

from tests.unit.ingest.sources.conftest import open_folder, unprivileged

__all__ = ["open_folder", "unprivileged"]
