"""The OpenAPI description of the service, rendered only once: anyone may read it without token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rag_assets.api.problems import MEDIA_TYPE

_FIRST_PROBLEM = 400


class Description:
    """A rendered OpenAPI description.

    Args:
        schema: schema from FastAPI, in which the media type of problem documents is corrected.

    Attributes:
        names: the names of all fields and parameters.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        _with_problems(schema)
        self.names = frozenset(_names(schema))
        self._body = bytes(JSONResponse(schema).body)

    async def response(self, _: Request) -> Response:
        """Return the description as a response."""
        return Response(self._body, media_type="application/json")


def _with_problems(schema: dict[str, Any]) -> None:
    for path in schema["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                content = response.get("content", {})
                if int(status) >= _FIRST_PROBLEM and "application/json" in content:
                    content[MEDIA_TYPE] = content.pop("application/json")


def _names(schema: Mapping[str, Any]) -> Iterator[str]:
    for model in schema["components"]["schemas"].values():
        for name, field in model.get("properties", {}).items():
            yield name
            if "const" in field:
                yield field["const"]
    for path in schema["paths"].values():
        for operation in path.values():
            yield from (parameter["name"] for parameter in operation.get("parameters", ()))
            for content in operation.get("requestBody", {}).get("content", {}).values():
                yield from content.get("schema", {}).get("properties", ())
