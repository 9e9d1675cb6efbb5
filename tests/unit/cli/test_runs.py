import json
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from rag_assets.cli.runs import convert_metadata, describe_root_error
from rag_assets.common.errors import ListingFailed

NO_NUMBERS = [float("nan"), float("inf"), float("-inf")]
TABLE = dg.MetadataValue.table(
    records=[dg.TableRecord({"what": "norm", "actual": 1.5, "more": None})],
    schema=dg.TableSchema([dg.TableColumn("what")]),
)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (dg.MetadataValue.int(3), 3),
        (dg.MetadataValue.float(0.5), 0.5),
        (dg.MetadataValue.bool(True), True),
        (dg.MetadataValue.text("a"), "a"),
        (dg.MetadataValue.md("**a**"), "**a**"),
        (dg.MetadataValue.url("/documents/a"), "/documents/a"),
        (dg.MetadataValue.path("/a/b"), "/a/b"),
        (dg.MetadataValue.json({"a": [1, {"b": None}]}), {"a": [1, {"b": None}]}),
        (dg.MetadataValue.null(), None),
        (dg.MetadataValue.timestamp(12.0), 12.0),
        (TABLE, [{"what": "norm", "actual": 1.5, "more": None}]),
        (dg.MetadataValue.json({"a": NO_NUMBERS}), {"a": ["nan", "inf", "-inf"]}),
    ],
)
def test_a_value_is_kept_as_json_has_it(value: dg.MetadataValue[Any], plain: object) -> None:
    found = convert_metadata({"title": value})
    assert found == {"title": plain}
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_values_without_json_form_are_text() -> None:
    asset = dg.MetadataValue.asset(dg.AssetKey(["chunks"]))
    schema = dg.MetadataValue.table_schema(dg.TableSchema([dg.TableColumn("what")]))
    found = convert_metadata({"asset": asset, "schema": schema})
    assert "chunks" in json.dumps(found, allow_nan=False)
    assert "what" in json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (KeyError("a1b2"), "unexpected KeyError: 'a1b2'"),
        (dg.Failure("the source is empty"), "the source is empty"),
        (KeyError(), "unexpected KeyError: KeyError"),
    ],
)
def test_an_unexpected_error_of_a_step_is_shown_with_its_type(raised: Exception, text: str) -> None:
    @dg.op
    def fails() -> None:
        raise raised

    @dg.job
    def one() -> None:
        fails()

    result = one.execute_in_process(raise_on_error=False)
    [event] = [event for event in result.all_events if event.is_step_failure]
    assert describe_root_error(event.step_failure_data.error) == text


LOCKED = "tenant 'a' is locked by run of sync (pid 3, host: b); wait until it ends"


class StoreError(Exception):
    pass


@pytest.mark.parametrize("kind", [dg.Failure, ListingFailed, StoreError])
@pytest.mark.parametrize("message", [LOCKED, "Postgres does not answer: timeout: 3 s"])
def test_describe_root_error_of_resource_keeps_colons_in_message(
    kind: Callable[[str], Exception], message: str
) -> None:
    @dg.resource
    def lock() -> None:
        raise kind(message)

    @dg.op(required_resource_keys={"lock"})
    def work() -> None: ...

    @dg.job(resource_defs={"lock": lock})
    def one() -> None:
        work()

    result = one.execute_in_process(raise_on_error=False)
    errors = [getattr(event.event_specific_data, "error", None) for event in result.all_events]
    assert {describe_root_error(error) for error in errors if error} == {message}
