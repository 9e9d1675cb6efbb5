"""The plain text of a project: replacing it, refusals, and its deletion."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from rag_assets.common.errors import VersionChanged
from rag_assets.pipeline.erasure import rescan_tenant
from rag_assets.privacy.masker import get_masker
from rag_assets.privacy.secrets import scanner
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.team_guidelines.errors import TextRefused, VersionMissing
from rag_assets.systems.team_guidelines.texts import (
    ANY_VERSION,
    MAX_CHARACTERS,
    GuidelineText,
    require_usable,
)
from tests.integration.systems.team_guidelines.conftest import KEY, Guidelines
from tests.newer_rules import find_also


@pytest.fixture
def record(guidelines: Guidelines, request: pytest.FixtureRequest) -> TenantRecord:
    return guidelines.put("texts", request.node.name)


def test_a_text_is_replaced_by_whoever_knows_it(
    guidelines: Guidelines, record: TenantRecord
) -> None:
    texts = guidelines.texts
    assert texts.get(record.id) is None
    with pytest.raises(VersionChanged):
        texts.put(record.ref, "none yet", by="ada", replaces={ANY_VERSION})
    first = texts.put(record.ref, "first", by="ada", replaces=None)
    assert texts.get(record.id) == first
    with pytest.raises(VersionMissing):
        texts.put(record.ref, "second", by="eve", replaces=None)
    second = texts.put(record.ref, "second", by="eve", replaces={"other", first.version})
    assert (second.text, second.updated_by) == ("second", "eve")
    assert second.updated_at > first.updated_at
    with pytest.raises(VersionChanged):
        texts.put(record.ref, "third", by="ada", replaces={first.version})
    assert texts.put(record.ref, "second", by="ada", replaces={second.version}) == second
    back = texts.put(record.ref, "first", by="ada", replaces={ANY_VERSION})
    # The same words as before are another version.
    assert back.version != first.version
    assert texts.put(record.ref, "", by="ada", replaces={back.version}).is_blank


def test_of_several_at_once_one_replaces_the_text(
    guidelines: Guidelines, record: TenantRecord
) -> None:
    def put(case: tuple[str, set[str] | None]) -> GuidelineText | None:
        try:
            return guidelines.texts.put(record.ref, case[0], by="ada", replaces=case[1])
        except (VersionChanged, VersionMissing):
            return None

    for turn in range(3):
        present = guidelines.texts.get(record.id)
        replaces = None if present is None else {present.version}
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(put, [(f"{turn} {number}", replaces) for number in range(8)]))
        [won] = {each.version: each for each in done if each}.values()
        assert guidelines.texts.get(record.id) == won


def test_a_text_with_a_credential_is_refused_with_its_line_and_rule(
    guidelines: Guidelines,
) -> None:
    masker = get_masker(guidelines.driver.session.settings.local)
    require_usable("x" * MAX_CHARACTERS, masker)
    require_usable("", masker)
    with pytest.raises(TextRefused, match="100,001 characters"):
        require_usable("x" * (MAX_CHARACTERS + 1), masker)
    for unstorable in ("a\x00b", "a\ud800b"):
        with pytest.raises(TextRefused, match="NUL character"):
            require_usable(unstorable, masker)
    with pytest.raises(TextRefused) as refused:
        require_usable(f"# Set-up\n\nUse OPENAI_API_KEY={KEY} in tests.\n", masker)
    [problem] = refused.value.problems
    assert problem.startswith("line 3: a credential (rule ")
    assert KEY not in refused.value.advice


def test_new_rules_mask_what_they_find_in_a_text(
    guidelines: Guidelines, record: TenantRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = guidelines.texts.put(record.ref, "Say zebra-4471.", by="ada", replaces=None)
    try:
        find_also("zebra-4471", monkeypatch)
        with guidelines.driver.locked(record.id) as ctx:
            assert rescan_tenant(ctx, by="a test") is not None
    finally:
        monkeypatch.undo()
        scanner.rules_version.cache_clear()
    after = guidelines.texts.get(record.id)
    assert after is not None
    assert after.text == "Say **********."
    assert after.version != before.version


def test_a_text_goes_with_its_project_and_leaves_no_former_one(guidelines: Guidelines) -> None:
    record = guidelines.put("texts", "leaving")
    for words in ("the first words", "the second words"):
        guidelines.set_text(record, words)
    with psycopg.connect(
        guidelines.installation.environment["RAG_ASSETS_DATABASE_URL"]
    ) as connection:
        rows = connection.execute(
            "SELECT text FROM rag_catalog.guideline_texts WHERE tenant = %s", [record.id]
        ).fetchall()
        assert rows == [("the second words",)]
    removed = guidelines.installation.command("projects", "remove", "texts", "leaving", "--yes")
    assert removed.code == 0, removed.err
    assert guidelines.texts.get(record.id) is None
    again = guidelines.put("texts", "leaving")
    assert again.id == record.id
    assert guidelines.texts.get(again.id) is None
