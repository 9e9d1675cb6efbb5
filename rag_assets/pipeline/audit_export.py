"""Audit archives: one ZIP file with everything that an auditor of one tenant needs.

It contains the tenant's configuration, policies, receipts, record of accesses, builds and checks.
It never contains a secret, a question, document text, a vector, or data of another tenant.
Everything is read from one snapshot of the catalog and written row by row.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.formatting import format_count
from rag_assets.common.private_files import draft_prefix, sync_folder
from rag_assets.privacy.masker import Masker
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.erasure.receipts import ChainReport
from rag_assets.storage.catalog.journal.audit import AuditRecords, open_audit
from rag_assets.tenants.application_settings import SECTION
from rag_assets.tenants.model import Tenant

SCHEMA_VERSION: Final = 1
"""Increase this when the meaning of a file in the archive changes, or when a file is removed."""
MASKED: Final = "[masked]"
_USER_INFO = re.compile(r"(?<=://)[^/\s@]*@")
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:password|secret|credential|authorization|token|(?:api|access|private)_?key)s?$",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"\$[A-Za-z_]\w*")
_POLICIES: Final = (
    *("retention_days", "prune_share", "grace_days", "publish", "auto_repair"),
    *("freshness_minutes", "access", "privacy", "caps", "drift", SECTION),
)
"""Settings of a tenant that are policies; the retrieval settings define how long searches are kept.
"""
_FILES: Final[Mapping[str, str]] = {
    "sources.json": "the tenant, its configuration with secrets masked, and for each source when it"
    " was listed last and how many documents it has, by status",
    "policies.json": "the policies in force: retention, privacy, default access, spending caps; the"
    " holds; which keys of providers the tenant has",
    "grants.jsonl": "who may read which access scope, and since when",
    "inherited_scopes.jsonl": "scopes of pages, with the scopes above them whose readers read them"
    " as well",
    "tokens.jsonl": "tokens of the service: id, role, principals and times",
    "security_changes.jsonl": "when a token, a grant or a hold was made or withdrawn, and purges;"
    " the installation keeps its 5,000 newest changes",
    "receipts.jsonl": "the receipt of every deletion for good, as it is stored; is_intact is false"
    " for one that was altered, or before which one is missing",
    "verification.json": "the result of verifying the chain of all receipts of the installation",
    "accesses.jsonl": "the events of searches: who searched, when, how many passages were found",
    "access_totals.jsonl": "the number of searches of each caller on each day, UTC",
    "builds.jsonl": "every build of the index: state, embedder, dates, the checks that judged it",
    "checks.jsonl": "the last result of every check of the stored data",
}
_OMITTED_ITEMS: Final = (
    "secrets: keys of providers, tokens and their hashes, keys of digests",
    "questions of searches, and the passages that were found",
    "documents: their list, texts, titles and vectors; only results of checks and holds name one",
    "searches that are older than retrieval.events_days, or were too many at once to be written",
    "security changes that the installation has forgotten, and those of other tenants",
    "everything of other tenants",
)


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of an export.

    Attributes:
        sha256: hash of the manifest, which holds the hashes of all other files. An auditor who
            keeps a copy of this hash elsewhere can later tell whether the archive was altered.
    """

    path: Path
    sha256: str
    records: Mapping[str, int]
    chain: ChainReport


def export_audit(
    database: Database, tenant_id: str, path: Path, *, installation: UUID, by: str, masker: Masker
) -> AuditReport:
    """Write the audit archive of a tenant atomically; never replace a file.

    Raises:
        UnknownTenant: no tenant has that id.
        ConfigurationError: the file exists, or cannot be written.
    """
    if os.path.lexists(path):
        raise _build_file_exists_error(path)
    try:
        descriptor, name = tempfile.mkstemp(prefix=draft_prefix(path), dir=path.parent)
    except OSError as error:
        raise _build_unwritable_error(path, error) from None
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file, open_audit(database, tenant_id) as records:
            with ZipFile(file, "w", ZIP_DEFLATED) as archive:
                writer = _ArchiveWriter(archive, records.read_at, masker)
                report = _write_all(writer, records, path, installation, by)
            file.flush()
            os.fsync(file.fileno())
        # Unlike a rename, a link never replaces a file that has appeared in the meantime.
        os.link(draft, path)
    except FileExistsError:
        raise _build_file_exists_error(path) from None
    except OSError as error:
        raise _build_unwritable_error(path, error) from None
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)
    return report


