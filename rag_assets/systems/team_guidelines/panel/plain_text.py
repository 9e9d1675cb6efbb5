"""The page that shows a project's plain text, and saves it unless it was changed meanwhile."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.responses import HTMLResponse, Response

from rag_assets.common.errors import VersionChanged
from rag_assets.common.tokens import count_text
from rag_assets.panel.frame import Visit
from rag_assets.systems.team_guidelines.errors import TextRefused, VersionMissing
from rag_assets.systems.team_guidelines.panel.room import Room, open_room
from rag_assets.systems.team_guidelines.texts import (
    MAX_CHARACTERS,
    GuidelineTexts,
    require_usable,
)

MAX_FORM_BYTES = 16 * MAX_CHARACTERS
"""Maximum bytes of the form, in which a character takes up to twelve bytes."""

_CONFLICT = 412
_UNPROCESSABLE = 422


async def show_text(room: Room) -> dict[str, Any]:
    """Return the variables of the text's template."""

    def read() -> dict[str, Any]:
        stored = _create_texts(room).get(room.visit.tenant_id)
        text = stored.text if stored else ""
        return {
            "stored": stored,
            "text": text,
            "version": stored.version if stored else "",
            "tokens": count_text(text),
            "most": MAX_CHARACTERS,
            "problems": (),
            "conflict": False,
        }

    return await room.read(read)


async def save(visit: Visit) -> Response:
    """Save the text; after a conflicting change, show both texts and lose neither."""
    room = await open_room(visit)
    text, version = _read_submitted_text(visit), visit.field("version")
    texts = _create_texts(room)
    try:
        await room.read(partial(require_usable, text, visit.backend.retriever.masker))
        replaces = {version} if version else None
        put = partial(texts.put, room.project.ref, text, by=room.user, replaces=replaces)
        await room.write(put)
    except TextRefused as error:
        return await _show_again(room, text, version, _UNPROCESSABLE, problems=error.problems)
    except (VersionChanged, VersionMissing):
        return await _show_again(room, text, None, _CONFLICT, conflict=True)
    if _is_from_script(visit):
        return visit.html("text.html", done=True, **await show_text(room))
    return visit.redirect("?done=saved")


async def count_tokens(visit: Visit) -> Response:
    """Return the number of tokens of the text in the form."""
    room = await open_room(visit)
    count = await room.read(partial(count_text, _read_submitted_text(visit)[: MAX_CHARACTERS + 1]))
    return HTMLResponse(f"{count:,} tokens")


async def _show_again(
    room: Room,
    text: str,
    version: str | None,
    status: int,
    *,
    problems: tuple[str, ...] = (),
    conflict: bool = False,
) -> Response:
    """Show the form with the unsaved text.

    Args:
        version: the version that was edited; None stands for the version that is stored now.
        status: HTTP status of the whole page; a request by the script, which shows the form itself,
            gets 200.
        conflict: whether a different text was saved meanwhile.
    """
    shown = await show_text(room)
    count = await room.read(partial(count_text, text[: MAX_CHARACTERS + 1]))
    shown |= {"text": text, "tokens": count, "problems": problems, "conflict": conflict}
    shown |= {} if version is None else {"version": version}
    if _is_from_script(room.visit):
        return room.visit.html("text.html", done=False, **shown)
    return room.visit.html("text_page.html", status, done=False, **shown)


def _read_submitted_text(visit: Visit) -> str:
    # Browsers send each line end as two characters.
    return visit.field("text").replace("\r\n", "\n")


def _create_texts(room: Room) -> GuidelineTexts:
    return GuidelineTexts(room.visit.backend.catalog.database)


def _is_from_script(visit: Visit) -> bool:
    return "hx-request" in visit.request.headers
