"""guidelines upload, list, delete, retry, enable, chunks, usage, text, context: the commands.

As JSON they print what the endpoints below `/api` answer.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rag_assets.api.guideline_responses import (
    GuidelineDocument,
    GuidelinesContext,
    GuidelinesText,
    UploadedDocument,
)
from rag_assets.billing.switched_off import guidelines_off
from rag_assets.cli.commands.operator import operator
from rag_assets.cli.commands.output import print_json, print_table, say, warn
from rag_assets.cli.commands.session import Session, with_reading_session, with_session
from rag_assets.common.errors import (
    ConfigurationError,
    GuidelinesOff,
    NoProviderKey,
    RagAssetsError,
    UnknownDocument,
)
from rag_assets.ingest.sources.uploads import UploadsConfig
from rag_assets.pipeline.projects import Projects
from rag_assets.pipeline.uploads import Uploads, require_size
from rag_assets.privacy.masker import masker_of
from rag_assets.retrieval import AsyncRetriever
from rag_assets.retrieval.documents import DocumentReader
from rag_assets.retrieval.model import Caller
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.systems.team_guidelines.contexts import ContextRequest, Contexts
from rag_assets.systems.team_guidelines.projects import PROFILE, OpenProject
from rag_assets.systems.team_guidelines.service import Guidelines
from rag_assets.systems.team_guidelines.texts import (
    MAX_TEXT,
    GuidelineText,
    GuidelineTexts,
    require_usable,
)
from rag_assets.tenants.problems import problem_of
from rag_assets.tenants.projects import Project

_PIECE_BYTES = 1 << 20
_PAGE = 100
_STANDARD_INPUT = "-"


@with_session
def upload(
    session: Session,
    organization: str,
    project: str,
    files: Sequence[Path],
    *,
    replaces: str | None,
    as_json: bool,
) -> None:
    """Upload documents; one that is refused stops no other."""
    if replaces is not None and len(files) > 1:
        raise ConfigurationError(
            "one file replaces one document", hint="give one FILE with --replaces"
        )
    guidelines, opened = _opened(session, organization, project)
    source = _taking(guidelines, opened)
    done: list[UploadedDocument] = []
    refused: list[tuple[Path, RagAssetsError]] = []
    for file in files:
        try:
            done.append(_uploaded(guidelines, opened, source, file, replaces))
        except RagAssetsError as error:
            if len(files) == 1:
                raise
            refused.append((file, error))
    if as_json:
        shown = [{"file": file.name, "error": why.advice} for file, why in refused]
        print_json({"uploaded": [_as_json(one) for one in done], "refused": shown})
    else:
        for one in done:
            what = "was there already" if one.duplicate else "uploaded"
            say(f"{one.document.file_name}: {what}, as {one.document.id}")
        for file, why in refused:
            say(f"{file.name}: refused: {why.advice}")
        if any(not one.duplicate for one in done):
            say(f"`rag-assets sync {opened.ref.id}` indexes it, or the daemon within a minute.")
    if refused:
        raise ConfigurationError(
            f"{len(refused)} of {len(files)} files were refused",
            hint="correct each as its line says, and upload it again",
        )


@with_reading_session
def list_documents(session: Session, organization: str, project: str, *, as_json: bool) -> None:
    """Print a project's documents, the newest first."""
    guidelines, opened = _opened(session, organization, project)
    found: list[GuidelineDocument] = []
    after: str | None = None
    while True:
        page = guidelines.library.page(opened, after=after, limit=_PAGE)
        found += page.documents
        if (after := page.next) is None:
            break
    if as_json:
        shown = {"documents": [_as_json(one) for one in found], "key": _as_json(page.key)}
        print_json({**shown, "ragGuidelines": page.rag_guidelines})
        return
    if not page.rag_guidelines:
        warn(f"guidelines are off: `rag-assets organizations put {organization} --guidelines`")
    print_table(
        ["file", "id", "status", "stage", "chunks", "tokens", "bytes", "by", "uploaded", "reason"],
        [
            (
                *(one.file_name, one.id, one.status, one.stage or ""),
                *(_figure(one.chunk_count), _figure(one.token_count), one.size, one.uploaded_by),
                *(f"{one.updated_at:%Y-%m-%d %H:%M} UTC", one.error_message or one.note or ""),
            )
            for one in found
        ],
    )


def _figure(number: int | None) -> int | str:
    return "" if number is None else number


