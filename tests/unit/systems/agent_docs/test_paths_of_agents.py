"""Paths of agents.yaml in tenants.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.tenants.file import TenantsFile


@pytest.mark.parametrize("written", ["$NOTES/a", "/srv/${NOTES}", "$$$NOTES", "a/$UNDEFINED"])
def test_a_path_of_agents_with_a_variable_is_refused(tmp_path: Path, written: str) -> None:
    file = TenantsFile(tmp_path / "tenants.yaml")
    file.path.write_text(f"tenants: []\nagents: ['{written}']\n")
    with pytest.raises(ConfigurationError, match="path in agents contains a variable"):
        file.load_lists()
