"""audit export: write the audit archive of a tenant."""

from __future__ import annotations

from pathlib import Path

from rag_assets.cli.commands.operator import operator
from rag_assets.cli.commands.output import print_json, print_table, say, warn
from rag_assets.cli.commands.session import Session, with_reading_session


@with_reading_session
def export(session: Session, tenant_id: str, path: Path, *, as_json: bool) -> None:
    """Write the archive, and print the number of records in each of its files."""
    from rag_assets.pipeline.audit_export import export_audit
    from rag_assets.privacy.masker import masker_of

    report = export_audit(
        session.catalog.database,
        tenant_id,
        path,
        installation=session.identity.id,
        by=operator(),
        masker=masker_of(session.settings.local),
    )
    broken = report.chain.broken
    if broken:
        numbers = ", ".join(map(str, broken))
        warn(
            f"receipts were altered, or their predecessor is missing: {numbers}; the archive "
            "records this"
        )
    if as_json:
        print_json(
            {
                "tenant": tenant_id,
                "file": str(path),
                "manifest_sha256": report.sha256,
                "records": report.records,
                "broken_receipts": broken,
            }
        )
        return
    print_table(["file", "records"], [(name, f"{n:,}") for name, n in report.records.items()])
    say(f"\n{path}: SHA-256 of its manifest.json: {report.sha256}")