@with_session
def delete(
    session: Session, organization: str, project: str, document_id: str, *, as_json: bool
) -> None:
    """Delete a document."""
    guidelines, opened = _opened(session, organization, project)
    done = guidelines.library.delete(opened, document_id, operator())
    if done.outcome != "removed":
        raise UnknownDocument(
            "the project has no such document",
            hint=f"`rag-assets guidelines list {organization} {project}` shows their ids",
        )
    if as_json:
        print_json(_as_json(done))
        return
    say(f"{document_id} is deleted: no context holds a passage of it any more.")


@with_session
def retry(
    session: Session, organization: str, project: str, document_id: str, *, as_json: bool
) -> None:
    """Try a document again that failed."""
    guidelines, opened = _opened(session, organization, project)
    shown, is_tried = guidelines.library.retry(opened, document_id, operator())
    if as_json:
        print_json(_as_json(shown))
    elif is_tried:
        say(f"{shown.file_name} is tried again by `rag-assets sync {opened.ref.id}`.")
    else:
        say(f"{shown.file_name} has not failed: it is {shown.status}.")


@with_session
def set_enabled(
    session: Session,
    organization: str,
    project: str,
    document_id: str,
    *,
    enabled: bool,
    as_json: bool,
) -> None:
    """Let a document answer, or take it out of answers."""
    guidelines, opened = _opened(session, organization, project)
    shown = guidelines.library.set_enabled(opened, document_id, operator(), enabled=enabled)
    if as_json:
        print_json(_as_json(shown))
        return
    state = "answers again from the next sync on" if enabled else "does not answer any more"
    say(f"{shown.file_name} {state}.")


@with_reading_session
def chunks(
    session: Session, organization: str, project: str, document_id: str, *, as_json: bool
) -> None:
    """Print the passages of a document, and what was withheld or masked."""
    guidelines, opened = _opened(session, organization, project)
    found = guidelines.library.chunks(opened, document_id)
    if as_json:
        print_json(_as_json(found))
        return
    if not found.answers:
        warn("these passages do not answer yet")
    for one in found.chunks:
        page = "" if one.page is None else f", page {one.page}"
        headings = "".join(f" › {heading}" for heading in one.heading_path)
        context = f"{one.context}\n" if one.context else ""
        say(f"--- {one.chunk_index + 1}{page}{headings} ({one.tokens} tokens)")
        say(f"{context}{one.text}\n")
    for dropped in found.dropped:
        say(f"{dropped.chunk_index + 1} is withheld: {', '.join(dropped.rules)}")
    for masked in found.masked:
        say(f"masked: {masked.rule}, line {', '.join(map(str, masked.lines))}")


@with_reading_session
def usage(session: Session, organization: str, project: str, *, days: int, as_json: bool) -> None:
    """Print what a project has used, by day and model."""
    guidelines, opened = _opened(session, organization, project)
    found = guidelines.usage.of(opened, days)
    if as_json:
        print_json(_as_json(found))
        return
    print_table(
        ["day", "provider", "model", "requests", "tokens", "dollars"],
        [
            (
                *(str(one.day), one.provider, one.model, one.used.requests, one.used.tokens),
                f"{one.used.cost:.4f}",
            )
            for one in found.days
        ],
    )
    say(f"This month: ${found.month.cost:.4f}, {found.month.tokens:,} tokens")
    for cap in found.caps:
        note = " (reached)" if cap.reached else ""
        say(f"{cap.name}: ${cap.spent:.4f} of ${cap.dollars:.4f}{note}")
    say(f"Waiting: {found.waiting.documents} documents, {found.waiting.tokens:,} tokens")


@with_session
def text(
    session: Session,
    organization: str,
    project: str,
    *,
    file: str | None,
    clear: bool,
    as_json: bool,
) -> None:
    """Print a project's plain text, or set it."""
    if file is not None and clear:
        raise ConfigurationError("--file and --clear exclude each other", hint="give one of them")
    _, opened = _opened(session, organization, project)
    texts = GuidelineTexts(session.catalog.database)
    found = texts.get(opened.ref.id)
    is_set = file is not None or clear
    if is_set:
        new = "" if file is None else _read(file)
        require_usable(new, masker_of(session.settings.local))
        replaces = None if found is None else {found.version}
        found = texts.put(opened.ref, new, by=operator(), replaces=replaces)
    if as_json:
        print_json(_as_json(_shown_text(found)))
    elif is_set:
        say("The text is set." if found and found.text else "There is no text any more.")
    elif found is None or found.is_blank:
        say("There is no text.")
    else:
        say(found.text)


