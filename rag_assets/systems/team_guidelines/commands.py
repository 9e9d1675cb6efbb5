"""The commands `rag-assets guidelines`.

The JSON output equals the responses of the endpoints below `/api`. Commands import the system's
services where they use them, so that help is printed quickly.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from pydantic import TypeAdapter, ValidationError

from rag_assets.cli.arguments import (
    AsOption,
    Json,
    OrganizationArgument,
    ProjectArgument,
    RoleOption,
    build_caller,
)
from rag_assets.cli.output import print_json, print_table, say, warn
from rag_assets.cli.session import Session, operator, with_reading_session, with_session
from rag_assets.common.errors import (
    ConfigurationError,
    NoProviderKey,
    RagAssetsError,
    UnknownDocument,
)
from rag_assets.common.invalid_values import describe_first_problem

if TYPE_CHECKING:
    from rag_assets.api.guideline_responses import (
        GuidelineDocument,
        GuidelinesContext,
        UploadedDocument,
    )
    from rag_assets.ingest.sources.uploads import UploadsConfig
    from rag_assets.search.model import Caller
    from rag_assets.systems.team_guidelines.contexts import ContextRequest
    from rag_assets.systems.team_guidelines.projects import OpenProject
    from rag_assets.systems.team_guidelines.service import Guidelines

_BLOCK_BYTES = 1 << 20
_DOCUMENTS_PER_PAGE = 100
_STANDARD_INPUT = "-"

DocumentArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the document.")
]

app = typer.Typer(help="Guidelines of a team's projects, for prompts.", no_args_is_help=True)


@app.command("upload")
@with_session
def upload(
    session: Session,
    organization: OrganizationArgument,
    project: ProjectArgument,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The files.")],
    replaces: Annotated[
        str | None,
        typer.Option("--replaces", help="Id of the document that the file replaces."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Upload documents to a project; the next sync indexes them."""
    if replaces is not None and len(files) > 1:
        raise ConfigurationError(
            "--replaces accepts exactly one FILE", hint="run the command with only one FILE"
        )
    guidelines, opened = _open_project(session, organization, project)
    source = _require_uploads(guidelines, opened)
    uploaded: list[UploadedDocument] = []
    refused: list[tuple[Path, RagAssetsError]] = []
    for file in files:
        try:
            uploaded.append(_upload_file(guidelines, opened, source, file, replaces))
        except RagAssetsError as error:
            if len(files) == 1:
                raise
            refused.append((file, error))
    if as_json:
        reasons = [{"file": file.name, "error": refusal.advice} for file, refusal in refused]
        print_json({"uploaded": list(map(_to_json, uploaded)), "refused": reasons})
    else:
        for stored in uploaded:
            outcome = "was already stored" if stored.duplicate else "uploaded"
            say(f"{stored.document.file_name}: {outcome}, as {stored.document.id}")
        for file, refusal in refused:
            say(f"{file.name}: refused: {refusal.advice}")
        if not all(stored.duplicate for stored in uploaded):
            say(f"`rag-assets sync {opened.ref.id}` indexes it, or the daemon within a minute.")
    if refused:
        raise ConfigurationError(
            f"{len(refused)} of {len(files)} files were refused",
            hint="correct each file as described in its line, then upload the file again",
        )


@app.command("list")
@with_reading_session
def list_documents(
    session: Session,
    organization: OrganizationArgument,
    project: ProjectArgument,
    as_json: Json = False,
) -> None:
    """List a project's documents with their status."""
    guidelines, opened = _open_project(session, organization, project)
    documents: list[GuidelineDocument] = []
    after: str | None = None
    while True:
        page = guidelines.library.list_page(opened, after=after, limit=_DOCUMENTS_PER_PAGE)
        documents += page.documents
        if (after := page.next) is None:
            break
    if as_json:
        shown = {"documents": list(map(_to_json, documents)), "key": _to_json(page.key)}
        print_json({**shown, "ragGuidelines": page.rag_guidelines})
        return
    if not page.rag_guidelines:
        warn(
            f"the guidelines are switched off; run `rag-assets organizations put {organization}"
            " --guidelines` to switch them on"
        )
    print_table(
        ["file", "id", "status", "stage", "chunks", "tokens", "bytes", "by", "uploaded", "reason"],
        [
            (
                *(document.file_name, document.id, document.status, document.stage or ""),
                *(_format_count(document.chunk_count), _format_count(document.token_count)),
                *(document.size, document.uploaded_by),
                f"{document.updated_at:%Y-%m-%d %H:%M} UTC",
                document.error_message or document.note or "",
            )
            for document in documents
        ],
    )


