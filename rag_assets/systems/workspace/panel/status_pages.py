"""The first page, with switch and queue, and the pages of warnings and settings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final, get_args

from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response

from rag_assets.api.knowledge_routes import status_of_records
from rag_assets.api.model import Reindex
from rag_assets.api.write_routes import reindexed
from rag_assets.common.errors import (
    ConfiguredByOperator,
    InvalidRequest,
    NoVectorBackend,
    UnknownDocument,
)
from rag_assets.common.formatting import counted, duration
from rag_assets.models.embedding.model_folder import DEFAULT_MODEL
from rag_assets.models.providers.local import E5_MODEL
from rag_assets.panel.frame import Visit
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.workspace.panel.room import PAGE, Room, open_room, query_text
from rag_assets.systems.workspace.settings import (
    SettingsDraft,
    SettingsService,
    build_settings_response,
)
from rag_assets.tenants.application_settings import Provider, VectorBackend
from rag_assets.tenants.problems import problem_of

_REINDEX: Final[TypeAdapter[Reindex]] = TypeAdapter(Reindex)
_UNDER_WAY: Final = frozenset({"BUILDING", "COMPLETE", "HELD"})
_LATEST: Final = 5
_SWITCHED: Final = {
    "on": "It is on. The whole workspace is indexed again.",
    "off": "It is off. Questions are answered with that, and nothing is indexed.",
}
_UNPROCESSABLE: Final = 422


@dataclass(frozen=True, slots=True)
class Replacement:
    """A build that will replace the serving build.

    Attributes:
        embedder: embedder of the new build.
        former: the embedder of the serving build; None if no build serves.
        documents, of_documents: documents in the build, and in total.
    """

    embedder: str
    former: str | None
    documents: int
    of_documents: int


async def overview(visit: Visit) -> Response:
    """Show switch, status, warnings, and forms to index documents again."""
    done = _SWITCHED.get(visit.request.query_params.get("done", ""), "")
    count = visit.request.query_params.get("again", "")
    if count.isascii() and count.isdecimal() and len(count) <= len("1000000"):
        done = f"{counted(int(count), 'document')} will be indexed again."
    return await _render_overview(await open_room(visit), done=done)


async def status(visit: Visit) -> Response:
    """Return only the status, for the script."""
    room = await open_room(visit)
    return visit.html("status.html", **await room.read(lambda: _read_status(room)))


async def switch(visit: Visit) -> Response:
    """Switch the workspace on or off; ask for confirmation before switching off."""
    room = await open_room(visit)
    on = visit.field("enabled") == "yes"
    if not on and not visit.field("confirmed"):
        return visit.html("switch_off.html")
    service = SettingsService.from_backend(visit.backend)
    draft = SettingsDraft(enabled=on)
    try:
        await room.write(lambda: service.change(room.record.id, draft, room.by))
    except ConfiguredByOperator:
        said = "The operator has switched this workspace off. Ask them to switch it on."
        return await _render_overview(room, problem=said, code=409)
    return visit.redirect(f"?done={'on' if on else 'off'}")


async def reindex(visit: Visit) -> Response:
    """Request that documents are indexed again; if a model waits, show its cost first."""
    room = await open_room(visit)
    scope, id_ = visit.field("scope"), visit.field("id").strip()
    body: dict[str, Any] = {"scope": scope} if scope == "workspace" else {"scope": scope, "id": id_}
    try:
        wanted = _REINDEX.validate_python(body)
    except ValidationError:
        return await _render_overview(
            room, problem="There is no page or database of that id.", code=_UNPROCESSABLE
        )
    if scope == "workspace" and not visit.field("confirmed"):
        found = await room.read(lambda: _read_status(room))
        if found["told"].pending_model is not None:
            return visit.html("new_model.html", **found)
    catalog = visit.backend.catalog
    try:
        done = await room.write(lambda: reindexed(catalog, room.record.id, wanted, room.by))
    except (UnknownDocument, InvalidRequest) as error:
        return await _render_overview(room, problem=f"{error.advice}.", code=404)
    return visit.redirect(f"?again={done.documents}")


async def _render_overview(
    room: Room, *, done: str = "", problem: str = "", code: int = 200
) -> Response:
    def read() -> dict[str, Any]:
        warnings = room.visit.backend.catalog.events.page(
            room.record.id,
            kinds={"secret_dropped", "secret_masked"},
            limit=_LATEST,
            readers=room.caller.principals,
        )
        return {**_read_status(room), "warnings": warnings}

    return room.visit.html(
        "overview.html", code, **await room.read(read), done=done, problem=problem
    )


def _read_status(room: Room) -> dict[str, Any]:
    catalog, record = room.visit.backend.catalog, room.record
    found = status_of_records(catalog, record, readers=None)
    settings = build_settings_response(record)
    build = _find_replacement(catalog, record)
    filling = found.backfilled is False and not found.disabled
    return {
        "told": found,
        "settings": settings,
        "build": build,
        "filling": filling,
        "moves": not found.disabled and bool(found.queue_depth or build or filling),
        "duration": duration,
    }


def _find_replacement(catalog: Catalog, record: TenantRecord) -> Replacement | None:
    builds = catalog.generations.live(record.id)
    made = [build for build in builds if build.state in _UNDER_WAY]
    if not made:
        return None
    newest = made[-1]
    answering = next((build for build in builds if build.state == "SERVING"), None)
    progress = catalog.build_progress.read(record.id, {newest.number: None})[newest.number]
    return Replacement(
        newest.embedder_id,
        None if answering is None else answering.embedder_id,
        progress.documents,
        progress.of_documents,
    )


_LONGEST = 18


async def warnings(visit: Visit) -> Response:
    """List all warnings, newest first; leave out URLs of documents that the user cannot read."""
    room = await open_room(visit)
    after = query_text(visit, "after")
    before = (
        int(after) if after.isascii() and after.isdecimal() and len(after) <= _LONGEST else None
    )
    found = await room.read(
        partial(
            visit.backend.catalog.events.page,
            room.record.id,
            kinds={"secret_dropped", "secret_masked"},
            before=before,
            limit=PAGE + 1,
            readers=room.caller.principals,
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


async def settings(visit: Visit) -> Response:
    """Show the settings in a form."""
    is_saved = visit.request.query_params.get("done") == "saved"
    done = "The settings are saved." if is_saved else ""
    return await _render_form(await open_room(visit), done=done)


async def save(visit: Visit) -> Response:
    """Save the form; invalid values are shown again with the problem, and not saved."""
    room = await open_room(visit)
    sent = {name: visit.field(name).strip() for name in _FIELDS}
    service = SettingsService.from_backend(visit.backend)
    try:
        draft = SettingsDraft.model_validate(
            {name: _parse_value(name, sent[name]) for name in _FIELDS}
        )
        await room.write(partial(service.change, room.record.id, draft, room.by))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return await _render_form(
            room, problem=_add_label(problem_of(first)), sent=sent, status=422
        )
    except (InvalidRequest, NoVectorBackend) as error:
        return await _render_form(room, problem=_add_label(error.advice), sent=sent, status=422)
    return visit.redirect("/settings?done=saved")


async def _render_form(
    room: Room,
    *,
    done: str = "",
    problem: str = "",
    sent: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    own: dict[str, Any] = {
        name: "" if (value := getattr(room.record.settings, name)) is None else str(value)
        for name in _FIELDS
    }
    return room.visit.html(
        "settings.html",
        status,
        settings=build_settings_response(room.record),
        form=own if sent is None else sent,
        done=done,
        problem=problem,
        providers=get_args(Provider),
        backends=get_args(VectorBackend),
        local_models=_LOCAL_MODELS,
        named=lambda name: _NAMES.get(name, name),
    )


def _add_label(problem: str) -> str:
    """Return a problem with the label of its field."""
    field, colon, rest = problem.partition(": ")
    return f"{_LABELS.get(field, field)}{colon}{rest}."


def _parse_value(name: str, text: str) -> str | int | None:
    if not text:
        return None
    is_number = text.isascii() and text.isdecimal() and len(text) <= len("1000000")
    return int(text) if name in _NUMBERS and is_number else text
