"""Rules for files of several repositories: each repository's globs apply to its own files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller
from rag_assets.storage.index.model import Owner
from rag_assets.systems.code_memory import rules
from rag_assets.systems.code_memory.answers import CodeAnswers
from tests.driving import Driver
from tests.installation import FAST, Installation

TENANT = "rules-of-two"
INVOICE = "<?php\nnamespace App\\Models;\nclass Invoice {}\n"
FILES = {
    "shop": {
        "app/Models/Invoice.php": INVOICE,
        "api/legacy.php": "<?php\nfunction legacy() {}\n",
        ".cursor/rules/models.mdc": "---\nglobs: app/**/*.php\n---\n# Shop models\n\nBe fat.\n",
        "CLAUDE.md": "# Shop rules\n\nBe kind.\n",
        "web/.cursor/rules/views.mdc": "---\nglobs: src/*.php\n---\n# Views\n\nBe plain.\n",
        "web/.claude/CLAUDE.md": "# Web\n\nBe quick.\n",
        "docs/adr/0001.md": "# Numbers\n\n`App\\Models\\Invoice` counts up.\n",
        "docs/guide.md": "# Guide\n\nNothing of use.\n",
    },
    "api": {
        "src/index.php": "<?php\nfunction main() {}\n",
        ".cursor/rules/every.mdc": "---\nglobs: '**/*.php'\n---\n# Api PHP\n\nBe thin.\n",
        "docs/adr/0001.md": "# Short names\n\n`Invoice` is of this repository.\n",
    },
    "vault": {"src/index.php": INVOICE, "CLAUDE.md": "# Vault rules\n\nBe silent.\n"},
}
CLOSED: Mapping[str, Mapping[str, Any]] = {"vault": {"scope": "vault"}}


@pytest.fixture(scope="module")
def about(shared_installation: Installation, driver: Driver) -> CodeAnswers:
    sources = shared_installation.home.parent / "sources" / TENANT
    for repository, files in FILES.items():
        for path, text in files.items():
            (sources / repository / path).parent.mkdir(parents=True, exist_ok=True)
            (sources / repository / path).write_text(text)
    include = ["**/*.php", "**/*.md", "**/*.mdc", "**/.claude/*.md"]
    shared_installation.add_tenant(
        TENANT,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=TENANT,
        sources=[
            {"name": name, "root": str(sources / name), "include": include, **CLOSED.get(name, {})}
            for name in FILES
        ],
    )
    driver.sync(TENANT)
    session = driver.session
    record = session.catalog.tenants.get(TENANT)
    reader = DocumentReader(session.catalog, session.store)
    return CodeAnswers(reader, session.embedders.tenant(record), Caller())


def titles(answer_text: str) -> list[str]:
    return [
        line.partition(":1  ")[0]
        for line in answer_text.split("\n")
        if line and not line.startswith(" ")
    ]


@pytest.mark.parametrize(
    "path", ["shop/app/Models/Invoice.php", "app/Models/Invoice.php", "/app/Models/Invoice.php"]
)
def test_the_rules_of_a_files_own_repository_come_first_and_others_do_not(
    about: CodeAnswers, path: str
) -> None:
    answer_text = about.rules_for([path])
    assert titles(answer_text) == [
        "shop/.cursor/rules/models.mdc",
        "shop/CLAUDE.md",
        "shop/docs/adr/0001.md",
    ]
    assert f"(app/**/*.php; for {path})" in answer_text


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("shop/app/Models/Quote.php", ["shop/.cursor/rules/models.mdc", "shop/CLAUDE.md"]),
        ("api/src/new.php", ["api/.cursor/rules/every.mdc"]),
        ("api/src/index.php", ["api/.cursor/rules/every.mdc"]),
        (
            "shop/web/src/new.php",
            ["shop/web/.cursor/rules/views.mdc", "shop/CLAUDE.md", "shop/web/.claude/CLAUDE.md"],
        ),
        ("shop/web/new.php", ["shop/CLAUDE.md", "shop/web/.claude/CLAUDE.md"]),
        ("shop/src/new.php", ["shop/CLAUDE.md"]),
        # This path exists, so it does not refer to the other repository.
        ("api/legacy.php", ["shop/CLAUDE.md"]),
        # The repository of a missing file is unknown.
        (
            "app/Models/Quote.php",
            ["shop/.cursor/rules/models.mdc", "api/.cursor/rules/every.mdc", "shop/CLAUDE.md"],
        ),
    ],
)
def test_a_path_that_hits_show_is_one_of_its_repository_though_it_is_new(
    about: CodeAnswers, path: str, expected: list[str]
) -> None:
    assert sorted(titles(about.rules_for([path]))) == sorted(expected)


@pytest.mark.parametrize("path", ["New.php", "src/index.php"])
def test_a_guess_does_not_tell_that_there_is_a_repository(about: CodeAnswers, path: str) -> None:
    guessed, unknown = about.rules_for([f"vault/{path}"]), about.rules_for([f"other/{path}"])
    assert guessed == unknown.replace("other/", "vault/")
    assert "Be thin." in guessed
    assert titles(about.rules_for(["shop/New.php"])) == ["shop/CLAUDE.md"]


def test_rules_are_told_where_there_are_more_documents_than_are_read(
    about: CodeAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MAX_DOCUMENTS", 2)
    answer_text = about.rules_for(["shop/app/Models/Invoice.php"])
    assert titles(answer_text)[:2] == ["shop/.cursor/rules/models.mdc", "shop/CLAUDE.md"]
    assert answer_text.endswith("this may lack something: 1 more document not read")
    assert "not read" not in about.rules_for(["shop/app/Models/Quote.php"])


def test_rules_whose_globs_are_not_all_known_are_counted_and_not_told_as_rules_for_all(
    about: CodeAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    # There are three rules with one glob each; the globs of the last two may be truncated.
    monkeypatch.setattr(rules, "MAX_EDGES", 2)
    monkeypatch.setattr("rag_assets.systems.code_memory.retrieval.view.MAX_EDGES", 2)
    answer_text = about.rules_for(["shop/app/Models/Quote.php"])
    assert "this may lack something: 4 more documents not read" in answer_text
    assert "always" not in answer_text


def test_a_document_whose_text_is_withheld_does_not_take_the_others_along(
    about: CodeAnswers, driver: Driver
) -> None:
    session = driver.session
    store, serving = session.store, session.catalog.generations.serving(TENANT)
    assert serving is not None
    record = session.catalog.tenants.get(TENANT)
    owner = Owner(record.id, record.incarnation, serving.number, serving.digest_key)
    [lost] = [
        one.document_id
        for one in session.catalog.documents.all(TENANT)
        if one.uri == "shop/.cursor/rules/models.mdc"
    ]
    store.entries.delete_other_versions(serving.index_name, owner, {lost: None}, guard=lambda: None)
    answer_text = about.rules_for(["shop/app/Models/Invoice.php"])
    assert titles(answer_text)[0] == "shop/.cursor/rules/models.mdc"
    assert "Be fat." not in answer_text
    assert "Be kind." in answer_text