def _format_count(number: int | None) -> int | str:
    return "" if number is None else number


@app.command("delete")
@with_session
def delete(
    session: Session,
    organization: OrganizationArgument,
    project: ProjectArgument,
    document_id: DocumentArgument,
    as_json: Json = False,
) -> None:
    """Delete a document; contexts leave out its passages immediately."""
    guidelines, opened = _open_project(session, organization, project)
    deleted = guidelines.library.delete(opened, document_id, operator())
    if deleted.outcome != "removed":
        raise UnknownDocument(
            "the project has no document with this id",
            hint=f"`rag-assets guidelines list {organization} {project}` lists the ids of its"
            " documents",
        )
    text = f"{document_id} is deleted; contexts no longer contain its passages."
    _print_value(deleted, text, as_json=as_json)


@app.command("retry")
@with_session
def retry(
    session: Session,
    organization: OrganizationArgument,
    project: ProjectArgument,
    document_id: DocumentArgument,
    as_json: Json = False,
) -> None:
    """Retry a document that failed; the next sync processes it."""
    guidelines, opened = _open_project(session, organization, project)
    document, is_retried = guidelines.library.retry(opened, document_id, operator())
    text = f"{document.file_name} has not failed: it is {document.status}."
    if is_retried:
        text = f"{document.file_name} will be processed again by `rag-assets sync {opened.ref.id}`."
    _print_value(document, text, as_json=as_json)


@app.command("enable")
@with_session
def enable(
    session: Session,
    organization: OrganizationArgument,
    project: ProjectArgument,
    document_id: DocumentArgument,
    as_json: Json = False,
) -> None:
    """Include a document in answers again, without embedding it again."""
    document = _set_enabled(session, organization, project, document_id, enabled=True)
    state = "is included in answers from the next sync on"
    _print_value(document, f"{document.file_name} {state}.", as_json=as_json)


@app.command("disable")
@with_session
def disable(
    session: Session,
    organization: OrganizationArgument,
    project: ProjectArgument,
    document_id: DocumentArgument,
    as_json: Json = False,
) -> None:
    """Exclude a document from answers, and keep its passages and vectors."""
    document = _set_enabled(session, organization, project, document_id, enabled=False)
    _print_value(document, f"{document.file_name} is excluded from answers.", as_json=as_json)


def _set_enabled(
    session: Session, organization: str, project: str, document_id: str, *, enabled: bool
) -> GuidelineDocument:
    guidelines, opened = _open_project(session, organization, project)
    return guidelines.library.set_enabled(opened, document_id, operator(), enabled=enabled)


@app.command("chunks")
@with_reading_session
def chunks(
    session: Session,
    organization: OrganizationArgument,
    project: ProjectArgument,
    document_id: DocumentArgument,
    as_json: Json = False,
) -> None:
    """Print the passages of a document, as a model gets them."""
    guidelines, opened = _open_project(session, organization, project)
    document = guidelines.library.read_chunks(opened, document_id)
    if as_json:
        print_json(_to_json(document))
        return
    if not document.answers:
        warn("searches do not find these passages yet")
    for chunk in document.chunks:
        page = "" if chunk.page is None else f", page {chunk.page}"
        headings = "".join(f" › {heading}" for heading in chunk.heading_path)
        context = f"{chunk.context}\n" if chunk.context else ""
        say(f"--- {chunk.chunk_index + 1}{page}{headings} ({chunk.tokens} tokens)")
        say(f"{context}{chunk.text}\n")
    for dropped in document.dropped:
        say(f"{dropped.chunk_index + 1} is withheld: {', '.join(dropped.rules)}")
    for masked in document.masked:
        say(f"masked: {masked.rule}, line {', '.join(map(str, masked.lines))}")


