import json
from typing import Any

import dagster as dg
import pytest

from rag_assets.cli.runs import convert_metadata, describe_root_error

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
