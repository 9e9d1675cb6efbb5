"""A server that repeats everything it receives, wherever it can."""

from __future__ import annotations

import json
import logging
import traceback

import pytest
from werkzeug import Request, Response

from rag_assets.common.errors import ProviderError

from .conftest import KEY

TEXT = "a confidential sentence"
GEMINI_PATH = "/v1beta/models/gemini-embedding-001:batchEmbedContents"
OPENAI = {"provider": "openai-compatible", "model": "m", "dimensions": 3}


def echo(status: int):
    def handler(request: Request) -> Response:
        key = request.headers.get("Authorization") or request.headers.get("X-Goog-Api-Key")
        said = f"{key} {request.get_data(as_text=True)}".replace("\n", " ")
        error = {"message": said, "code": said, "type": said, "status": said, "details": [said]}
        headers = {"X-Request-Id": said, "X-Echo": said, "Location": "/?" + KEY, "Set-Cookie": said}
        response = Response(
            json.dumps({"error": error, "data": said, "embeddings": said}),
            headers=headers,
            content_type="application/json",
        )
        response.status = f"{status} {KEY}"
        return response

    return handler


@pytest.mark.parametrize("status", [200, 302, 400, 401, 404, 429, 500])
@pytest.mark.parametrize("options", [OPENAI, {"provider": "gemini"}], ids=lambda o: o["provider"])
def test_neither_key_nor_text_appears_anywhere(httpserver, ask, caplog, capfd, options, status):
    path = "/v1/embeddings" if options is OPENAI else GEMINI_PATH
    httpserver.expect_request(path).respond_with_handler(echo(status))
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ProviderError) as caught:
        ask(**options, texts=[TEXT])
    assert httpserver.log
    ours = [r for r in caplog.records if not r.name.startswith("werkzeug")]
    assert any(record.name.startswith("httpx2") for record in ours)
    told = [
        *traceback.format_exception(caught.value),
        repr(caught.value),
        str(caught.value.__dict__),
        *(record.getMessage() + str(record.exc_info) for record in ours),
        capfd.readouterr().out,
    ]
    assert KEY not in "".join(told)
    assert TEXT not in "".join(told)
