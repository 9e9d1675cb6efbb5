"""Models: keys, which embedder follows, and the change of its provider."""

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic import SecretStr, ValidationError
from starlette.responses import Response

from rag_assets.common.errors import RagAssetsError
from rag_assets.common.formatting import duration
from rag_assets.models.providers.registry import WITH_KEYS, auto_embeddings
from rag_assets.panel.frame import Visit
from rag_assets.systems.team_guidelines.panel.changes import (
    ProviderChange,
    provider_change,
    replacement,
)
from rag_assets.systems.team_guidelines.panel.room import Room, room_of
from rag_assets.systems.team_guidelines.projects import ProjectScope

_NAMES = {"openai": "OpenAI", "gemini": "Google Gemini", "anthropic": "Anthropic"}
_DONE = {
    "set": "The key is stored. Test it to see that it works.",
    "worked": "The key works.",
    "deleted": "The key is deleted.",
    "changed": "The provider is changed. What was indexed before answers until all is embedded.",
}


async def models(visit: Visit) -> Response:
    """The page."""
    room = await room_of(visit)
    done = _DONE.get(visit.request.query_params.get("done", ""), "")
    return await _page(room, done=done)


async def progress(visit: Visit) -> Response:
    """How far the build under way is, for the script."""
    room = await room_of(visit)
    found = await room.read(partial(replacement, visit.backend.catalog, room.project))
    return visit.html("replacement.html", build=found)


async def set_key(visit: Visit) -> Response:
    """Set the project's own key of a provider."""
    room = await room_of(visit)
    key = SecretStr(visit.field("key").strip())
    keys = room.guidelines.keys
    try:
        await room.write(partial(keys.put, room.project.ref, visit.field("provider"), key))
    except RagAssetsError as error:
        return await _page(room, problem=error.advice, status=422)
    return visit.redirect("/models?done=set")


async def test_key(visit: Visit) -> Response:
    """Make one small call with a key."""
    room = await room_of(visit)
    provider = visit.field("provider")
    try:
        tested = await room.read(partial(room.guidelines.keys.test, room.project.ref, provider))
    except RagAssetsError as error:
        return await _page(room, problem=error.advice, status=422)
    if not tested.worked:
        return await _page(room, problem=f"The key does not work: {tested.reason}")
    return await _page(room, done=f"The key works: answered in {tested.latency_ms:,} ms.")


async def delete_key(visit: Visit) -> Response:
    """Delete the project's own key of a provider; asked first."""
    room = await room_of(visit)
    provider = visit.field("provider")
    if not visit.field("confirmed"):
        return visit.html("delete_key.html", provider=provider, name=_name(provider))
    try:
        await room.write(partial(room.guidelines.keys.delete, room.project.ref, provider))
    except RagAssetsError as error:
        return await _page(room, problem=error.advice, status=422)
    return visit.redirect("/models?done=deleted")


async def change_provider(visit: Visit) -> Response:
    """Change the provider of embeddings; what it costs is shown first."""
    room = await room_of(visit)
    provider = visit.field("provider")
    if provider not in _choices():
        return await _page(room, problem="There is no such provider of embeddings.", status=422)
    try:
        change = await room.read(
            partial(provider_change, visit.backend.catalog, room.project, provider)
        )
        if not visit.field("confirmed"):
            return await _page(room, change=change)
        scope = ProjectScope(tenants=frozenset({visit.tenant_id}))
        put = partial(room.guidelines.projects.put, scope, room.project.project_id)
        await room.write(partial(put, {"provider": provider}))
    except ValidationError:
        return await _page(room, problem="There is no such provider of embeddings.", status=422)
    except RagAssetsError as error:
        return await _page(room, problem=error.advice, status=422)
    return visit.redirect("/models?done=changed")


def _choices() -> tuple[str, ...]:
    """Return the providers that an admin chooses from; only an operator sets the local model."""
    return ("auto", *auto_embeddings())


async def _page(
    room: Room,
    *,
    done: str = "",
    problem: str = "",
    change: ProviderChange | None = None,
    status: int = 200,
) -> Response:
    def read() -> dict[str, Any]:
        key = room.guidelines.keys.state(room.project)
        return {
            "key": key,
            "project": room.guidelines.projects.view(room.project, key),
            "keys": room.guidelines.keys.of_project(room.project).keys,
            "build": replacement(room.visit.backend.catalog, room.project),
        }

    return room.visit.html(
        "models.html",
        status,
        **await room.read(read),
        done=done,
        problem=problem,
        change=change,
        providers=WITH_KEYS,
        choices=_choices(),
        provider_name=_name,
        duration=duration,
    )


def _name(provider: str) -> str:
    return _NAMES.get(provider, provider)
