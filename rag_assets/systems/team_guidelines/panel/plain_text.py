"""The plain text: shown with its tokens, saved unless somebody else saved meanwhile."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.responses import HTMLResponse, Response

from rag_assets.common.errors import TextRefused, VersionChanged, VersionMissing
from rag_assets.common.tokens import count_text
from rag_assets.panel.frame import Visit
from rag_assets.systems.team_guidelines.panel.room import Room, room_of
from rag_assets.systems.team_guidelines.texts import MAX_TEXT, GuidelineTexts, require_usable

MOST_BYTES = 16 * MAX_TEXT
"""Of a form: a character takes up to twelve bytes there."""

_CONFLICT = 412
_UNPROCESSABLE = 422


async def shown_text(room: Room) -> dict[str, Any]:
    """What the left panel shows."""

    def read() -> dict[str, Any]:
        found = _texts(room).get(room.visit.tenant_id)
        text = found.text if found else ""
        return {
            "stored": found,
            "text": text,
            "version": found.version if found else "",
            "tokens": count_text(text),
            "most": MAX_TEXT,
            "problems": (),
            "conflict": False,
        }

    return await room.read(read)


async def save(visit: Visit) -> Response:
    """Save the text; where it was changed meanwhile, both are shown and nothing is lost."""
    room = await room_of(visit)
    # Browsers send the ends of lines as two characters.
    text = visit.field("text").replace("\r\n", "\n")
    version = visit.field("version")
    texts = _texts(room)
    try:
        await room.read(partial(require_usable, text, visit.backend.retriever.masker))
        replaces = {version} if version else None
        await room.write(partial(texts.put, room.project.ref, text, by=room.by, replaces=replaces))
    except TextRefused as error:
        return await _again(room, text, version, _UNPROCESSABLE, problems=error.problems)
    except (VersionChanged, VersionMissing):
        return await _again(room, text, None, _CONFLICT, conflict=True)
    if _by_script(visit):
        return visit.html("text.html", done=True, **await shown_text(room))
    return visit.redirect("?done=saved")


async def tokens(visit: Visit) -> Response:
    """How many tokens a text has that is being written."""
    room = await room_of(visit)
    text = visit.field("text").replace("\r\n", "\n")
    count = await room.read(partial(count_text, text[: MAX_TEXT + 1]))
    return HTMLResponse(f"{count:,} tokens")


async def _again(
    room: Room,
    text: str,
    version: str | None,
    status: int,
    *,
    problems: tuple[str, ...] = (),
    conflict: bool = False,
) -> Response:
    """The form with what was written, not with what is stored.

    Args:
        room: of the page.
        text: that was written.
        version: that it was written upon; None: the one that is stored now.
        status: of the response; for the script, which shows it, none of an error.
        problems: of the text.
        conflict: whether another text was saved meanwhile.
    """
    shown = await shown_text(room)
    count = await room.read(partial(count_text, text[: MAX_TEXT + 1]))
    shown |= {"text": text, "tokens": count, "problems": problems, "conflict": conflict}
    shown |= {} if version is None else {"version": version}
    if _by_script(room.visit):
        return room.visit.html("text.html", done=False, **shown)
    return room.visit.html("text_page.html", status, done=False, **shown)


def _texts(room: Room) -> GuidelineTexts:
    return GuidelineTexts(room.visit.backend.catalog.database)


def _by_script(visit: Visit) -> bool:
    return "hx-request" in visit.request.headers
