from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from rag_assets.common.errors import NoRecordsSource
from rag_assets.common.invalid_values import InvalidFields
from rag_assets.records.text_records import RecordBody, find_records_source
from rag_assets.tenants.model import Tenant


def tenant(*records: str) -> Tenant:
    sources = [{"name": name, "type": "records"} for name in records]
    files = {"name": "files", "root": "/nowhere"}
    return Tenant.from_config({"id": "acme", "sources": [files, *sources]})


def key(**changes: Any) -> str:
    return RecordBody(**{"text": "a", **changes}).build_record("pushed", "page", "1").key


def test_the_only_source_of_records_need_not_be_named() -> None:
    assert find_records_source(tenant("pushed"), None).name == "pushed"
    assert find_records_source(tenant("one", "two"), "two").name == "two"


@pytest.mark.parametrize(
    ("records", "wanted", "hint"),
    [
        ([], None, "type: records"),
        ([], "files", "type: records"),
        (["one", "two"], None, "one, two"),
        (["one"], "files", "one"),
    ],
)
def test_an_ambiguous_source_is_an_error(records: list[str], wanted: str | None, hint: str) -> None:
    with pytest.raises(NoRecordsSource) as refused:
        find_records_source(tenant(*records), wanted)
    assert hint in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("said", "secret"),
    [(True, True), ("true", True), (1, True), ("Yes", True), (False, False), ("no", False)],
)
def test_every_true_value_marks_a_secret_record(said: Any, secret: bool) -> None:
    assert RecordBody(text="a", metadata={"is_secret": said}).is_secret is secret
    assert not RecordBody(text="a").is_secret


def test_a_record_is_another_where_anything_but_its_date_is() -> None:
    changes: list[dict[str, Any]] = [
        *({"text": "b"}, {"media_type": "text/plain"}, {"title": "a"}, {"uri": "pushed/a"}),
        *({"scope": "a"}, {"tags": ["a"]}),
        *({"metadata": {"a": 1}}, {"metadata": {"a": True}}, {"metadata": {"a": "1"}}),
    ]
    assert len({key(), *(key(**change) for change in changes)}) == len(changes) + 1
    assert key(updated_at=datetime(2026, 1, 1, tzinfo=UTC)) == key()
    assert key(metadata={"a": 1, "b": 2}) == key(metadata={"b": 2, "a": 1})


@pytest.mark.parametrize(
    "metadata", [{"a": float("nan")}, {"a": 2**60}, {"a": "x" * 2_001}, {"": "x"}, {"a": ["x", 1]}]
)
def test_metadata_that_an_index_cannot_hold_is_refused(metadata: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RecordBody(text="a", metadata=metadata)


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
def test_a_date_that_is_none_in_utc_is_refused(at: str) -> None:
    with pytest.raises(ValidationError, match="between 0001-01-02 and 9999-12-30"):
        RecordBody.model_validate({"text": "a", "updated_at": at})


@pytest.mark.parametrize(
    "uri",
    [
        "https://wiki.example/4711", "HTTP://wiki.example",
        "https://wiki.example:8443?page=1#a:b@c", "mailto:ada@example.org", "pushed/page/4711",
        "pushed/page/100%25",
    ],
)  # fmt: skip
def test_a_record_may_have_an_address_of_its_own(uri: str) -> None:
    record = RecordBody(text="a", uri=uri).build_record("pushed", "page", "1")
    assert record.source_metadata.uri == uri


@pytest.mark.parametrize(
    "uri",
    [
        *("files/a.md", "pushed", "pushed/", "pushed/../files/a.md", "pushed/%2e%2e/files/a.md"),
        *("pushed/..%5Cfiles", "/pushed/a", "//evil.example", "javascript:alert(1)"),
        *("pushed:alert(1)", "data:text/html,a", "file:///etc/passwd", "https:///wiki.example"),
        "https://bank.example@evil.example/",
        "http://[::1",
        "https://wiki.example:99999/4711",
        "https://wiki.example:port/4711",
    ],
)
def test_and_none_of_another_source_or_that_runs_something(uri: str) -> None:
    with pytest.raises(InvalidFields) as refused:
        RecordBody(text="a", uri=uri).build_record("pushed", "page", "1")
    assert refused.value.errors[0]["loc"] == ("body", "uri")
