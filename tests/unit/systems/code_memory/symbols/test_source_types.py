"""Source types that follow from paths."""

import pytest

from rag_assets.systems.code_memory.symbols.source_types import get_type_of_path

PATHS = {
    "readme": "README.md packages/ui/Readme.rst README \udcff/README.md",
    "doc": "docs/setup.md .claude/commands/report.md .claude/agents/reviewer.md CHANGELOG.md",
    "adr": "docs/adr/0001-money.md docs/architecture/decisions/0002-x.md adr/3.md",
    "known_bug": "docs/KNOWN_BUGS.md known-issues.md",
    "cursor_rule": ".cursor/rules/style.mdc apps/web/.cursor/rules/deep/style.mdc",
    "claude_rule": ".claude/rules/api/style.md .claude/CLAUDE.md packages/ui/AGENTS.md CLAUDE.md",
    "package": "composer.json ios/Podfile Package.swift go.mod requirements-dev.txt",
    "config": "config/services.php shop/settings.py .env.example",
    "migration": "database/migrations/2024_01_create.php modules/x/database/migrations/2024.php",
    "code": "app/Models/Bill.php src/index.ts app/Readme/A.php config.php res/composer.json.php",
}


@pytest.mark.parametrize("kind", PATHS)
def test_a_path_has_a_source_type(kind: str) -> None:
    paths = PATHS[kind].split()
    assert {path: get_type_of_path(path) for path in paths} == dict.fromkeys(paths, kind)


@pytest.mark.parametrize(
    "path", ["docs/" * 200_000, "/.cursor/rules" * 100_000 + ".mdc" + "x"], ids=[1, 2]
)
def test_long_paths_cost_little(path: str) -> None:
    assert get_type_of_path(path) == "code"
