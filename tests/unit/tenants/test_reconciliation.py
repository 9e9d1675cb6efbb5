from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from rag_assets.tenants.file import ListedTenants
from rag_assets.tenants.reconciliation import TenantChanges, plan_tenants, split_conflicts

HOME, OTHER = UUID(int=1), UUID(int=2)


@dataclass
class Record:
    id: str
    state: str = "ACTIVE"
    origin: str = "file"
    config: dict[str, Any] = field(default_factory=dict)
    home: UUID | None = HOME

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
    changes = plan_tenants({"a": CONFIG}, known(Record("a", config=CONFIG)), HOME)
    assert (changes.put, changes.disable) == ((), ())
    off = {"id": "a", "enabled": False}
    changes = plan_tenants({"a": off}, known(Record("a", "DISABLED", config=off)), HOME)
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
    changes = plan_tenants({"a": CONFIG}, known(record) if record else {}, HOME)
    assert changes.put == ((CONFIG, True),)


def test_tenants_made_over_the_api_are_left_alone() -> None:
    listed = known(Record("a", origin="api", config={"id": "b"}))
    changes = plan_tenants({"a": CONFIG}, listed, HOME)
    assert (changes.put, changes.disable) == ((), ())


def test_tenants_with_enabled_false_are_put_disabled() -> None:
    off = {"id": "a", "enabled": False}
    assert plan_tenants({"a": off}, {}, HOME).put == ((off, False),)


def test_tenants_missing_from_the_file_are_disabled_and_no_more() -> None:
    off, going = Record("off", "DISABLED"), Record("going", "REMOVING")
    records = known(Record("a"), Record("api", origin="api"), off, going)
    changes = plan_tenants({}, records, HOME)
    assert (changes.put, changes.disable) == ((), ("a",))


def test_a_tenant_under_removal_is_left_alone() -> None:
    changes = plan_tenants({"a": CONFIG}, known(Record("a", "REMOVING")), HOME)
    assert (changes.put, changes.disable) == ((), ())


def test_a_list_changes_its_own_tenants_alone() -> None:
    records = known(
        Record("a", origin="file"), Record("b", origin="agents"), Record("c", origin="agents")
    )
    changes = plan_tenants({"a": CONFIG}, records, HOME, origin="agents", kept={"c"})
    assert (changes.put, changes.disable) == ((), ("b",))
    changes = plan_tenants({"b": {"id": "b"}}, records, HOME, over={"agents"})
    assert (changes.put, changes.disable) == ((({"id": "b"}, True),), ("a",))


def test_other_tenants_go_before_those_of_a_list() -> None:
    records = known(
        Record("a", origin="agents"), Record("b", origin="api"), Record("c", "DISABLED")
    )
    configs = {id_: {"id": id_} for id_ in "abcde"}
    listed = ListedTenants(configs, {"b": "agents.yaml:3"})
    usable, problems = split_conflicts("agents", listed, {"e"}, records)
    assert set(usable) == {"a", "d"}
    said = [problem.advice for problem in problems]
    reason = "agents.yaml:3: 'b' was not created as a tenant: a tenant with the same id"
    assert said[0].startswith(reason)
    assert "was created over the API" in said[0]
    assert "was in tenants.yaml" in said[1]
    assert "tenants.yaml lists a tenant with the same id" in said[2]


def test_a_tenant_of_another_home_is_neither_changed_nor_disabled() -> None:
    other = Record("a", config={"id": "a", "retention_days": 3}, home=OTHER)
    assert plan_tenants({}, known(other), HOME) == TenantChanges((), ())
    assert plan_tenants({"a": CONFIG}, known(other), HOME) == TenantChanges((), (), ("a",))


def test_a_tenant_that_another_home_lists_alike_is_left_alone() -> None:
    other = Record("a", config=CONFIG, home=OTHER)
    assert plan_tenants({"a": CONFIG}, known(other), HOME) == TenantChanges((), ())


def test_a_tenant_of_an_earlier_version_belongs_to_the_home_that_lists_it() -> None:
    unclaimed = Record("a", config=CONFIG, home=None)
    assert plan_tenants({"a": CONFIG}, known(unclaimed), HOME).put == ((CONFIG, True),)
    assert plan_tenants({}, known(unclaimed), HOME).disable == ()
