"""What chunks are told with: each framework is of some languages."""

from __future__ import annotations

from rag_assets.systems.code_memory import chunk_metadata
from rag_assets.systems.code_memory.chunk_metadata import metadata_of
from rag_assets.systems.code_memory.manifests.frameworks import FRAMEWORKS


def test_every_framework_has_a_package_and_languages_of_its_manager() -> None:
    managers = {manager for manager, _ in FRAMEWORKS}
    assert managers == chunk_metadata._LANGUAGES.keys()
    # No two managers have a package of one name, of which a manifest would tell the wrong one.
    assert len(chunk_metadata._PACKAGES) == len(FRAMEWORKS)


def test_without_hits_nothing_is_joined() -> None:
    assert metadata_of(None, []) == []
