"""Solutions about code that has changed since come last, and say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.installation import FAST, Installation
from tests.integration.systems.experience.conftest import Learning


@pytest.fixture
def code(learning: Learning, installed: Installation) -> Path:
    """Create the tenant of code that the experience refers to; return its folder."""
    name = f"{learning.tenant}-code"
    folder = installed.add_tenant(name, **FAST)
    (folder / "docs").mkdir()
    (folder / "docs" / "export.md").write_text("# Export\n\nOne row.\n")
    learning.driver.sync(name)
    installed.configure(learning.tenant, experience={"code_tenant": name})
    learning.driver.sync(learning.tenant)
    return folder


def capture(learning: Learning, problem: str, path: str) -> None:
    project = learning.project()
    learning.failure(project, problem, "Stream the rows.", about=[{"path": path}])
    learning.learned(project)


def stale(learning: Learning) -> dict[str, list[str]]:
    return {one["problem"]: one["stale_paths"] for one in learning.ask("x")}


def test_what_changed_or_is_gone_is_ranked_last(learning: Learning, code: Path) -> None:
    capture(learning, "cosine 0.95 of the export", "docs/export.md")
    capture(learning, "cosine 0.90 of no code", "docs/unknown.md")
    assert stale(learning) == {"cosine 0.95 of the export": [], "cosine 0.90 of no code": []}

    (code / "docs" / "export.md").write_text("# Export\n\nMany rows.\n")
    learning.driver.sync(code.name)
    found = stale(learning)
    assert list(found) == ["cosine 0.90 of no code", "cosine 0.95 of the export"]
    assert found["cosine 0.95 of the export"] == ["docs/export.md"]

    # An equal entry with the present content proves that it still helps.
    capture(learning, "cosine 0.95 of the export", "docs/export.md")
    assert not any(stale(learning).values())

    (code / "docs" / "export.md").unlink()
    learning.driver.sync(code.name, allow_deletes=True)
    found = stale(learning)
    assert list(found) == ["cosine 0.90 of no code", "cosine 0.95 of the export"]
    shown = learning.ok("GET", "/patterns", role="admin")["patterns"]
    assert {one["problem"]: one["stale_paths"] for one in shown} == found


def test_without_its_code_nothing_is_stale(learning: Learning, code: Path) -> None:
    capture(learning, "cosine 0.95 of the export", "docs/export.md")
    (code / "docs" / "export.md").write_text("# Export\n\nMany rows.\n")
    learning.driver.sync(code.name)
    assert stale(learning) == {"cosine 0.95 of the export": ["docs/export.md"]}
    learning.driver.session.catalog.tenants.set_state(code.name, "DISABLED")
    assert stale(learning) == {"cosine 0.95 of the export": []}
