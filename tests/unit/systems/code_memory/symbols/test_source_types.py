"""Source types that follow from paths."""

import pytest

from rag_assets.systems.code_memory.symbols.source_types import get_type_of_path

PLACES = {
    "README.md": "readme",
    "packages/ui/Readme.rst": "readme",
    "README": "readme",
    "docs/setup.md": "doc",
    "docs/adr/0001-money.md": "adr",
    "docs/architecture/decisions/0002-x.md": "adr",
    "adr/3.md": "adr",
    "docs/KNOWN_BUGS.md": "known_bug",
    "known-issues.md": "known_bug",
    ".cursor/rules/style.mdc": "cursor_rule",
    "apps/web/.cursor/rules/deep/style.mdc": "cursor_rule",
    ".claude/commands/report.md": "doc",
    ".claude/agents/reviewer.md": "doc",
    ".claude/rules/api/style.md": "claude_rule",
    ".claude/CLAUDE.md": "claude_rule",
    "packages/ui/AGENTS.md": "claude_rule",
    "CLAUDE.md": "claude_rule",
    "composer.json": "package",
    "ios/Podfile": "package",
    "Package.swift": "package",
    "go.mod": "package",
    "requirements-dev.txt": "package",
    "config/services.php": "config",
    "shop/settings.py": "config",
    ".env.example": "config",
    "database/migrations/2024_01_01_create.php": "migration",
    "modules/x/database/migrations/2024.php": "migration",
    "app/Models/Invoice.php": "code",
    "src/index.ts": "code",
    "CHANGELOG.md": "doc",
    "app/Readme/Parser.php": "code",
    "config.php": "code",
    "resources/composer.json.php": "code",
    "\udcff/README.md": "readme",
}


@pytest.mark.parametrize(("path", "kind"), PLACES.items(), ids=range(len(PLACES)))
def test_a_path_tells_what_a_file_is(path: str, kind: str) -> None:
    assert get_type_of_path(path) == kind


@pytest.mark.parametrize(
    "path", ["docs/" * 200_000, "/.cursor/rules" * 100_000 + ".mdc" + "x"], ids=[1, 2]
)
def test_long_paths_cost_little(path: str) -> None:
    assert get_type_of_path(path) == "code"