def _write_all(
    writer: _ArchiveWriter, records: AuditRecords, path: Path, installation: UUID, by: str
) -> AuditReport:
    chain = records.chain()
    verification = {
        "is_intact": not chain.broken,
        "receipts_of_installation": chain.receipts,
        "altered_or_without_predecessor": chain.broken,
        "last_hash": chain.last,
    }
    writer.add_json("sources.json", _build_sources(records))
    writer.add_json("policies.json", _build_policies(records))
    writer.add_lines("grants.jsonl", records.grants())
    writer.add_lines("inherited_scopes.jsonl", records.inherited_scopes())
    writer.add_lines("tokens.jsonl", records.tokens())
    writer.add_lines("security_changes.jsonl", records.security_changes())
    # Not masked, so that an auditor can recompute their hashes.
    writer.add_lines("receipts.jsonl", _iter_receipts(records, chain), is_masked=False)
    writer.add_json("verification.json", verification, is_masked=False)
    writer.add_lines("accesses.jsonl", records.searches())
    writer.add_lines("access_totals.jsonl", records.search_totals())
    writer.add_lines("builds.jsonl", records.builds())
    writer.add_lines("checks.jsonl", records.checks())
    writer.add("README.txt", [_build_readme(records, verification)])
    left_out = [*_OMITTED_ITEMS]
    if former := records.count_former_receipts():
        left_out.append(f"{format_count(former, 'receipt')} of former tenants that had the same id")
    manifest = {
        "format": "rag-assets audit archive",
        "schema_version": SCHEMA_VERSION,
        "program_version": version("rag-assets"),
        "installation": installation,
        "tenant": records.ref.id,
        "incarnation": records.ref.incarnation,
        "read_at": records.read_at,
        "exported_by": by,
        "receipts_are_intact": not chain.broken,
        "files": dict(writer.files),
        "left_out": left_out,
    }
    counts = {name: entry["records"] for name, entry in writer.files.items()}
    writer.add_json("manifest.json", manifest, is_masked=False)
    return AuditReport(path, writer.files["manifest.json"]["sha256"], counts, chain)


