from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from rag_assets.tenants.reconciliation import plan_tenants


@dataclass
class Record:
    id: str
    state: str = "ACTIVE"
    origin: str = "file"
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def configured(self) -> dict[str, Any]:
        return self.config

    @property
    def configured_state(self) -> str:
        return self.state


def known(*records: Record) -> dict[str, Record]:
    return {record.id: record for record in records}


CONFIG = {"id": "a"}


def test_equal_tenants_are_left_alone() -> None:
    changes = plan_tenants({"a": CONFIG}, known(Record("a", config=CONFIG)))
    assert (changes.put, changes.disable) == ((), ())
    off = {"id": "a", "enabled": False}
    changes = plan_tenants({"a": off}, known(Record("a", "DISABLED", config=off)))
    assert (changes.put, changes.disable) == ((), ())


@pytest.mark.parametrize(
    "record",
    [
        None,
        Record("a", config={"id": "a", "retention_days": 3}),
        Record("a", "DISABLED", config=CONFIG),
    ],
    ids=["new", "changed", "listed again"],
)
def test_tenants_of_the_file_are_put(record: Record | None) -> None:
    changes = plan_tenants({"a": CONFIG}, known(record) if record else {})
    assert changes.put == ((CONFIG, True),)


def test_tenants_made_over_the_api_are_left_alone() -> None:
    changes = plan_tenants({"a": CONFIG}, known(Record("a", origin="api", config={"id": "b"})))
    assert (changes.put, changes.disable) == ((), ())


def test_tenants_with_enabled_false_are_put_disabled() -> None:
    off = {"id": "a", "enabled": False}
    assert plan_tenants({"a": off}, {}).put == ((off, False),)


def test_tenants_missing_from_the_file_are_disabled_and_no_more() -> None:
    records = known(
        Record("a"),
        Record("api", origin="api"),
        Record("off", "DISABLED"),
        Record("going", "REMOVING"),
    )
    changes = plan_tenants({}, records)
    assert (changes.put, changes.disable) == ((), ("a",))


def test_a_tenant_under_removal_is_left_alone() -> None:
    changes = plan_tenants({"a": CONFIG}, known(Record("a", "REMOVING")))
    assert (changes.put, changes.disable) == ((), ())
