import json
from datetime import UTC, datetime
from uuid import UUID

import pytest

from rag_assets.pipeline.mark_keeper import KeptMark
from rag_assets.storage.catalog.journal.security_changes import (
    Mark,
    SecurityChange,
    format_changes,
    parse_changes,
)


@pytest.mark.parametrize(
    ("kept", "catalog", "is_ahead"),
    [
        (Mark(6, "b"), Mark(5, "a"), True),
        (Mark(5, "a"), Mark(6, "b"), False),
        (Mark(5, "a"), Mark(5, "a"), False),
        # As many changes, of which the last one is another.
        (Mark(5, "a"), Mark(5, "b"), True),
        # Of a version that knew no tags.
        (Mark(5), Mark(5, "b"), False),
        (Mark(5, "a"), Mark(5), False),
        (Mark(6), Mark(5, "a"), True),
    ],
)
def test_a_mark_is_ahead_of_an_older_catalog(kept: Mark, catalog: Mark, is_ahead: bool) -> None:
    assert KeptMark(kept).is_ahead_of(catalog) is is_ahead


def test_a_kept_mark_is_read_back_also_that_of_an_earlier_version() -> None:
    kept = KeptMark(Mark(7, "a"), set_back=True)
    assert KeptMark.parse(kept.as_json()) == kept
    earlier = json.dumps({"mark": 7, "set_back": False})
    assert KeptMark.parse(earlier) == KeptMark(Mark(7))


@pytest.mark.parametrize("text", [None, "", "{", "[]", "7", "{}", '{"mark": "x", "set_back": 1}'])
def test_a_damaged_mark_is_none(text: str | None) -> None:
    assert KeptMark.parse(text) is None


def test_a_journal_is_read_back_and_a_damaged_one_is_empty() -> None:
    at = datetime(2026, 11, 26, 10, 4, tzinfo=UTC)
    of_tenant = SecurityChange(UUID(int=1), 1, at, "acme", "scope_revoked", "board", ("ada",))
    of_all = SecurityChange(UUID(int=2), 2, at, None, "restore_accepted", "")
    assert parse_changes(format_changes([of_tenant, of_all])) == [of_tenant, of_all]
    for text in ("", "{", "[]", '{"changes": [{"kind": "purged"}]}'):
        assert parse_changes(text) == []