class _ArchiveWriter:
    """Writes files into an archive and computes their hashes."""

    def __init__(self, archive: ZipFile, at: datetime, masker: Masker) -> None:
        self._archive = archive
        self._at = at
        self._masker = masker
        self.files: dict[str, dict[str, Any]] = {}

    def add_json(self, name: str, value: Any, *, is_masked: bool = True) -> None:
        """Add one JSON document."""
        plain = json.loads(_format_json(value))
        shown = self._mask_value("", plain) if is_masked else plain
        self.add(name, [json.dumps(shown, indent=1, ensure_ascii=False) + "\n"])

    def add_lines(
        self, name: str, records: Iterable[Mapping[str, Any]], *, is_masked: bool = True
    ) -> None:
        """Add records as lines of JSON."""

        def lines() -> Iterator[str]:
            for record in records:
                text = _format_json(record)
                yield (
                    _format_json(self._mask_value("", json.loads(text))) if is_masked else text
                ) + "\n"

        self.add(name, lines())

    def add(self, name: str, parts: Iterable[str]) -> None:
        """Write a file into the archive, and record its hash, size and number of parts."""
        digest, size, count = hashlib.sha256(), 0, 0
        info = ZipInfo(name, self._at.timetuple()[:6])
        info.compress_type = ZIP_DEFLATED
        info.external_attr = 0o600 << 16
        with self._archive.open(info, "w", force_zip64=True) as file:
            for part in parts:
                content = part.encode("utf-8", "backslashreplace")
                file.write(content)
                digest.update(content)
                size, count = size + len(content), count + 1
        self.files[name] = {"sha256": digest.hexdigest(), "bytes": size, "records": count}

    def _mask_value(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._mask_value(key, item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._mask_value(name, item) for item in value]
        return self._mask_text(name, value) if isinstance(value, str) else value

    def _mask_text(self, name: str, text: str) -> str:
        if _is_generated(name) or _REFERENCE.fullmatch(text):
            return text
        if _SECRET_NAME.search(name):
            return MASKED
        return self._masker.mask_named_value(name, _USER_INFO.sub(f"{MASKED}@", text))


def _is_generated(name: str) -> bool:
    """Return whether a field holds an id or a time that the program generated."""
    return name in {"at", "id", "search_id", "token_id"} or name.endswith("_at")


def _build_sources(records: AuditRecords) -> dict[str, Any]:
    record = records.record
    return {
        "tenant": {
            "id": record.id,
            "incarnation": record.incarnation,
            "state": record.state,
            "listed_by": record.origin,
            "profile": record.profile,
            "organization": record.organization,
            "project": record.project,
            "created_at": records.created_at,
        },
        "configuration": record.config,
        "configuration_of_operator": record.operator_config,
        "sources": list(records.sources()),
    }


def _build_policies(records: AuditRecords) -> dict[str, Any]:
    policies: dict[str, Any] = {}
    try:
        in_force = Tenant.from_config(records.record.config).model_dump(mode="json")
        policies = {name: in_force[name] for name in _POLICIES}
        policies["events_days"] = in_force["retrieval"]["events_days"]
    except ConfigurationError as error:
        policies["problem"] = error.message
    return {
        "policies": policies,
        "holds": list(records.holds()),
        "provider_keys": list(records.provider_keys()),
    }


def _iter_receipts(records: AuditRecords, chain: ChainReport) -> Iterator[Mapping[str, Any]]:
    broken = frozenset(chain.broken)
    return ({**row, "is_intact": row["number"] not in broken} for row in records.receipts())


def _build_readme(records: AuditRecords, verification: Mapping[str, Any]) -> str:
    altered = verification["altered_or_without_predecessor"]
    verdict = (
        "No receipt was altered, and none is missing before another."
        if not altered
        else f"Altered, or without the one before: {format_count(len(altered), 'receipt')};"
        " verification.json has the numbers."
    )
    files = "\n".join(
        f"{name}\n{textwrap.indent(textwrap.fill(about, 90), '    ')}."
        for name, about in _FILES.items()
    )
    left_out = "\n".join(f"- {item}" for item in _OMITTED_ITEMS)
    return f"""\
Audit archive of the tenant {records.ref.id}, read on {records.read_at:%Y-%m-%d at %H:%M:%S %Z}.

Files that end in .json are one JSON document; those that end in .jsonl have one JSON document on
each line. All times have their offset from UTC. All files show the same moment.

{files}
manifest.json
    the SHA-256 and size of every other file, the version of this format, the installation, the
    tenant, the time, who exported it, and what was left out.

Left out:
{left_out}

Receipts. {verdict}
Receipts are numbered over all tenants, and each holds the hash of the one before, so that none can
be altered or left out unnoticed; only this tenant's are here. last_hash in verification.json is
the hash of the newest one: compare it with a later archive to see whether receipts were removed at
the end. The hash of a receipt is the SHA-256 of the JSON array of number, id, tenant, incarnation,
kind, rule, by, at (UTC), counts, documents, proof and previous, with sorted keys and without
spaces. Documents are named by keyed hashes of their ids; the key stays in the installation.

To verify the files: unpack them, and compare `sha256sum FILE` with manifest.json.
"""


def _format_json(value: Any) -> str:
    return json.dumps(value, default=_to_json_value, ensure_ascii=False)


def _to_json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, UUID):
        return str(value)
    return float(value)  # Postgres numerics are amounts in dollars.


def _build_file_exists_error(path: Path) -> ConfigurationError:
    return ConfigurationError(
        f"the file {path} already exists and is not overwritten", hint="choose a different file"
    )


def _build_unwritable_error(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"the archive {path} cannot be written: {error.strerror or type(error).__name__}",
        hint="choose a file in an existing, writable folder whose file system supports hard links",
    )