@with_reading_session
def context(
    session: Session,
    organization: str,
    project: str,
    given: Mapping[str, Any],
    *,
    caller: Caller,
    as_json: bool,
) -> None:
    """Print the section that a prompt gets."""
    session.require_trusted_grants(caller.principals)
    request = _request(given)
    _, opened = _opened(session, organization, project)
    found = asyncio.run(_context(session, opened, request, caller))
    if as_json:
        print_json(_as_json(found))
        return
    if found.reason is not None:
        threshold = f" of {found.threshold}" if found.threshold is not None else ""
        nearest = f"; the nearest is at {found.nearest}" if found.nearest is not None else ""
        warn(f"no passages: {found.reason.replace('-', ' ')}{threshold}{nearest}; {found.detail}")
    if found.omitted:
        warn(f"{found.omitted} passages did not fit into {request.token_budget} tokens")
    for miss in found.near_misses or ():
        warn(f"nearly taken, at {miss.score}: {miss.file_name}: {miss.excerpt}")
    say(found.section or "There are no guidelines for this task.")


async def _context(
    session: Session, opened: OpenProject, request: ContextRequest, caller: Caller
) -> GuidelinesContext:
    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    try:
        reader = DocumentReader(session.catalog, session.store, retriever.policy)
        contexts = Contexts(session.catalog, retriever, reader)
        return await contexts.of(opened.record, request, caller)
    finally:
        await retriever.close()


def _request(given: Mapping[str, Any]) -> ContextRequest:
    try:
        return ContextRequest.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ConfigurationError(
            problem_of(first), hint="see `rag-assets guidelines context --help`"
        ) from None


def _opened(session: Session, organization: str, project: str) -> tuple[Guidelines, OpenProject]:
    settings = session.settings
    blobs = open_blobs(settings)
    uploads = Uploads(session.catalog, blobs, lambda: masker_of(settings.local))
    guidelines = Guidelines(session.catalog, session.embedders, blobs, uploads)
    record = Projects(session.catalog, settings).get(Project(PROFILE, organization, project))
    return guidelines, guidelines.projects.opened(record)


def _taking(guidelines: Guidelines, opened: OpenProject) -> UploadsConfig:
    """The source that takes files; what is missing is told as commands mend it."""
    try:
        return guidelines.library.require_uploads(opened)
    except GuidelinesOff:
        raise guidelines_off(opened.organization_id) from None
    except NoProviderKey as error:
        raise NoProviderKey(
            error.message, hint=f"set it: rag-assets keys set {opened.ref.id} {error.provider}"
        ) from None


def _uploaded(
    guidelines: Guidelines,
    opened: OpenProject,
    source: UploadsConfig,
    path: Path,
    replaces: str | None,
) -> UploadedDocument:
    uploads = guidelines.library.uploads
    try:
        file = path.open("rb")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}", hint="name files that you may read"
        ) from None
    with file, uploads.receive(opened.ref) as received:
        for piece in iter(partial(file.read, _PIECE_BYTES), b""):
            require_size(received.size + len(piece), source)
            received.write(piece)
        stored = uploads.accept(
            opened.ref, source, received, file_name=path.name, by=operator(), replaces=replaces
        )
    shown = guidelines.library.document(opened, stored.upload.id)
    return UploadedDocument(shown, stored.duplicate)


def _read(file: str) -> str:
    """The text of a file, no more of it than can be kept and one character."""
    try:
        if file == _STANDARD_INPUT:
            return sys.stdin.read(MAX_TEXT + 1)
        with Path(file).open(encoding="utf-8-sig", newline="") as stream:
            return stream.read(MAX_TEXT + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(
            f"{file} cannot be read: {reason}", hint="give a file with plain text"
        ) from None


def _shown_text(found: GuidelineText | None) -> GuidelinesText:
    if found is None:
        return GuidelinesText(text="", updated_by=None, updated_at=None)
    return GuidelinesText(
        text=found.text,
        updated_by=found.updated_by,
        updated_at=found.updated_at,
        etag=f'"{found.version}"',
    )


def _as_json(value: object) -> Any:
    return TypeAdapter(type(value)).dump_python(value, mode="json", by_alias=True)