@app.command("usage")
@with_reading_session
def usage(
    session: Session,
    organization: OrganizationArgument,
    project: ProjectArgument,
    days: Annotated[
        int, typer.Option(min=1, max=366, help="Number of days, including today.")
    ] = 30,
    as_json: Json = False,
) -> None:
    """Print a project's usage of its provider, its caps, and its waiting documents."""
    guidelines, opened = _open_project(session, organization, project)
    report = guidelines.usage.report(opened, days)
    if as_json:
        print_json(_to_json(report))
        return
    print_table(
        ["day", "provider", "model", "requests", "tokens", "dollars"],
        [
            (
                *(str(day.day), day.provider, day.model, day.used.requests, day.used.tokens),
                f"{day.used.cost:.4f}",
            )
            for day in report.days
        ],
    )
    say(f"This month: ${report.month.cost:.4f}, {report.month.tokens:,} tokens")
    for cap in report.caps:
        note = " (reached)" if cap.reached else ""
        say(f"{cap.name}: ${cap.spent:.4f} of ${cap.dollars:.4f}{note}")
    say(f"Waiting: {report.waiting.documents} documents, {report.waiting.tokens:,} tokens")


@app.command("text")
@with_session
def text(
    session: Session,
    organization: OrganizationArgument,
    project: ProjectArgument,
    file: Annotated[
        str | None, typer.Option("--file", help="File with the new text; - reads standard input.")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove the text.")] = False,
    as_json: Json = False,
) -> None:
    """Print a project's plain text, or set it."""
    if file is not None and clear:
        raise ConfigurationError(
            "--file and --clear cannot be combined", hint="use only one of them"
        )
    from rag_assets.privacy.masker import get_masker
    from rag_assets.systems.team_guidelines.texts import (
        GuidelineTexts,
        build_text_response,
        require_usable,
    )

    _, opened = _open_project(session, organization, project)
    texts = GuidelineTexts(session.catalog.database)
    stored = texts.get(opened.ref.id)
    is_change = file is not None or clear
    if is_change:
        new = "" if file is None else _read_text_file(file)
        require_usable(new, get_masker(session.settings.local))
        replaces = None if stored is None else {stored.version}
        stored = texts.put(opened.ref, new, by=operator(), replaces=replaces)
    if as_json:
        print_json(_to_json(build_text_response(stored)))
    elif is_change:
        say("The text is saved." if stored and stored.text else "The text is removed.")
    elif stored is None or stored.is_blank:
        say("No text is set.")
    else:
        say(stored.text)


@app.command("context")
@with_reading_session
def context(
    session: Session,
    organization: OrganizationArgument,
    project: ProjectArgument,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task of the prompt.")],
    top_k: Annotated[int, typer.Option(help="Maximum number of passages, up to 5.")] = 5,
    token_budget: Annotated[
        int, typer.Option(help="Maximum number of tokens, up to 2,000.")
    ] = 2_000,
    path: Annotated[
        list[str] | None,
        typer.Option("--path", help="A file of the task, for rules by path."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Also show near misses.")] = False,
    principal: AsOption = None,
    role: RoleOption = None,
    as_json: Json = False,
) -> None:
    """Print the section for a prompt, or the reason why it is missing."""
    caller = build_caller(principal, role)
    session.require_trusted_grants(caller.principals)
    values = {"task": task, "top_k": top_k, "token_budget": token_budget, "explain": explain}
    request = _parse_request(values | {"paths": path or []})
    _, opened = _open_project(session, organization, project)
    built = asyncio.run(_build_context(session, opened, request, caller))
    if as_json:
        print_json(_to_json(built))
        return
    if built.reason is not None:
        threshold = f" of {built.threshold}" if built.threshold is not None else ""
        nearest = f"; the nearest is at {built.nearest}" if built.nearest is not None else ""
        warn(
            f"no passages were found: {built.reason.replace('-', ' ')}{threshold}{nearest};"
            f" {built.detail}"
        )
    if built.omitted:
        warn(f"{built.omitted} passages did not fit into {request.token_budget} tokens")
    for miss in built.near_misses or ():
        warn(f"near miss with score {miss.score}: {miss.file_name}: {miss.excerpt}")
    say(built.section or "There are no guidelines for this task.")


async def _build_context(
    session: Session, opened: OpenProject, request: ContextRequest, caller: Caller
) -> GuidelinesContext:
    from rag_assets.search import AsyncRetriever
    from rag_assets.search.access import DocumentReader
    from rag_assets.systems.team_guidelines.contexts import Contexts

    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    try:
        reader = DocumentReader(session.catalog, session.store, retriever.policy)
        contexts = Contexts(session.catalog, retriever, reader)
        return await contexts.build(opened.record, request, caller)
    finally:
        await retriever.close()


def _parse_request(values: Mapping[str, Any]) -> ContextRequest:
    from rag_assets.systems.team_guidelines.contexts import ContextRequest

    try:
        return ContextRequest.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(
            describe_first_problem(error),
            hint="run `rag-assets guidelines context --help` for the allowed values",
        ) from None


def _open_project(
    session: Session, organization: str, project: str
) -> tuple[Guidelines, OpenProject]:
    from rag_assets.pipeline.tenancy import Projects
    from rag_assets.pipeline.uploads import UploadService
    from rag_assets.privacy.masker import get_masker
    from rag_assets.storage.blobs.store import open_blobs
    from rag_assets.systems.team_guidelines.projects import PROFILE
    from rag_assets.systems.team_guidelines.service import Guidelines
    from rag_assets.tenants.projects import Project

    settings = session.settings
    blobs = open_blobs(settings)
    uploads = UploadService(session.catalog, blobs, lambda: get_masker(settings.local))
    guidelines = Guidelines(session.catalog, session.embedders, blobs, uploads)
    record = Projects(session.catalog, settings).get(Project(PROFILE, organization, project))
    return guidelines, guidelines.projects.open_record(record)


def _require_uploads(guidelines: Guidelines, opened: OpenProject) -> UploadsConfig:
    """Return the source for uploads; the error for a missing key names the command to set it."""
    try:
        return guidelines.library.require_uploads(opened)
    except NoProviderKey as error:
        raise NoProviderKey(
            error.message,
            hint=f"set a valid key: rag-assets keys set {opened.ref.id} {error.provider}",
        ) from None


def _upload_file(
    guidelines: Guidelines,
    opened: OpenProject,
    source: UploadsConfig,
    path: Path,
    replaces: str | None,
) -> UploadedDocument:
    from rag_assets.api.guideline_responses import UploadedDocument
    from rag_assets.pipeline.uploads import require_size

    uploads = guidelines.library.uploads
    try:
        file = path.open("rb")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}",
            hint="choose files that you have permission to read",
        ) from None
    with file, uploads.receive(opened.ref) as received:
        for block in iter(partial(file.read, _BLOCK_BYTES), b""):
            require_size(received.size + len(block), source)
            received.write(block)
        stored = uploads.accept(
            opened.ref, source, received, file_name=path.name, by=operator(), replaces=replaces
        )
    document = guidelines.library.find(opened, stored.upload.id)
    return UploadedDocument(document, stored.duplicate)


def _read_text_file(file: str) -> str:
    """Return the text of a file, cut one character above the maximum to detect longer texts."""
    from rag_assets.systems.team_guidelines.texts import MAX_CHARACTERS

    try:
        if file == _STANDARD_INPUT:
            return sys.stdin.read(MAX_CHARACTERS + 1)
        with Path(file).open(encoding="utf-8-sig", newline="") as stream:
            return stream.read(MAX_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigurationError(
            f"{file} cannot be read: {reason}", hint="choose a plain text file in UTF-8"
        ) from None


def _print_value(value: object, text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(_to_json(value))
    else:
        say(text)


def _to_json(value: object) -> Any:
    return TypeAdapter(type(value)).dump_python(value, mode="json", by_alias=True)
