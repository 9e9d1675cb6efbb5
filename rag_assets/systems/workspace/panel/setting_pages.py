"""Pages of settings: the embedding model, the vector back end, how long comments are found."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, get_args

from pydantic import ValidationError
from starlette.responses import Response

from rag_assets.common.errors import InvalidRequest, NoVectorBackend
from rag_assets.models.embedding.e5 import E5_MODEL
from rag_assets.models.embedding.model_folder import DEFAULT_MODEL
from rag_assets.panel.frame import Visit
from rag_assets.systems.workspace.panel.room import Room, room_of
from rag_assets.systems.workspace.services import settings_service
from rag_assets.systems.workspace.settings import SettingsDraft
from rag_assets.tenants.application_settings import Provider, VectorBackend
from rag_assets.tenants.problems import problem_of

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
_DONE: Final = {"saved": "The settings are saved."}
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
    done = _DONE.get(visit.request.query_params.get("done", ""), "")
    return await _page(await room_of(visit), done=done)


async def save(visit: Visit) -> Response:
    """Save the form; invalid values are shown again with the problem, and not saved."""
    room = await room_of(visit)
    sent = {name: visit.field(name).strip() for name in _FIELDS}
    service = settings_service(visit.backend)
    try:
        draft = SettingsDraft.model_validate({name: _value(name, sent[name]) for name in _FIELDS})
        await room.write(partial(service.change, room.record.id, draft, room.by))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return await _page(room, problem=_told(problem_of(first)), sent=sent, status=422)
    except (InvalidRequest, NoVectorBackend) as error:
        return await _page(room, problem=_told(error.advice), sent=sent, status=422)
    return visit.redirect("/settings?done=saved")


async def _page(
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
        settings=settings_service(room.visit.backend).shown(room.record),
        form=own if sent is None else sent,
        done=done,
        problem=problem,
        providers=get_args(Provider),
        backends=get_args(VectorBackend),
        local_models=_LOCAL_MODELS,
        named=lambda name: _NAMES.get(name, name),
    )


def _told(problem: str) -> str:
    """Return a problem with the label of its field."""
    field, colon, rest = problem.partition(": ")
    return f"{_LABELS.get(field, field)}{colon}{rest}."


def _value(name: str, text: str) -> str | int | None:
    if not text:
        return None
    is_number = text.isascii() and text.isdecimal() and len(text) <= len("1000000")
    return int(text) if name in _NUMBERS and is_number else text
