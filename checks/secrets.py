"""secrets: scans stored texts for credentials that were not masked."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from rag_assets.checks.documents import iter_parsed_batches
from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.common.errors import TenantLocked
from rag_assets.common.formatting import format_count
from rag_assets.ingest.parsing.masking import find_credentials
from rag_assets.ingest.parsing.model import MaskedSpan, ParsedText
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.generations import find_active_builds
from rag_assets.pipeline.publishing import delete_leftover_entries
from rag_assets.pipeline.slices import ParsedDocument
from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.storage.catalog.documents.model import Failure
from rag_assets.storage.lake.model import ChunkSetRow

_MAX_NAMED_DOCUMENTS = 50
Where = Literal["title", "heading", "context", "text"]
Scan = Callable[[str], Sequence[SecretSpan]]
Confirm = Callable[[str], bool]
"""Returns whether the gate also finds a credential in this part of a document."""


@dataclass(frozen=True, slots=True)
class Leak:
    """The location of an unmasked credential and the rules that found it, without its value.

    Attributes:
        ordinal: number of the chunk; None for the title.
    """

    where: Where
    ordinal: int | None
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeakingDocument:
    """A document and the unmasked credentials that were found in it."""

    document_id: str
    document_key: str
    uri: str
    leaks: tuple[Leak, ...]

    @property
    def rules(self) -> tuple[str, ...]:
        """Return the rules that found credentials, sorted."""
        return tuple(sorted({rule for leak in self.leaks for rule in leak.rules}))


@dataclass(frozen=True, slots=True)
class ScanCounts:
    """Counts of scanned data, and of data that the pipeline masked or dropped.

    Attributes:
        rules: for each rule that caused chunks to be dropped, the number of these chunks.
        masked: uri of each document with masked credentials, with the number of credentials per
            rule.
    """

    documents: int = 0
    chunks: int = 0
    dropped: int = 0
    rules: tuple[tuple[str, int], ...] = ()
    masked: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()


def find_leaks(
    title: str | None, chunk_set: ChunkSetRow, scan: Scan, confirm: Confirm
) -> Iterator[Leak]:
    """Yield the credentials in those texts of a document that are embedded or returned.

    Out of context, a part of a document may look like a credential. So a finding in a chunk counts
    only if the gate, which scans the whole document, would also mask it, or if the document does
    not contain the text.
    """
    if title:
        yield from _iter_leaks("title", None, scan(title))
    headings: dict[str, Sequence[SecretSpan]] = {}
    for chunk in chunk_set.chunks:
        for heading in chunk.heading_path:
            if heading not in headings:
                headings[heading] = scan(heading)
            yield from _iter_leaks("heading", chunk.ordinal, headings[heading])
        parts: tuple[tuple[Where, str], ...] = (("context", chunk.context), ("text", chunk.text))
        for where, text in parts:
            spans = scan(text) if text else ()
            confirmed_spans = [span for span in spans if confirm(text[span.start : span.end])]
            yield from _iter_leaks(where, chunk.ordinal, confirmed_spans)


class Gate:
    """Decides whether a finding counts, by scanning the whole document as the pipeline's gate does.

    The document is scanned only when a first finding must be confirmed.

    Args:
        read: returns the stored text of the document; None without a stored text.
    """

    def __init__(self, read: Callable[[], ParsedText | None], scanner: SecretScanner) -> None:
        self._read = read
        self._scanner = scanner
        self._read_parsed_text: tuple[str, tuple[MaskedSpan, ...]] | None = None

    def confirms(self, passage: str) -> bool:
        """Return whether the gate would mask a passage, or the document does not contain it."""
        if self._read_parsed_text is None:
            parsed = self._read()
            spans = find_credentials(parsed, self._scanner) if parsed is not None else ()
            self._read_parsed_text = (parsed.text if parsed is not None else "", spans)
        text, spans = self._read_parsed_text
        at = text.find(passage)
        if at < 0:
            return True
        while at >= 0:
            if any(span.start < at + len(passage) and at < span.end for span in spans):
                return True
            at = text.find(passage, at + 1)
        return False


def build_verdict(leaking: Sequence[LeakingDocument], scanned: ScanCounts) -> Verdict:
    """Pass if no credential is left; dropped chunks are only noted."""
    leaks = sum(len(document.leaks) for document in leaking)
    if leaking:
        description = (
            f"{format_count(leaks, 'credential')} left in"
            f" {format_count(len(leaking), 'document')}, now quarantined and excluded from every"
            " search"
        )
    else:
        description = f"no credential in {format_count(scanned.chunks, 'chunk')}"
        if scanned.dropped:
            description += f"; {format_count(scanned.dropped, 'chunk')} dropped by the pipeline"
    by_rule = ", ".join(f"{rule}: {count:,}" for rule, count in scanned.rules)
    return Verdict(
        passed=not leaking,
        description=description,
        compared=(Compared("credentials left", 0, leaks),),
        mend="remove the credential from the source, revoke it, and run `rag-assets sync TENANT`",
        columns=("document", "where", "chunk", "rules"),
        offenders=tuple(
            (document.uri, leak.where, leak.ordinal, ", ".join(leak.rules))
            for document in leaking
            for leak in document.leaks
        ),
        notes={
            "documents scanned": scanned.documents,
            "chunks scanned": scanned.chunks,
            "chunks dropped by the pipeline": scanned.dropped,
            "rules of dropped chunks": by_rule or "none",
            "documents with masked credentials": len(scanned.masked),
            "credentials masked in": _describe_masked(scanned.masked),
        },
    )


def _describe_masked(masked: Sequence[tuple[str, tuple[tuple[str, int], ...]]]) -> str:
    """Return a note that names the first documents with masked credentials.

    The note has counts by rule: `files/a.md: github-token 2, aws-secret 1`.
    """
    shown_entries = [
        f"{uri}: {', '.join(f'{rule} {count:,}' for rule, count in rules)}"
        for uri, rules in masked[:_MAX_NAMED_DOCUMENTS]
    ]
    more = len(masked) - len(shown_entries)
    return "; ".join([*shown_entries, *([f"and {more:,} more"] if more else [])]) or "none"


@tenant_check(
    "chunks",
    "secrets",
    (
        "An independent scan of titles, headings and chunk texts finds no credential. A document "
        "with a credential is quarantined. Credentials that the pipeline masked and chunks that it "
        "dropped are only noted."
    ),
    judges_builds=True,
)
def secrets_check(context: CheckContext) -> Verdict:
    """Scan stored texts, and quarantine documents that contain a credential."""
    scanner = context.workbench.scanner()
    leaking, scanned = _scan_tenant(context.of_build, context.slice_id, scanner)
    if leaking:
        _quarantine(context, leaking)
    if scanned.dropped:
        context.log.warning(f"chunks dropped because of a credential: {scanned.dropped}")
    verdict = build_verdict(leaking, scanned)
    return replace(verdict, notes={**verdict.notes, **_build_rule_notes(context.tenant.scanned)})


def _build_rule_notes(scanned: Mapping[str, Any]) -> dict[str, str | int]:
    """Return notes on the last complete scan of stored data: its rules and their findings."""
    findings = scanned.get("found") or {}
    by_rule = ", ".join(f"{rule}: {count:,}" for rule, count in sorted(findings.items()))
    notes: dict[str, str | int] = {"rules": scanned.get("version", "not scanned yet")}
    notes["found by the first scan with these rules"] = by_rule or "none"
    if receipt := scanned.get("receipt"):
        notes["receipt of that scan"] = receipt
    return notes


def _scan_tenant(
    ctx: TenantContext, run_id: str, scanner: SecretScanner
) -> tuple[list[LeakingDocument], ScanCounts]:
    leaking: list[LeakingDocument] = []
    documents = scanned = 0
    dropped: Counter[str] = Counter()
    dropped_count = 0
    masked: list[tuple[str, tuple[tuple[str, int], ...]]] = []
    for batch in iter_parsed_batches(ctx, run_id):
        rows = ctx.lake.chunk_sets({item.chunk_set_key for item in batch})
        spans = ctx.lake.read_masked_spans({item.parse_key for item in batch})
        for item in batch:
            if (row := rows.get(item.chunk_set_key)) is None:
                continue
            if found_spans := spans.get(item.parse_key):
                of_rules = Counter(span.rule for span in found_spans)
                masked.append((item.document.uri, tuple(sorted(of_rules.items()))))
            documents += 1
            scanned += len(row.chunks)
            dropped_count += len(row.dropped)
            dropped.update(rule for chunk in row.dropped for rule in chunk.rules)
            gate = Gate(partial(_read_parsed_text, ctx, item), scanner)
            leaks = tuple(find_leaks(item.title, row, scanner.scan, gate.confirms))
            if leaks:
                document = item.document
                leaking.append(
                    LeakingDocument(
                        document.document_id, document.document_key, document.uri, leaks
                    )
                )
    of_dropped = tuple(sorted(dropped.items()))
    return leaking, ScanCounts(documents, scanned, dropped_count, of_dropped, tuple(masked))


def _read_parsed_text(ctx: TenantContext, item: ParsedDocument) -> ParsedText | None:
    key = ctx.parse_key(item.document)
    row = ctx.lake.parsed([key]).get(key)
    return row.parsed if row is not None else None


def _quarantine(context: CheckContext, leaking: Sequence[LeakingDocument]) -> None:
    ctx, ids = context.tenant, [document.document_id for document in leaking]
    failures = [
        Failure(
            document.document_id,
            document.document_key,
            f"the document still contains a credential (found by: {', '.join(document.rules)})",
            "credential",
        )
        for document in leaking
    ]
    # These transactions do not wait for the tenant's lock. After the first, no search returns the
    # documents; after other failures, the former version stays searchable.
    ctx.catalog.index.withhold(ctx.ref, ids)
    builds = find_active_builds(ctx, ctx.catalog.generations.live(ctx.ref.id)).values()
    for build in builds:
        key, number = build.context.config_key, build.generation.number
        if build.is_superseded:
            ctx.catalog.index.put_off(ctx.ref, number, failures, config_key=key)
        else:
            ctx.catalog.quarantine.fail(ctx.ref, failures, config_key=key)
    reasons = [{"uri": d.uri, "reason": f.message} for d, f in zip(leaking, failures, strict=True)]
    ctx.catalog.events.write(ctx.ref, "document_failed", reasons)
    try:
        with context.locked("secrets check") as locked:
            # A run that was active until now may have published the documents again.
            locked.guard()
            locked.catalog.index.withhold(ctx.ref, ids)
            delete_leftover_entries(locked)
    except TenantLocked as error:
        context.log.warning(
            "the entries of the quarantined documents cannot be deleted from the index now; the"
            f" next run deletes them: {error.message}"
        )


def _iter_leaks(where: Where, ordinal: int | None, spans: Sequence[SecretSpan]) -> Iterator[Leak]:
    if spans:
        yield Leak(where, ordinal, tuple(sorted({span.rule for span in spans})))
