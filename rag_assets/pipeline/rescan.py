"""Re-scan: apply new credential rules to all stored data of a tenant.

Texts in the lake, names of documents, and texts in Postgres are scanned in this order. Each batch
is one transaction: it hides what the batch found from searches, and records how far the scan has
come. An ordinary erasure then removes the findings from the stores; see pipeline/erasure.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from rag_assets.ingest.parsing import masking
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.masked_rows import mask_rows
from rag_assets.pipeline.masked_texts import MaskedTexts
from rag_assets.pipeline.progress import Progress
from rag_assets.privacy.masker import MASKING_VERSION, Masker
from rag_assets.privacy.secrets.scanner import SecretScanner, rules_version
from rag_assets.storage.catalog.erasure.erasures import Erasure
from rag_assets.storage.catalog.erasure.rescans import ScanPosition
from rag_assets.storage.catalog.erasure.text_columns import mask_column, scanned_columns

_TEXTS = 100
_NAMES = 500


def present_rules() -> str:
    """Return the version of all rules that decide which text is masked."""
    return f"{rules_version()}, cells {masking.VERSION}, names {MASKING_VERSION}"


def begin_scan(ctx: TenantContext, *, by: str) -> Erasure | None:
    """Start to scan a tenant's stored data; None if the present rules were already applied.

    Args:
        ctx: the tenant's context; the caller holds the tenant's lock.
        by: who or what scans.
    """
    version = present_rules()
    if ctx.scanned.get("version") == version:
        return None
    ctx.guard()
    at = ctx.clock.now()
    return ctx.catalog.rescans.begin(ctx.ref, version, rule=_rule(version), by=by, at=at)


def scan(
    ctx: TenantContext, erasure: Erasure, scanner: SecretScanner, *, seconds: float | None = None
) -> Erasure | None:
    """Continue a scan where the last run stopped, and hide its findings from searches.

    Args:
        ctx: the tenant's context; the caller holds the tenant's lock.
        erasure: the scan.
        scanner: uses the present rules.
        seconds: time after which the rest is left to the next run.

    Returns:
        The finished scan; None if data is left to be scanned.
    """
    if erasure.rule != _rule(present_rules()):
        return erasure  # A scan with newer rules has started; it covers the rest.
    return _Scan(ctx, erasure, scanner).run(seconds)


def _rule(version: str) -> str:
    return f"rules {version}"


class _Scan:
    def __init__(self, ctx: TenantContext, erasure: Erasure, scanner: SecretScanner) -> None:
        self._ctx = ctx
        self._erasure = erasure
        self._scanner = scanner

    def run(self, seconds: float | None) -> Erasure | None:
        deadline = None if seconds is None else time.monotonic() + seconds
        place = ScanPosition.from_scan(self._erasure)
        phases = {"texts": self._texts, "names": self._names, "columns": self._columns}
        names = [*phases]
        for name in names[names.index(place.phase) :] if place.phase in phases else ():
            after = place.after if name == place.phase else ""
            for _ in phases[name](after):
                if deadline is not None and time.monotonic() > deadline:
                    return None
        if place.phase in phases:
            self._advance(ScanPosition("stores"))
        return self._erasure

    def _advance(self, place: ScanPosition, **counts: Mapping[str, int]) -> None:
        self._ctx.guard()
        self._erasure = self._ctx.catalog.rescans.advance(self._erasure, place, counts)

    def _texts(self, after: str) -> Iterator[None]:
        ctx = self._ctx
        keys = sorted(key for key in ctx.lake.parsed_keys() if key > after)
        progress = Progress("credentials in texts", len(keys), ctx.log)
        texts = MaskedTexts(ctx, self._scanner)
        for start in range(0, len(keys), _TEXTS):
            batch = keys[start : start + _TEXTS]
            found = texts.masked(batch)
            if found is None:
                self._advance(ScanPosition("texts", batch[-1]))
            else:
                ctx.guard()
                self._erasure = ctx.catalog.rescans.withhold_texts(
                    ctx.ref, self._erasure, found, after=batch[-1]
                )
            progress.advance(len(batch))
            yield
        progress.done()

    def _names(self, after: str) -> Iterator[None]:
        ctx, masker = self._ctx, Masker(self._scanner)
        while rows := ctx.catalog.rescans.documents_after(ctx.ref.id, after, _NAMES):
            after = rows[-1].document_id
            masked, rules = mask_rows(rows, masker, self._scanner)
            ctx.guard()
            self._erasure = ctx.catalog.rescans.mask_documents(
                ctx.ref, self._erasure, masked, rules, after=after
            )
            yield

    def _columns(self, after: str) -> Iterator[None]:
        ctx, masker = self._ctx, Masker(self._scanner)
        columns = scanned_columns()
        names = [column.name for column in columns]
        # If the system that owned the last column was uninstalled, all columns are scanned again.
        for column in columns[names.index(after) + 1 if after in names else 0 :]:
            ctx.guard()
            changed = mask_column(ctx.catalog.text_columns, ctx.ref, column, masker)
            self._advance(ScanPosition("columns", column.name), texts={"texts masked": changed})
            yield
