"""The claims of docs/systems.md and docs/agents.md about systems match what is loaded."""

from __future__ import annotations

import re
from pathlib import Path

from rag_assets.plugins.registry import installed_systems
from rag_assets.plugins.system import PART_KINDS
from rag_assets.tenants.kinds import installed_kinds

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_every_kind_of_part_is_described() -> None:
    rows = re.findall(
        r"^\| (`\w+`(?:, `\w+`)*) \| .+ \| .+ \|$", (DOCS / "systems.md").read_text(), re.M
    )
    named = [name for row in rows for name in re.findall(r"\w+", row)]
    assert sorted(named) == sorted(PART_KINDS)


def test_agents_as_tenants_are_described_as_they_are_loaded() -> None:
    section = (
        (DOCS / "agents.md").read_text().partition("## With Dagster\n")[2].partition("\n## ")[0]
    )
    [owner] = [found for found in installed_systems() if found.system.tenant_lists]
    system = owner.system
    assert system.profile is not None
    for name in (system.name, *system.tenant_lists, *system.source_kinds):
        assert re.search(rf"`{name}`|\[`{name}`\]|{name}: \[", section), name
    configuration = (DOCS / "configuration.md").read_text()
    for name in system.source_kinds:
        fields = installed_kinds().sources[name].config.model_fields
        described = configuration.partition(f"### `sources` of {name}\n")[2].partition("\n#")[0]
        assert re.findall(r"^\| `(\w+)` \|", described, re.M) == list(fields)
    for name in system.chunkers:
        assert f"| `{name}` |" in configuration
