"""Panel pages of workspaces: status, records, tree, warnings and settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar, get_args

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
from rag_assets.search.model import Caller
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
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class WorkspaceServices:
    """The session's workspace, and the services for its pages.

    Attributes:
        record: current record of the workspace.
    """

    visit: Visit
    record: TenantRecord

    @property
    def by(self) -> str:
        """Return the name of the session's user, who is the author of changes."""
        return self.visit.session.name

    @property
    def caller(self) -> Caller:
        """Return the caller for reading documents; admins read only documents granted to them."""
        return Caller(principals=self.visit.session.principals, name=self.by)

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.visit.backend.run(self.record.id, self.by, work)

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run work that changes the workspace; see Backend.write."""
        return await self.visit.backend.write(self.record.id, work)


async def open_services(visit: Visit) -> WorkspaceServices:
    """Open the session's workspace.

    Raises:
        UnknownTenant: the workspace was removed.
        NoWorkspace: the tenant's profile has changed.
    """
    get = partial(visit.backend.catalog.tenants.get, visit.tenant_id)
    record = await visit.backend.run(visit.tenant_id, visit.session.name, get)
    if record.profile != PROFILE:
        raise NoWorkspace("this tenant is no longer a workspace", hint="sign in again")
    return WorkspaceServices(visit, record)


def query_text(visit: Visit, name: str) -> str:
    """Return a query parameter, cut to 1,000 characters and without NUL characters."""
    return visit.request.query_params.get(name, "").replace("\x00", "")[:_MAX_PARAMETER_CHARACTERS]


_REINDEX: Final[TypeAdapter[Reindex]] = TypeAdapter(Reindex)
_UNDER_WAY: Final = frozenset({"BUILDING", "COMPLETE", "HELD"})
_LATEST: Final = 5
_SWITCHED: Final = {
    "on": "The workspace is switched on. All of it is indexed again.",
    "off": "The workspace is switched off. Searches report that, and nothing is indexed.",
}
_UNPROCESSABLE: Final = 422


async def show_overview(visit: Visit) -> Response:
    """Show the switch, the status, warnings, and forms to index documents again."""
    done = _SWITCHED.get(visit.request.query_params.get("done", ""), "")
    count = visit.request.query_params.get("again", "")
    if count.isascii() and count.isdecimal() and len(count) <= len("1000000"):
        done = f"{format_count(int(count), 'document')} will be indexed again."
    return await _render_overview(await open_services(visit), done=done)


async def show_status(visit: Visit) -> Response:
    """Return the HTML of the status alone, which the script puts into the page."""
    services = await open_services(visit)
    return visit.html("status.html", **await services.read(lambda: _read_status(services)))


async def switch_workspace(visit: Visit) -> Response:
    """Switch the workspace on or off; ask for confirmation before switching off."""
    services = await open_services(visit)
    on = visit.field("enabled") == "yes"
    if not on and not visit.field("confirmed"):
        return visit.html("switch_off.html")
    service = SettingsService.from_backend(visit.backend)
    draft = SettingsDraft(enabled=on)
    try:
        await services.write(lambda: service.change(services.record.id, draft, services.by))
    except ConfiguredByOperator:
        problem = "The operator has switched this workspace off. Ask the operator to switch it on."
        return await _render_overview(services, problem=problem, code=409)
    return visit.redirect(f"?done={'on' if on else 'off'}")


async def reindex_documents(visit: Visit) -> Response:
    """Index documents again; if a model is pending, ask for confirmation first."""
    services = await open_services(visit)
    scope, id_ = visit.field("scope"), visit.field("id").strip()
    body: dict[str, Any] = {"scope": scope} if scope == "workspace" else {"scope": scope, "id": id_}
    try:
        wanted = _REINDEX.validate_python(body)
    except ValidationError:
        return await _render_overview(
            services, problem="No page or database has this id.", code=_UNPROCESSABLE
        )
    if scope == "workspace" and not visit.field("confirmed"):
        found = await services.read(lambda: _read_status(services))
        if found["told"].pending_model is not None:
            return visit.html("new_model.html", **found)
    catalog = visit.backend.catalog
    try:
        done = await services.write(
            lambda: request_reindex(catalog, services.record.id, wanted, services.by)
        )
    except (UnknownDocument, InvalidRequest) as error:
        return await _render_overview(services, problem=f"{error.advice}.", code=404)
    return visit.redirect(f"?again={done.documents}")


async def _render_overview(
    services: WorkspaceServices, *, done: str = "", problem: str = "", code: int = 200
) -> Response:
    def read() -> dict[str, Any]:
        warnings = services.visit.backend.catalog.events.page(
            services.record.id,
            kinds={"secret_dropped", "secret_masked"},
            limit=_LATEST,
            readers=services.caller.principals,
        )
        return {**_read_status(services), "warnings": warnings}

    return services.visit.html(
        "overview.html", code, **await services.read(read), done=done, problem=problem
    )


def _read_status(services: WorkspaceServices) -> dict[str, Any]:
    catalog, record = services.visit.backend.catalog, services.record
    found = read_status_of_records(catalog, record, readers=None)
    settings = build_settings_response(record)
    build = _find_pending_build(catalog, record)
    filling = found.backfilled is False and not found.disabled
    return {
        "told": found,
        "settings": settings,
        "build": build,
        "filling": filling,
        "moves": not found.disabled and bool(found.queue_depth or build or filling),
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


_LONGEST = 18


async def show_warnings(visit: Visit) -> Response:
    """List all warnings, newest first, without URLs of documents that the user may not read."""
    services = await open_services(visit)
    after = query_text(visit, "after")
    before = (
        int(after) if after.isascii() and after.isdecimal() and len(after) <= _LONGEST else None
    )
    found = await services.read(
        partial(
            visit.backend.catalog.events.page,
            services.record.id,
            kinds={"secret_dropped", "secret_masked"},
            before=before,
            limit=PAGE + 1,
            readers=services.caller.principals,
        )
    )
    following = found[PAGE - 1].id if len(found) > PAGE else None
    return visit.html("warnings.html", warnings=found[:PAGE], following=following)


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
    (E5_MODEL, "about a hundred languages, six to ten times the computing time"),
)


async def show_settings(visit: Visit) -> Response:
    """Show the settings in a form."""
    is_saved = visit.request.query_params.get("done") == "saved"
    done = "The settings are saved." if is_saved else ""
    return await _render_form(await open_services(visit), done=done)


async def save_settings(visit: Visit) -> Response:
    """Save the settings in the form; if a value is invalid, show the form with the problem."""
    services = await open_services(visit)
    sent = {name: visit.field(name).strip() for name in _FIELDS}
    service = SettingsService.from_backend(visit.backend)
    try:
        draft = SettingsDraft.model_validate(
            {name: _parse_value(name, sent[name]) for name in _FIELDS}
        )
        await services.write(partial(service.change, services.record.id, draft, services.by))
    except ValidationError as error:
        return await _render_form(
            services, problem=_use_field_label(describe_first_problem(error)), sent=sent, status=422
        )
    except (InvalidRequest, NoVectorBackend) as error:
        return await _render_form(
            services, problem=_use_field_label(error.advice), sent=sent, status=422
        )
    return visit.redirect("/settings?done=saved")


async def _render_form(
    services: WorkspaceServices,
    *,
    done: str = "",
    problem: str = "",
    sent: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    own: dict[str, Any] = {
        name: "" if (value := getattr(services.record.settings, name)) is None else str(value)
        for name in _FIELDS
    }
    return services.visit.html(
        "settings.html",
        status,
        settings=build_settings_response(services.record),
        form=own if sent is None else sent,
        done=done,
        problem=problem,
        providers=get_args(Provider),
        backends=get_args(VectorBackend),
        local_models=_LOCAL_MODELS,
        named=lambda name: _NAMES.get(name, name),
    )


def _use_field_label(problem: str) -> str:
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
    services = await open_services(visit)
    status, source_type = query_text(visit, "status"), query_text(visit, "type")
    after = tuple(query_text(visit, f"after_{name}") for name in _RECORD_KEY)
    chosen = RecordFilter(
        status=_parse_status(status),
        source_type=source_type if source_type in BODIES else None,
        page_uuid=query_text(visit, "page").strip() or None,
        after=after if all(after) else None,  # type: ignore[arg-type]
    )
    found = await services.read(partial(_read_page, services, chosen))
    shown = found[:PAGE]
    return visit.html(
        "records.html",
        records=shown,
        following=_build_next_parameters(chosen, shown[-1]) if len(found) > PAGE else None,
        chosen=chosen,
        statuses=get_args(RecordStatus),
        types=tuple(type_ for type_ in BODIES if type_ != "block"),
        reason=describe_reason,
        remedy=_find_remedy,
    )


async def show_record(visit: Visit) -> Response:
    """Show one record; respond with 404 if it does not exist or the user may not read it."""
    services = await open_services(visit)
    source, source_type, source_id = (query_text(visit, name) for name in _RECORD_KEY)
    pushed = _find_source(services, source)
    scope, document_id = pushed[1], compute_record_document_id(pushed[0], source_type, source_id)

    def read() -> tuple[RecordState | None, RecordWhereabouts]:
        backend, tenant_id = visit.backend, services.record.id
        found = read_record_status(
            backend.reader,
            tenant_id,
            services.caller,
            source_id=source_id,
            document_id=document_id,
            scope=scope,
        )
        principals = backend.reader.policy.principals(services.caller)
        states = backend.catalog.record_states
        return states.find(tenant_id, document_id, principals, scope=scope), found

    state, found = await services.read(read)
    if state is None:
        raise UnknownDocument(
            "the workspace has no record with this id",
            hint="choose a record from the list of records",
        )
    return visit.html("record.html", state=state, found=found, remedy=_find_remedy)


def _read_page(services: WorkspaceServices, chosen: RecordFilter) -> list[RecordState]:
    tenant = Tenant.from_config(services.record.config)
    return list_record_states(
        services.visit.backend.reader, tenant, services.caller, chosen, limit=PAGE + 1
    )


def _find_source(services: WorkspaceServices, name: str) -> tuple[str, str]:
    """Return the name of a source of records, and the scope of its records without a page.

    Args:
        name: empty for the only source of the tenant.

    Raises:
        NoRecordsSource: no source has this name, or the tenant has several sources.
    """
    tenant = Tenant.from_config(services.record.config)
    source = find_records_source(tenant, name or None, pulled=True)
    return source.name, source.scope or tenant.access.scope


def _build_next_parameters(chosen: RecordFilter, last: RecordState) -> dict[str, Any]:
    named = {
        "status": chosen.status,
        "type": chosen.source_type,
        "page": chosen.page_uuid,
        "after_source": last.source,
        "after_type": last.source_type,
        "after_id": last.source_id,
    }
    return {name: value for name, value in named.items() if value}


def _parse_status(text: str) -> RecordStatus | None:
    return next((arg for arg in get_args(RecordStatus) if arg == text), None)


def _find_remedy(kind: FailureKind | None) -> str:
    return WORDS[kind or "unreadable"].remedy


_MOST_NAMES = 100
_SHOWN_READERS = 50


async def show_tree(visit: Visit) -> Response:
    """Show one page of the tree, and the first pages below it."""
    services = await open_services(visit)
    uuid = query_text(visit, "page").strip() or ROOT
    after = query_text(visit, "after") or None
    names = [name.strip() for name in query_text(visit, "who").split(",")]
    who = tuple(dict.fromkeys(name for name in names if name))[:_MOST_NAMES]
    found = await services.read(partial(_build_page_view, services, uuid, after, who))
    return visit.html("tree.html", uuid=uuid, root=ROOT, who=", ".join(who), **found)


async def list_unplaced_pages(visit: Visit) -> Response:
    """List the pages below an unknown page."""
    services = await open_services(visit)
    lists = PageLists(visit.backend.catalog.database)
    after = query_text(visit, "after") or None

    def read() -> tuple[list[Any], dict[str, str]]:
        found = lists.list_unplaced(services.record.id, after=after, limit=PAGE + 1)
        return found, _read_titles(services, [one.page.uuid for one in found])

    found, titles = await services.read(read)
    return visit.html(
        "unplaced.html", pages=found[:PAGE], following=_find_next_uuid(found), titles=titles
    )


def _build_page_view(
    services: WorkspaceServices, uuid: str, after: str | None, who: tuple[str, ...]
) -> dict[str, Any]:
    catalog, tenant_id = services.visit.backend.catalog, services.record.id
    lists = PageLists(catalog.database)
    path = lists.read_path(tenant_id, uuid)
    if uuid == ROOT and not path:
        path = [create_root()]
    access = compute_effective_access(path)
    below = lists.list_children(tenant_id, uuid, after=after, limit=PAGE + 1)
    uuids = [*(page.uuid for page in path), *(one.page.uuid for one in below)]
    verdict: PageAccess | None = None
    if who:
        verdict = TreeService.from_backend(services.visit.backend).explain_access(
            tenant_id, uuid, who
        )
    return {
        "path": path,
        "page": path[-1] if path else None,
        "access": access,
        "out": next((page for page in path if page.is_excluded), None),
        "readers": _list_readers(catalog, tenant_id, access.scopes, is_new=path == [create_root()]),
        "below": below[:PAGE],
        "following": _find_next_uuid(below),
        "titles": _read_titles(services, uuids),
        "verdict": verdict,
        "unplaced": uuid == ROOT and bool(lists.list_unplaced(tenant_id, after=None, limit=1)),
        "shown_readers": _SHOWN_READERS,
    }


def _list_readers(
    catalog: Catalog, tenant_id: str, scopes: tuple[str, ...], *, is_new: bool
) -> list[tuple[str, list[str]]]:
    """Return the pages that these scopes belong to, each with the principals that may read it.

    Args:
        scopes: the scopes that grant access to a page, the nearest first.
        is_new: whether the root was never put, so that all members may read it.
    """
    grants = catalog.access.grants(tenant_id, scopes)
    if is_new and not grants:
        grants = {build_page_scope(ROOT): [*create_root().readers]}
    return [(scope.removeprefix(build_page_scope("")), grants.get(scope, [])) for scope in scopes]


def _read_titles(services: WorkspaceServices, uuids: list[str]) -> dict[str, str]:
    principals = services.visit.backend.reader.policy.principals(services.caller)
    lists = PageLists(services.visit.backend.catalog.database)
    return lists.read_titles(services.record.id, uuids, principals)


def _find_next_uuid(found: list[Any]) -> str | None:
    return found[PAGE - 1].page.uuid if len(found) > PAGE else None


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
