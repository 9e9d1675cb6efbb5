"""Metadata of chunks: the framework depends on the language."""

from __future__ import annotations

from rag_assets.systems.code_memory import run_retrieval
from rag_assets.systems.code_memory.manifests import FRAMEWORKS
from rag_assets.systems.code_memory.run_retrieval import build_metadata


def test_every_framework_has_a_package_and_languages_of_its_manager() -> None:
    managers = {manager for manager, _ in FRAMEWORKS}
    assert managers == run_retrieval._LANGUAGES.keys()
    # No two managers have a package of one name, of which a manifest would tell the wrong one.
    assert len(run_retrieval._PACKAGES) == len(FRAMEWORKS)


def test_without_hits_nothing_is_joined() -> None:
    assert build_metadata(None, []) == []
