"""Converts verdicts of checks to Dagster's results."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from rag_assets.assets.metadata_values import build_table
from rag_assets.checks.verdict import Verdict

_MAX_OFFENDERS = 50
_OWN_PAGES = ("/documents/", "/data-docs/")


def to_check_result(verdict: Verdict, key: dg.AssetCheckKey) -> dg.AssetCheckResult:
    """Convert a verdict to the result of the check with this key."""
    metadata: dict[str, dg.MetadataValue] = {
        "expected and actual": build_table(
            {"what": "string", "expected": "string", "actual": "string"},
            [
                (row.what, _format_value(row.expected), _format_value(row.actual))
                for row in verdict.compared
            ],
        ),
        "offenders": dg.MetadataValue.int(len(verdict.offenders)),
    }
    if verdict.offenders:
        metadata["first offenders"] = _build_offender_table(verdict.columns, verdict.offenders)
    if verdict.mend and not verdict.passed:
        metadata["remedy"] = dg.MetadataValue.text(verdict.mend)
        # The former key of this value, for one release.
        metadata["what mends it"] = metadata["remedy"]
    for title, value in verdict.notes.items():
        metadata[title] = _convert_note(value)
    return dg.AssetCheckResult(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=verdict.passed,
        severity=dg.AssetCheckSeverity[verdict.severity],
        description=verdict.description,
        metadata=metadata,
    )


def to_check_evaluation(
    key: dg.AssetCheckKey, verdict: Verdict, tenant_id: str
) -> dg.AssetCheckEvaluation:
    """Convert a verdict to an event for a tenant's partition.

    It is used in runs over all tenants, which have no partition.
    """
    result = to_check_result(verdict.for_tenant(tenant_id), key)
    return dg.AssetCheckEvaluation(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=result.passed,
        severity=result.severity,
        description=result.description,
        metadata=result.metadata,
        partition=tenant_id,
    )


def _build_offender_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> dg.TableMetadataValue:
    shown_rows = [[_format_value(cell) for cell in row] for row in rows[:_MAX_OFFENDERS]]
    return build_table(dict.fromkeys(columns, "string"), shown_rows)


def _convert_note(value: object) -> dg.MetadataValue:
    if isinstance(value, str) and value.startswith(_OWN_PAGES):
        return dg.MetadataValue.url(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return dg.MetadataValue.int(value)
    return dg.MetadataValue.text(_format_value(value))


def _format_value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
