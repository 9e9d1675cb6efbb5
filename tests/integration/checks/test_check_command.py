"""`check --json` prints valid JSON for every kind of failure."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tests.integration.checks.faults import CheckedTenant


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def printed_checks(tenant: CheckedTenant) -> dict[str, Any]:
    result = tenant.installation.command("check", tenant.name, "--json")
    assert (result.code, "Traceback" in result.err) == (1, False), result.err
    answer: dict[str, Any] = json.loads(result.out, parse_constant=refuse)
    assert (answer["tenant"], answer["passed"]) == (tenant.name, False)
    return {f"{found['asset']}.{found['check']}": found for found in answer["checks"]}


def test_faults_of_every_kind_are_printed_as_json(tenant: CheckedTenant) -> None:
    id_, fields = min(tenant.entries("leave.md").items())
    tenant.write_entry(id_, {**fields, "text": "Nobody need say anything.", "tenant": "another"})
    tenant.change_vector("oncall.md", lambda vector: np.full_like(vector, np.nan))
    checks = printed_checks(tenant)

    failing = {name for name, check in checks.items() if not check["passed"]}
    assert failing >= {"search_index.drift", "search_index.isolation", "embeddings.dimensions"}
    for name in failing:
        metadata = checks[name]["metadata"]
        assert metadata["offenders"] == len(metadata["first offenders"]) >= 1, name
        assert all(row["fault"] for row in metadata["first offenders"]), name
        compared = metadata["expected and actual"]
        assert {"what", "expected", "actual"} == set(compared[0]), name
        assert f"`rag-assets sync {tenant.name}" in checks[name]["description"], name
    [offender] = checks["search_index.isolation"]["metadata"]["first offenders"]
    assert offender["fault"] == "has the id of tenant 'another'"
    assert "Nobody need say" not in json.dumps(checks)
