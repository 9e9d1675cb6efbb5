"""The OpenAPI description of the service."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response

from rag_assets.api.problems import MEDIA_TYPE

_FIRST_PROBLEM_STATUS = 400


def describe_body(media_type: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI description of a required body that the endpoint itself reads."""
    return {"requestBody": {"required": True, "content": {media_type: {"schema": schema}}}}


class Description:
    """The OpenAPI description of an application, rendered when it is first needed.

    Rendering takes up to a second, and few processes need it.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of all fields and parameters."""
        return frozenset(_iter_names(self._schema))

    async def respond(self, _: Request) -> Response:
        """Return the description as a response."""
        return Response(await to_thread(lambda: self._body), media_type="application/json")

    @cached_property
    def _body(self) -> bytes:
        return bytes(JSONResponse(self._schema).body)

    @cached_property
    def _schema(self) -> dict[str, Any]:
        schema = self._app.openapi()
        _correct_media_types(schema)
        return schema


def _correct_media_types(schema: dict[str, Any]) -> None:
    for path in schema["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                content = response.get("content", {})
                if int(status) >= _FIRST_PROBLEM_STATUS and "application/json" in content:
                    content[MEDIA_TYPE] = content.pop("application/json")


def _iter_names(schema: Mapping[str, Any]) -> Iterator[str]:
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
