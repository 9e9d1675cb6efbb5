"""Files that pages load: styles, scripts and the icon; each address contains the file's digest."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from rag_assets.panel.settings import PATH

_TYPES = {
    "panel.css": "text/css; charset=utf-8",
    "panel.js": "text/javascript; charset=utf-8",
    "unsaved.js": "text/javascript; charset=utf-8",
    "vendor/htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_FOR_EVER = "public, max-age=31536000, immutable"
_DIGITS = 16
_GONE = 404


def address_of(name: str) -> str:
    """Return the path from which browsers load a file."""
    return f"{PATH}/assets/{_digest(name)}/{name}"


async def asset(request: Request) -> Response:
    """Return a file; anyone may load it."""
    name = request.path_params["name"]
    if name not in _TYPES or request.path_params["digest"] != _digest(name):
        return PlainTextResponse("There is no such file.\n", _GONE)
    return Response(_content(name), headers={"Cache-Control": _FOR_EVER}, media_type=_TYPES[name])


@cache
def _content(name: str) -> bytes:
    return files("rag_assets.panel").joinpath("static", *name.split("/")).read_bytes()


@cache
def _digest(name: str) -> str:
    return hashlib.sha256(_content(name)).hexdigest()[:_DIGITS]
