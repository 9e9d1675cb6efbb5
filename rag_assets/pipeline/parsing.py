"""The stage `parsed_text`: parse the slice's documents whose text is not in the lake yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from rag_assets.common.errors import DocumentUnreachable, DocumentVanished, RagAssetsError
from rag_assets.common.failure_kinds import failure_kind
from rag_assets.common.hashing import sha256_hex
from rag_assets.ingest.parsing.model import ParsedText, compute_parsed_digest
from rag_assets.ingest.sources.model import DocumentSource, FormerContentSource, ListedPaths
from rag_assets.ingest.workers.pool import ParseOutcome, ParseTask
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import (
    DocumentNote,
    SliceWork,
    StageProgress,
    StageTime,
    build_failure,
    compute_retry_time,
    postpone_documents,
)
from rag_assets.pipeline.source_listing import open_sources
from rag_assets.privacy.masker import get_masker
from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.lake.model import ParsedRow

_FLUSH_DOCUMENTS = 250
_VANISHED_RETRY = timedelta(seconds=30)
_FLUSH_CHARACTERS = 16_000_000
_MAX_NOTES = 50
_WORKER_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True)
class FormatReport:
    """Report on the slice's documents of one format; documents with the same content count once.

    Attributes:
        pages: number of pages, slides or sheets, if the format has them.
        seconds: total time of the parser processes, which run in parallel.
    """

    parsed: int = 0
    failed: int = 0
    pages: int = 0
    ocr_pages: int = 0
    characters: int = 0
    masked: int = 0
    seconds: float = 0.0

    def plus(self, result: ParsedText | RagAssetsError, seconds: float) -> FormatReport:
        """Return the report with one more parsing result added."""
        total = replace(self, seconds=self.seconds + seconds)
        if not isinstance(result, ParsedText):
            return replace(total, failed=self.failed + 1)
        return replace(
            total,
            parsed=self.parsed + 1,
            pages=self.pages + (result.pages or 0),
            ocr_pages=self.ocr_pages + result.ocr_pages,
            characters=self.characters + len(result.text),
            masked=self.masked + len(result.masked),
        )


@dataclass(frozen=True, slots=True)
class ParsingReport:
    """Report on parsing the slice's documents.

    Attributes:
        remaining: number of documents left for the next run, because this run's parsing time was
            over.
        vanished: number of documents that left their source, or changed, after they were listed.
        notes: the first documents that were parsed incompletely, each with its missing parts.
    """

    parsed: int = 0
    reused: int = 0
    remaining: int = 0
    failed: int = 0
    vanished: int = 0
    pages: int = 0
    ocr_pages: int = 0
    masked: int = 0
    formats: Mapping[str | None, FormatReport] = field(default_factory=dict)
    failures: tuple[DocumentNote, ...] = ()
    notes: tuple[DocumentNote, ...] = ()
    seconds: float = 0.0


def parse_documents(ctx: TenantContext, work: SliceWork) -> ParsingReport:
    """Parse documents without a stored text, mask credentials, and quarantine failures."""
    started = time.monotonic()
    by_key: dict[str, list[Document]] = {}
    for document in work.documents:
        if document.content_sha256 is not None:
            by_key.setdefault(ctx.parse_key(document), []).append(document)
    missing = ctx.lake.find_missing_parsed(set(by_key))
    reused = sum(len(documents) for key, documents in by_key.items() if key not in missing)
    stage = _ParsingStage(ctx, work, {key: by_key[key] for key in by_key if key in missing})
    if missing:
        stage.run()
    return stage.build_report(reused, time.monotonic() - started)


class _ParsingStage:
    def __init__(
        self, ctx: TenantContext, work: SliceWork, missing: Mapping[str, list[Document]]
    ) -> None:
        self._ctx = ctx
        self._work = work
        self._missing = missing
        self._rows: list[ParsedRow] = []
        self._characters = 0
        self._failures: list[tuple[Document, RagAssetsError]] = []
        self._vanished: list[Document] = []
        self._notes: list[tuple[Document, str]] = []
        self._formats: dict[str | None, FormatReport] = {}
        self._remaining = 0

    def run(self) -> None:
        ctx = self._ctx
        progress = StageProgress("parsed_text", len(self._missing), ctx.log)
        workers = _choose_worker_count(
            [documents[0].facts.size for documents in self._missing.values()]
        )
        with ctx.worker_pool() as pool:
            for outcome in pool.map(self._iter_tasks(), workers=workers):
                documents = self._missing[outcome.key]
                self._count_outcome(documents[0], outcome)
                if isinstance(outcome.result, ParsedText):
                    self._add_text(outcome.key, outcome.result)
                elif isinstance(outcome.result, DocumentVanished):
                    self._vanished += documents
                else:
                    self._failures += [(document, outcome.result) for document in documents]
                progress.advance(1)
        self._write_texts()
        progress.finish()
        self._quarantine_failed()
        self._defer_vanished()

    def build_report(self, reused: int, seconds: float) -> ParsingReport:
        formats = self._formats.values()
        return ParsingReport(
            parsed=sum(report.parsed for report in formats),
            reused=reused,
            remaining=self._remaining,
            failed=len(self._failures),
            vanished=len(self._vanished),
            pages=sum(report.pages for report in formats),
            ocr_pages=sum(report.ocr_pages for report in formats),
            masked=sum(report.masked for report in formats),
            formats=self._formats,
            failures=_take_first_notes(
                [(d, self._format_reason(error)) for d, error in self._failures]
            ),
            notes=_take_first_notes(self._notes),
            seconds=seconds,
        )

    def _count_outcome(self, document: Document, outcome: ParseOutcome) -> None:
        result = outcome.result
        if isinstance(result, DocumentVanished):
            return
        declared = document.media_type
        media_type = result.media_type if isinstance(result, ParsedText) else declared
        before = self._formats.get(media_type, FormatReport())
        self._formats[media_type] = before.plus(result, outcome.seconds)

    def _iter_tasks(self) -> Iterator[ParseTask]:
        sources = {
            s.name: s for s in open_sources(self._ctx.tenant, self._ctx.settings, self._ctx.catalog)
        }
        paths = {name: ListedPaths(source) for name, source in sources.items()}
        work = self._work
        is_hurried = work.is_serving and any(not document.urgency for document in work.documents)
        stage = StageTime(self._ctx, self._ctx.limits.parse_seconds, is_hurried=is_hurried)
        for number, (key, documents) in enumerate(self._missing.items()):
            document = documents[0]
            if number and stage.is_over(is_urgent=not document.urgency):
                self._remaining += len(documents)
                continue
            source = sources.get(document.source)
            if source is None:
                self._vanished += documents
                continue
            yield ParseTask(
                key=key,
                name=document.uri,
                media_type=document.media_type,
                read=_build_reader(source, paths[source.name], document),
                options=self._ctx.parse_options,
            )

    def _add_text(self, key: str, parsed: ParsedText) -> None:
        self._rows.append(ParsedRow(key=key, digest=compute_parsed_digest(parsed), parsed=parsed))
        self._notes += [(document, n) for document in self._missing[key] for n in parsed.notes]
        self._characters += len(parsed.text)
        if len(self._rows) >= _FLUSH_DOCUMENTS or self._characters >= _FLUSH_CHARACTERS:
            self._write_texts()

    def _write_texts(self) -> None:
        self._ctx.lake.append_parsed(self._rows)
        self._rows, self._characters = [], 0

    def _quarantine_failed(self) -> None:
        ctx = self._ctx
        if not self._failures:
            return
        failures = []
        for document, error in self._failures:
            is_transient = isinstance(error, DocumentUnreachable)
            retry_at = compute_retry_time(document, error) if is_transient else None
            failures.append(
                build_failure(document, self._format_reason(error), failure_kind(error), retry_at)
            )
        postpone_documents(ctx, self._work, failures)
        if self._work.is_superseded:
            return  # The configuration's build reports it.
        ctx.catalog.events.write(
            ctx.ref,
            "document_failed",
            [{"uri": d.uri, "reason": self._format_reason(error)} for d, error in self._failures],
        )

    def _format_reason(self, error: RagAssetsError) -> str:
        """Return why a document failed, with credentials masked."""
        return get_masker(self._ctx.settings.local).text(error.advice)

    def _defer_vanished(self) -> None:
        """Defer vanished or changed documents until a listing finds the change."""
        if not self._vanished:
            return
        retry_at = datetime.now(UTC) + _VANISHED_RETRY
        reason = "missing from its source, or changed since it was listed"
        failures = [build_failure(d, reason, "changing", retry_at) for d in self._vanished]
        postpone_documents(self._ctx, self._work, failures)
        self._ctx.catalog.syncs.expire_listings(self._ctx.ref)


def _choose_worker_count(sizes: Sequence[int]) -> int:
    """Return how many processes are worth starting for documents of these sizes."""
    # Parsing a few small documents takes less time than starting a second process.
    return min(len(sizes), 1 + sum(sizes) // _WORKER_BYTES)


def _take_first_notes(notes: Sequence[tuple[Document, str]]) -> tuple[DocumentNote, ...]:
    by_name = sorted(notes, key=lambda note: note[0].uri)[:_MAX_NOTES]
    return tuple(DocumentNote(d.document_id, d.uri, text) for d, text in by_name)


def _build_reader(
    source: DocumentSource, paths: ListedPaths, document: Document
) -> Callable[[], bytes]:
    """Return a function that reads a document; it raises an error if the content has changed."""

    def read() -> bytes:
        path = paths.find_path(document.document_id, document.path)
        data = source.read(path, max_bytes=source.max_bytes)
        if sha256_hex(data) == document.content_sha256:
            return data
        former = None
        if isinstance(source, FormerContentSource):
            former = source.read_former(path, document.content_sha256 or "")
        if former is None:
            raise DocumentVanished(
                "the document changed after it was listed; the next run reads it again"
            )
        return former

    return read
