"""Verdicts as Dagster's check results."""

from __future__ import annotations

import dagster as dg

from rag_assets.checks.results import to_check_result
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.common.formatting import format_count

KEY = dg.AssetCheckKey(dg.AssetKey("chunks"), "secrets")


def test_counted() -> None:
    assert format_count(1, "entry", "entries") == "1 entry"
    assert format_count(2_000, "entry", "entries") == "2,000 entries"
    assert format_count(0, "chunk") == "0 chunks"


def test_a_result_shows_expected_against_actual_and_fifty_offenders() -> None:
    verdict = Verdict(
        passed=False,
        description="60 wrong",
        compared=(Compared("wrong", 0, 60), Compared("uuid", "a", None)),
        columns=("document", "fault"),
        offenders=tuple((f"files/{n}.md", n) for n in range(60)),
        severity="WARN",
        notes={"data docs": "/data-docs/team/chunks/index.html", "rows": 3},
    )
    result = to_check_result(verdict, KEY)
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    metadata = result.metadata
    compared = metadata["expected and actual"]
    assert isinstance(compared, dg.TableMetadataValue)
    assert [dict(record.data) for record in compared.records] == [
        {"what": "wrong", "expected": "0", "actual": "60"},
        {"what": "uuid", "expected": "a", "actual": "none"},
    ]
    offenders = metadata["first offenders"]
    assert isinstance(offenders, dg.TableMetadataValue)
    assert len(offenders.records) == 50
    assert metadata["offenders"] == dg.MetadataValue.int(60)
    assert metadata["data docs"] == dg.MetadataValue.url("/data-docs/team/chunks/index.html")
    assert metadata["rows"] == dg.MetadataValue.int(3)


def test_a_failure_is_told_with_the_command_that_mends_it() -> None:
    mend = "`rag-assets sync TENANT --repair` restores it"
    verdict = Verdict(passed=False, description="files/TENANT.md is gone", compared=(), mend=mend)
    told = verdict.for_tenant("acme")
    expected = "files/TENANT.md is gone; `rag-assets sync acme --repair` restores it"
    assert told.description == told.for_tenant("acme").description == expected
    shown = to_check_result(told, KEY).metadata["remedy"]
    assert shown == dg.MetadataValue.text("`rag-assets sync acme --repair` restores it")
    passed = Verdict(passed=True, description="all is well", compared=(), mend=mend).for_tenant(
        "acme"
    )
    assert passed.description == "all is well"
    assert "remedy" not in to_check_result(passed, KEY).metadata
