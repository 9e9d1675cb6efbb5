"""The systems of rag-assets are installed in the same way as foreign ones."""

from __future__ import annotations

from rag_assets.plugins.registry import installed_systems


def test_our_own_systems_are_installed_like_any_other() -> None:
    own = {system.name: system.distribution.partition(" ")[0] for system in installed_systems()}
    assert own == dict.fromkeys(
        ("agent-docs", "code-memory", "documents", "experience", "team-guidelines", "workspace"),
        "rag-assets",
    )
