"""Faults in the live index, injected in Elasticsearch, and the checks that find them."""

from __future__ import annotations

from typing import Any

import pytest

from rag_assets.storage.index.elasticsearch.mapping import build_index_body
from rag_assets.storage.index.model import IndexSpec, Owner, entry_id
from tests.integration.checks.faults import CheckedTenant, Outcome

DRIFT, ISOLATION = "search_index.drift", "search_index.isolation"
DIMENSIONS = "search_index.dimensions"


def check(tenant: CheckedTenant) -> Outcome:
    return tenant.check(tables=False)


def first_entry(tenant: CheckedTenant, file_name: str) -> tuple[str, dict[str, Any]]:
    return min(tenant.entries(file_name).items(), key=lambda item: item[1]["ordinal"])


def test_a_deleted_entry_fails_drift(tenant: CheckedTenant) -> None:
    tenant.delete_entry(first_entry(tenant, "leave.md")[0])
    outcome = check(tenant)
    assert outcome.failing == {DRIFT}
    assert outcome.checks[DRIFT].severity == "ERROR"
    expected, actual = outcome.compared(DRIFT)["generation 1: entries"]
    assert int(actual) == int(expected) - 1
    assert outcome.offenders(DRIFT) == [
        {"generation": "1", "fault": "missing entries", "which": "files/leave.md"}
    ]


def test_an_added_entry_fails_drift(tenant: CheckedTenant) -> None:
    _, fields = first_entry(tenant, "leave.md")
    added = entry_id(tenant.owner, fields["document_id"], fields["index_key"], 99)
    tenant.write_entry(added, {**fields, "ordinal": 99})
    outcome = check(tenant)
    assert outcome.failing == {DRIFT}
    assert outcome.offenders(DRIFT) == [
        {"generation": "1", "fault": "orphaned entry", "which": added}
    ]


def test_an_altered_entry_fails_drift(tenant: CheckedTenant) -> None:
    id_, fields = first_entry(tenant, "leave.md")
    tenant.write_entry(id_, {**fields, "text": "Nobody need say anything."})
    outcome = check(tenant)
    assert outcome.failing == {DRIFT}
    assert outcome.offenders(DRIFT) == [
        {"generation": "1", "fault": "altered entries", "which": "files/leave.md"}
    ]
    assert "Nobody need say" not in repr(outcome.checks[DRIFT])


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"tenant": "somebody-else"}, "has the id of tenant 'somebody-else'"),
        ({"access_scope": "board"}, "has the access scope 'board' instead of 'public'"),
        ({"incarnation": 999_999}, "belongs to an earlier tenant of this id"),
        ({"document_id": "f" * 32}, f"belongs to no document of the tenant ({'f' * 32})"),
        ({"index_key": "0" * 32}, "was not written for this tenant"),
    ],
    ids=["tenant", "scope", "incarnation", "document", "forged"],
)
def test_an_entry_that_is_not_the_tenants_fails_isolation(
    tenant: CheckedTenant, change: dict[str, Any], fault: str
) -> None:
    id_, fields = first_entry(tenant, "leave.md")
    tenant.write_entry(id_, {**fields, **change})
    outcome = check(tenant)
    # A changed entry is drift too.
    assert outcome.failing == {ISOLATION, DRIFT}
    assert outcome.checks[ISOLATION].severity == "ERROR"
    assert outcome.compared(ISOLATION)["entries that violate isolation"] == ("0", "1")
    [offender] = outcome.offenders(ISOLATION)
    assert (offender["where"], offender["entry"]) == (tenant.generation.index_name, id_)
    assert fault in offender["fault"]


def test_an_entry_routed_elsewhere_fails_isolation(tenant: CheckedTenant) -> None:
    id_, fields = first_entry(tenant, "leave.md")
    tenant.delete_entry(id_)
    tenant.write_entry(id_, fields, routing="somebody-else")
    outcome = check(tenant)
    assert outcome.failing == {ISOLATION, DRIFT}
    [offender] = outcome.offenders(ISOLATION)
    assert (offender["entry"], offender["fault"]) == (id_, "is routed to another tenant")


def test_an_entry_that_lost_its_vector_fails_dimensions(tenant: CheckedTenant) -> None:
    id_, fields = first_entry(tenant, "leave.md")
    # This is what a copy of entries by their _source does.
    tenant.write_entry(id_, {k: v for k, v in fields.items() if k != "vector"})
    outcome = check(tenant)
    assert outcome.failing == {DIMENSIONS, DRIFT}
    assert outcome.offenders(DRIFT)[0]["fault"] == "altered vectors"
    [offender] = outcome.offenders(DIMENSIONS)
    assert offender["fault"] == f"entry {id_} has no vector"


def test_an_index_that_is_gone_fails_drift_alone(tenant: CheckedTenant) -> None:
    tenant.elasticsearch.indices.delete(index=tenant.generation.index_name)
    outcome = check(tenant)
    assert outcome.failing == {DRIFT}
    assert outcome.compared(DRIFT)["generation 1: index"] == ("present", "missing")
    [offender] = outcome.offenders(DRIFT)
    assert offender["fault"] == "index is missing"


@pytest.mark.parametrize("dimensions", [384, 16])
def test_an_index_that_was_made_anew_fails_drift_alone(
    tenant: CheckedTenant, dimensions: int
) -> None:
    name = tenant.generation.index_name
    tenant.elasticsearch.indices.delete(index=name)
    tenant.elasticsearch.indices.create(index=name, **build_index_body(IndexSpec(dimensions)))
    outcome = check(tenant)
    assert outcome.failing == {DRIFT}
    assert outcome.offenders(DRIFT) == [
        {"generation": "1", "fault": "index was replaced", "which": name}
    ]


def test_an_alias_on_another_generation_fails_drift(tenant: CheckedTenant) -> None:
    other = Owner(tenant.owner.tenant, tenant.owner.incarnation, 7)
    tenant.ctx.store.indexes.publish(tenant.generation.index_name, other)
    outcome = check(tenant)
    assert outcome.failing == {DRIFT}
    [offender] = outcome.offenders(DRIFT)
    assert offender["fault"] == "alias shows wrong entries"


def test_an_alias_without_a_filter_fails_isolation(tenant: CheckedTenant) -> None:
    alias = tenant.ctx.store.indexes.view_name(tenant.name)
    tenant.elasticsearch.indices.put_alias(index=tenant.generation.index_name, name=alias)
    outcome = check(tenant)
    assert outcome.failing == {DRIFT, ISOLATION}
    [offender] = outcome.offenders(ISOLATION)
    assert (offender["where"], offender["fault"]) == (alias, "does not filter by tenant")


def test_an_alias_that_reaches_into_another_index_fails_isolation(tenant: CheckedTenant) -> None:
    beside = f"{tenant.generation.index_name}-beside"
    _, fields = first_entry(tenant, "leave.md")
    alias = tenant.ctx.store.indexes.view_name(tenant.name)
    tenant.elasticsearch.indices.create(index=beside, **build_index_body(IndexSpec(384)))
    try:
        tenant.elasticsearch.index(
            index=beside,
            document={**fields, "tenant": "neighbour"},
            routing="neighbour",
            refresh=True,
        )
        tenant.elasticsearch.indices.put_alias(index=beside, name=alias)
        outcome = check(tenant)
    finally:
        tenant.elasticsearch.indices.delete(index=beside)
    assert ISOLATION in outcome.failing
    faults = [offender["fault"] for offender in outcome.offenders(ISOLATION)]
    assert "shows the tenant 'neighbour'" in faults
