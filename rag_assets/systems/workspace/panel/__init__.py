"""Panel pages of workspaces: status, records, tree, warnings and settings."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, get_args

from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response

from rag_assets.api.knowledge_routes import read_status_of_records
from rag_assets.api.model import Reindex
from rag_assets.api.record_routes import describe_reason, list_record_states, read_record_status
from rag_assets.api.responses import RecordWhereabouts
from rag_assets.api.workspace_responses import PageAccess
from rag_assets.api.write_routes import request_reindex
from rag_assets.common.errors import (
    ConfiguredByOperator,
    InvalidRequest,
    NoVectorBackend,
    UnknownDocument,
)
from rag_assets.common.failure_kinds import WORDS, FailureKind
from rag_assets.common.formatting import duration, format_count
from rag_assets.common.invalid_values import describe_first_problem
from rag_assets.ingest.sources.record_bodies import BODIES
from rag_assets.ingest.sources.records import ROOT, build_page_scope, compute_record_document_id
from rag_assets.models.embedding.model_folder import DEFAULT_MODEL
from rag_assets.models.providers.local import E5_MODEL
from rag_assets.panel.frame import PanelPage, SystemPanel, Visit
from rag_assets.records.text_records import find_records_source
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.records.states import RecordFilter, RecordState, RecordStatus
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.workspace.errors import PROFILE, NoWorkspace
from rag_assets.systems.workspace.page_table import PageLists
from rag_assets.systems.workspace.settings import (
    SettingsDraft,
    SettingsService,
    build_settings_response,
)
from rag_assets.systems.workspace.tree import compute_effective_access, create_root
from rag_assets.systems.workspace.tree_service import TreeService
from rag_assets.tenants.application_settings import Provider, VectorBackend
from rag_assets.tenants.model import Tenant

PAGE: Final = 50
"""Number of rows on a page of a list."""

_MAX_PARAMETER_CHARACTERS: Final = 1_000


async def open_workspace(visit: Visit) -> TenantRecord:
    """Return the current record of the session's workspace.

    Raises:
        UnknownTenant: the workspace was removed.
        NoWorkspace: the tenant's profile has changed.
    """
    record = await visit.read(partial(visit.backend.catalog.tenants.get, visit.tenant_id))
    if record.profile != PROFILE:
        raise NoWorkspace("this tenant is no longer a workspace", hint="sign in again")
    return record


def get_query_text(visit: Visit, name: str) -> str:
    """Return a query parameter, cut to 1,000 characters and without NUL characters."""
    return visit.request.query_params.get(name, "").replace("\x00", "")[:_MAX_PARAMETER_CHARACTERS]


_REINDEX: Final[TypeAdapter[Reindex]] = TypeAdapter(Reindex)
_UNDER_WAY: Final = frozenset({"BUILDING", "COMPLETE", "HELD"})
_MAX_LATEST_WARNINGS: Final = 5
_SWITCH_MESSAGES: Final = {
    "on": "The workspace is switched on. All of it is indexed again.",
    "off": "The workspace is switched off. Searches report that, and nothing is indexed.",
}
_UNPROCESSABLE: Final = 422


async def show_overview(visit: Visit) -> Response:
    """Show the switch, the status, warnings, and forms to index documents again."""
    done = _SWITCH_MESSAGES.get(visit.request.query_params.get("done", ""), "")
    count = visit.request.query_params.get("again", "")
    if count.isascii() and count.isdecimal() and len(count) <= len("1000000"):
        done = f"{format_count(int(count), 'document')} will be indexed again."
    return await _render_overview(visit, await open_workspace(visit), done=done)


async def show_status(visit: Visit) -> Response:
    """Return the HTML of the status alone, which the script puts into the page."""
    record = await open_workspace(visit)
    return visit.html("status.html", **await visit.read(lambda: _read_status(visit, record)))


async def switch_workspace(visit: Visit) -> Response:
    """Switch the workspace on or off; ask for confirmation before switching off."""
    record = await open_workspace(visit)
    on = visit.field("enabled") == "yes"
    if not on and not visit.field("confirmed"):
        return visit.html("switch_off.html")
    service = SettingsService.from_backend(visit.backend)
    draft = SettingsDraft(enabled=on)
    try:
        await visit.write(lambda: service.change(record.id, draft, visit.user))
    except ConfiguredByOperator:
        problem = "The operator has switched this workspace off. Ask the operator to switch it on."
        return await _render_overview(visit, record, problem=problem, code=409)
    return visit.redirect(f"?done={'on' if on else 'off'}")


async def reindex_documents(visit: Visit) -> Response:
    """Index documents again; if a model is pending, ask for confirmation first."""
    record = await open_workspace(visit)
    scope, id_ = visit.field("scope"), visit.field("id").strip()
    body: dict[str, Any] = {"scope": scope} if scope == "workspace" else {"scope": scope, "id": id_}
    try:
        reindex_request = _REINDEX.validate_python(body)
    except ValidationError:
        return await _render_overview(
            visit, record, problem="No page or database has this id.", code=_UNPROCESSABLE
        )
    if scope == "workspace" and not visit.field("confirmed"):
        status = await visit.read(lambda: _read_status(visit, record))
        if status["told"].pending_model is not None:
            return visit.html("new_model.html", **status)
    catalog = visit.backend.catalog
    try:
        done = await visit.write(
            lambda: request_reindex(catalog, record.id, reindex_request, visit.user)
        )
    except (UnknownDocument, InvalidRequest) as error:
        return await _render_overview(visit, record, problem=f"{error.advice}.", code=404)
    return visit.redirect(f"?again={done.documents}")


async def _render_overview(
    visit: Visit, record: TenantRecord, *, done: str = "", problem: str = "", code: int = 200
) -> Response:
    def read() -> dict[str, Any]:
        warnings = visit.backend.catalog.events.page(
            record.id,
            kinds={"secret_dropped", "secret_masked"},
            limit=_MAX_LATEST_WARNINGS,
            readers=visit.caller.principals,
        )
        return {**_read_status(visit, record), "warnings": warnings}

    return visit.html("overview.html", code, **await visit.read(read), done=done, problem=problem)


def _read_status(visit: Visit, record: TenantRecord) -> dict[str, Any]:
    catalog = visit.backend.catalog
    status = read_status_of_records(catalog, record, readers=None)
    settings = build_settings_response(record)
    build = _find_pending_build(catalog, record)
    filling = status.backfilled is False and not status.disabled
    return {
        "told": status,
        "settings": settings,
        "build": build,
        "filling": filling,
        "moves": not status.disabled and bool(status.queue_depth or build or filling),
        "duration": duration,
    }


def _find_pending_build(catalog: Catalog, record: TenantRecord) -> dict[str, Any] | None:
    """Return embedders and progress of the build that will replace the serving build, if any."""
    builds = catalog.generations.live(record.id)
    pending = [build for build in builds if build.state in _UNDER_WAY]
    if not pending:
        return None
    newest = pending[-1]
    answering = next((build for build in builds if build.state == "SERVING"), None)
    progress = catalog.build_progress.read(record.id, {newest.number: None})[newest.number]
    return {
        "embedder": newest.embedder_id,
        "former": None if answering is None else answering.embedder_id,
        "documents": progress.documents,
        "of_documents": progress.of_documents,
    }


_MAX_DIGITS = 18


async def show_warnings(visit: Visit) -> Response:
    """List all warnings, newest first, without URLs of documents that the user may not read."""
    record = await open_workspace(visit)
    after = get_query_text(visit, "after")
    before = (
        int(after) if after.isascii() and after.isdecimal() and len(after) <= _MAX_DIGITS else None
    )
    warnings = await visit.read(
        partial(
            visit.backend.catalog.events.page,
            record.id,
            kinds={"secret_dropped", "secret_masked"},
            before=before,
            limit=PAGE + 1,
            readers=visit.caller.principals,
        )
    )
    following = warnings[PAGE - 1].id if len(warnings) > PAGE else None
    return visit.html("warnings.html", warnings=warnings[:PAGE], following=following)


_FIELDS: Final = (
    *("provider", "embedding_model", "base_url", "dimensions"),
    *("vector_backend", "resolved_comment_days"),
)
_NUMBERS: Final = frozenset({"dimensions", "resolved_comment_days"})
_LABELS: Final = {
    "provider": "Provider",
    "embedding_model": "Model",
    "base_url": "Server",
    "dimensions": "Dimensions",
    "vector_backend": "Vectors",
    "resolved_comment_days": "Days",
}
_NAMES: Final = {
    "openai": "OpenAI",
    "gemini": "Google Gemini",
    "localai": "LocalAI",
    "ollama": "Ollama",
    "local": "the local model",
    "elasticsearch": "Elasticsearch",
    "pgvector": "pgvector",
}
_LOCAL_MODELS: Final = (
    (DEFAULT_MODEL, "English"),
    (E5_MODEL, "about a hundred languages, four to six times the computing time"),
)


async def show_settings(visit: Visit) -> Response:
    """Show the settings in a form."""
    is_saved = visit.request.query_params.get("done") == "saved"
    done = "The settings are saved." if is_saved else ""
    return await _render_form(visit, await open_workspace(visit), done=done)


async def save_settings(visit: Visit) -> Response:
    """Save the settings in the form; if a value is invalid, show the form with the problem."""
    record = await open_workspace(visit)
    sent = {name: visit.field(name).strip() for name in _FIELDS}
    service = SettingsService.from_backend(visit.backend)
    try:
        draft = SettingsDraft.model_validate(
            {name: _parse_value(name, sent[name]) for name in _FIELDS}
        )
        await visit.write(partial(service.change, record.id, draft, visit.user))
    except ValidationError as error:
        problem = describe_first_problem(error)
    except (InvalidRequest, NoVectorBackend) as error:
        problem = error.advice
    else:
        return visit.redirect("/settings?done=saved")
    return await _render_form(
        visit, record, problem=_replace_field_name_by_label(problem), sent=sent, status=422
    )


async def _render_form(
    visit: Visit,
    record: TenantRecord,
    *,
    done: str = "",
    problem: str = "",
    sent: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    own: dict[str, Any] = {
        name: "" if (value := getattr(record.settings, name)) is None else str(value)
        for name in _FIELDS
    }
    return visit.html(
        "settings.html",
        status,
        settings=build_settings_response(record),
        form=own if sent is None else sent,
        done=done,
        problem=problem,
        providers=get_args(Provider),
        backends=get_args(VectorBackend),
        local_models=_LOCAL_MODELS,
        named=lambda name: _NAMES.get(name, name),
    )


def _replace_field_name_by_label(problem: str) -> str:
    """Replace the name of the field in a problem by its label in the form."""
    field, colon, rest = problem.partition(": ")
    return f"{_LABELS.get(field, field)}{colon}{rest}."


def _parse_value(name: str, text: str) -> str | int | None:
    if not text:
        return None
    is_number = text.isascii() and text.isdecimal() and len(text) <= len("1000000")
    return int(text) if name in _NUMBERS and is_number else text


_RECORD_KEY: Final = ("source", "type", "id")


async def show_records(visit: Visit) -> Response:
    """List the records that the user may read, page by page."""
    record = await open_workspace(visit)
    status, source_type = get_query_text(visit, "status"), get_query_text(visit, "type")
    after = tuple(get_query_text(visit, f"after_{name}") for name in _RECORD_KEY)
    record_filter = RecordFilter(
        status=_parse_status(status),
        source_type=source_type if source_type in BODIES else None,
        page_uuid=get_query_text(visit, "page").strip() or None,
        after=after if all(after) else None,  # type: ignore[arg-type]
    )
    states = await visit.read(partial(_read_record_page, visit, record, record_filter))
    shown_states = states[:PAGE]
    return visit.html(
        "records.html",
        records=shown_states,
        following=_build_next_parameters(record_filter, shown_states[-1])
        if len(states) > PAGE
        else None,
        chosen=record_filter,
        statuses=get_args(RecordStatus),
        types=tuple(type_ for type_ in BODIES if type_ != "block"),
        reason=describe_reason,
        remedy=_find_remedy,
    )


async def show_record(visit: Visit) -> Response:
    """Show one record; respond with 404 if it does not exist or the user may not read it."""
    record = await open_workspace(visit)
    source, source_type, source_id = (get_query_text(visit, name) for name in _RECORD_KEY)
    pushed = _find_records_source_and_scope(record, source)
    scope, document_id = pushed[1], compute_record_document_id(pushed[0], source_type, source_id)

    def read() -> tuple[RecordState | None, RecordWhereabouts]:
        backend, tenant_id = visit.backend, record.id
        whereabouts = read_record_status(
            backend.reader,
            tenant_id,
            visit.caller,
            source_id=source_id,
            document_id=document_id,
            scope=scope,
        )
        principals = backend.reader.policy.principals(visit.caller)
        states = backend.catalog.record_states
        return states.find(tenant_id, document_id, principals, scope=scope), whereabouts

    state, whereabouts = await visit.read(read)
    if state is None:
        raise UnknownDocument(
            "the workspace has no record with this id",
            hint="choose a record from the list of records",
        )
    return visit.html("record.html", state=state, found=whereabouts, remedy=_find_remedy)


def _read_record_page(
    visit: Visit, record: TenantRecord, record_filter: RecordFilter
) -> list[RecordState]:
    tenant = Tenant.from_config(record.config)
    return list_record_states(
        visit.backend.reader, tenant, visit.caller, record_filter, limit=PAGE + 1
    )


def _find_records_source_and_scope(record: TenantRecord, name: str) -> tuple[str, str]:
    """Return the name of a source of records, and the access scope of records without a page.

    Args:
        name: name of the source; "" stands for the only source of the tenant.

    Raises:
        NoRecordsSource: no source has this name, or the tenant has several sources.
    """
    tenant = Tenant.from_config(record.config)
    source = find_records_source(tenant, name or None, pulled=True)
    return source.name, source.scope or tenant.access.scope


def _build_next_parameters(record_filter: RecordFilter, last: RecordState) -> dict[str, Any]:
    next_parameters = {
        "status": record_filter.status,
        "type": record_filter.source_type,
        "page": record_filter.page_uuid,
        "after_source": last.source,
        "after_type": last.source_type,
        "after_id": last.source_id,
    }
    return {name: value for name, value in next_parameters.items() if value}


def _parse_status(text: str) -> RecordStatus | None:
    return next((arg for arg in get_args(RecordStatus) if arg == text), None)


def _find_remedy(kind: FailureKind | None) -> str:
    return WORDS[kind or "unreadable"].remedy


_MAX_SHOWN_NAMES = 100
_MAX_SHOWN_READERS = 50


async def show_tree(visit: Visit) -> Response:
    """Show one page of the tree, and the first pages below it."""
    record = await open_workspace(visit)
    uuid = get_query_text(visit, "page").strip() or ROOT
    after = get_query_text(visit, "after") or None
    names = [name.strip() for name in get_query_text(visit, "who").split(",")]
    who = tuple(dict.fromkeys(name for name in names if name))[:_MAX_SHOWN_NAMES]
    page_view = await visit.read(partial(_build_page_view, visit, record, uuid, after, who))
    return visit.html("tree.html", uuid=uuid, root=ROOT, who=", ".join(who), **page_view)


async def list_unplaced_pages(visit: Visit) -> Response:
    """List the pages below an unknown page."""
    record = await open_workspace(visit)
    lists = PageLists(visit.backend.catalog.database)
    after = get_query_text(visit, "after") or None

    def read() -> tuple[list[Any], dict[str, str]]:
        pages = lists.list_unplaced(record.id, after=after, limit=PAGE + 1)
        return pages, _read_titles(visit, [listed_page.page.uuid for listed_page in pages])

    pages, titles = await visit.read(read)
    return visit.html(
        "unplaced.html", pages=pages[:PAGE], following=_find_next_uuid(pages), titles=titles
    )


def _build_page_view(
    visit: Visit, record: TenantRecord, uuid: str, after: str | None, who: tuple[str, ...]
) -> dict[str, Any]:
    catalog, tenant_id = visit.backend.catalog, record.id
    lists = PageLists(catalog.database)
    path = lists.read_path(tenant_id, uuid)
    if uuid == ROOT and not path:
        path = [create_root()]
    access = compute_effective_access(path)
    below = lists.list_children(tenant_id, uuid, after=after, limit=PAGE + 1)
    uuids = [*(page.uuid for page in path), *(listed_page.page.uuid for listed_page in below)]
    verdict: PageAccess | None = None
    if who:
        tree = TreeService(catalog, visit.backend.blobs, visit.backend.retriever.masker)
        verdict = tree.explain_access(tenant_id, uuid, who)
    return {
        "path": path,
        "page": path[-1] if path else None,
        "access": access,
        "out": next((page for page in path if page.is_excluded), None),
        "readers": _list_readers_by_page(
            catalog, tenant_id, access.scopes, is_new=path == [create_root()]
        ),
        "below": below[:PAGE],
        "following": _find_next_uuid(below),
        "titles": _read_titles(visit, uuids),
        "verdict": verdict,
        "unplaced": uuid == ROOT and bool(lists.list_unplaced(tenant_id, after=None, limit=1)),
        "shown_readers": _MAX_SHOWN_READERS,
    }


def _list_readers_by_page(
    catalog: Catalog, tenant_id: str, scopes: tuple[str, ...], *, is_new: bool
) -> list[tuple[str, list[str]]]:
    """Return the pages that these scopes belong to, each with the principals that may read it.

    Args:
        scopes: the scopes that grant access to a page, the nearest first.
        is_new: whether the root page is not stored yet; all members may then read it.
    """
    grants = catalog.access.grants(tenant_id, scopes)
    if is_new and not grants:
        grants = {build_page_scope(ROOT): [*create_root().readers]}
    return [(scope.removeprefix(build_page_scope("")), grants.get(scope, [])) for scope in scopes]


def _read_titles(visit: Visit, uuids: list[str]) -> dict[str, str]:
    principals = visit.backend.reader.policy.principals(visit.caller)
    lists = PageLists(visit.backend.catalog.database)
    return lists.read_titles(visit.tenant_id, uuids, principals)


def _find_next_uuid(pages: list[Any]) -> str | None:
    return pages[PAGE - 1].page.uuid if len(pages) > PAGE else None


PANEL = SystemPanel(
    name="workspace",
    path="workspace",
    package="rag_assets.systems.workspace.panel",
    tabs={
        "": "Status",
        "/records": "Records",
        "/tree": "Tree",
        "/warnings": "Warnings",
        "/settings": "Settings",
    },
    pages=(
        PanelPage("", show_overview),
        PanelPage("/status", show_status, is_use=False),
        PanelPage("/switch", switch_workspace, "POST"),
        PanelPage("/reindex", reindex_documents, "POST"),
        PanelPage("/records", show_records),
        PanelPage("/record", show_record),
        PanelPage("/tree", show_tree),
        PanelPage("/tree/unplaced", list_unplaced_pages),
        PanelPage("/warnings", show_warnings),
        PanelPage("/settings", show_settings),
        PanelPage("/settings", save_settings, "POST"),
    ),
)
