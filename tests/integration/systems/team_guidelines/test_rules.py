"""Rules: documents that always apply, or apply to files, besides the passages found."""

from __future__ import annotations

import pytest

from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.systems.team_guidelines.texts import Rule, find_files, matches_any_file, parse_rule
from tests.embedding_server import Status
from tests.integration.systems.team_guidelines.conftest import Guidelines

FOUND = "# Locators\n\nUse data-testid attributes, cosine 0.90.\n"
ALWAYS = "---\nalways: true\n---\n# Language\n\nWrite British English, cosine 0.10.\n"
TESTING = """---
paths: ["tests/**", "*.spec.ts"]
---
# Testing

Each test has one reason to fail, cosine 0.10.
"""


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("# A\n", Rule()),
        (ALWAYS, Rule(is_always=True)),
        (TESTING, Rule(paths=("tests/**", "*.spec.ts"))),
        ("---\npaths: src/*.py, docs\n---\nx", Rule(paths=("src/*.py", "docs"))),
        ("---\nalways: 'yes'\npaths: 5\n---\nx", Rule()),
        ("---\nalways: [\n---\nx", Rule()),
        ("---\n- always\n---\nx", Rule()),
        ("text\n---\nalways: true\n---\n", Rule()),
    ],
)
def test_front_matter_states_a_rule(text: str, rule: Rule) -> None:
    assert parse_rule(ParsedText(text, ())) == rule


@pytest.mark.parametrize(
    ("globs", "file", "is_matched"),
    [
        (["tests/**"], "tests/unit/test_invoice.py", True),
        (["tests"], "tests/unit/test_invoice.py", True),
        (["*.spec.ts"], "web/login.spec.ts", True),
        (["src/*.py"], "src/deep/a.py", False),
        (["src/*.py"], "./src/a.py", True),
        (["["], "a", False),
        ([], "a", False),
    ],
)
def test_a_glob_matches_files_and_what_lies_in_folders(
    globs: list[str], file: str, is_matched: bool
) -> None:
    assert matches_any_file(globs, [file]) is is_matched


def test_a_task_names_files() -> None:
    task = (
        "Write tests/test_invoice.py for src/invoice_parser.py, as in v1.2 of https://a.example/b"
    )
    assert find_files(task, ["web/a.ts"])[:3] == (
        "web/a.ts",
        "tests/test_invoice.py",
        "src/invoice_parser.py",
    )


def test_rules_stand_next_to_what_is_found(guidelines: Guidelines) -> None:
    record = guidelines.project("rules", "web", found=FOUND, always=ALWAYS, testing=TESTING)

    def chunks_of(task: str, **given: object) -> list[tuple[str, str | None]]:
        context = guidelines.context(record, task, **given)
        return [(chunk.file_name, chunk.rule) for chunk in context.chunks]

    always = ("always.md", "always")
    assert chunks_of("locators") == [always, ("found.md", None)]
    testing = ("testing.md", "path")
    paths = ["tests/test_invoice.py"]
    assert chunks_of("a unit test", paths=paths) == [always, testing, ("found.md", None)]
    assert chunks_of("Extend web/login.spec.ts") == [always, testing, ("found.md", None)]
    # At most half of the budget is for rules; without a provider, only the found passages are
    # missing.
    assert guidelines.context(record, "locators", token_budget=60).tokens <= 60
    guidelines.server.always = Status(404, reason="model_not_found")
    context = guidelines.context(record, "another task")
    assert (context.source, context.reason) == ("documents", "embedder-unavailable")
    assert [chunk.rule for chunk in context.chunks] == ["always"]
    guidelines.set_text(record, "Plain conventions.")
    section = guidelines.context(record, "a third task").section
    assert section.index("British English") < section.index("Plain conventions.")
    guidelines.server.always = None
    # A changed front matter applies after the next sync; disabled and deleted documents no longer
    # apply.
    [upload] = [u for u in guidelines.catalog.uploads.all(record.id) if u.file_name == "always.md"]
    guidelines.catalog.uploads.set_enabled(record.ref, upload.id, "ada", enabled=False)
    assert chunks_of("locators again") == [("found.md", None)]
    removed = guidelines.installation.command("guidelines", "delete", "rules", "web", upload.id)
    assert removed.code == 0, removed.err
    with guidelines.catalog.database.begin() as connection:
        left = connection.exec_driver_sql(
            "SELECT count(*) FROM rag_catalog.guideline_rules WHERE document_id = %s", (upload.id,)
        ).scalar()
    assert left == 0
