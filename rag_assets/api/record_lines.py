"""The endpoint for many pushed records at once, with a JSON object on each line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, ClassVar

from fastapi import APIRouter, Query, Request

from rag_assets.api.dependencies import BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded, open_to_writers, require_few_values, whole_body
from rag_assets.api.invalid_fields import invalid_fields
from rag_assets.api.middleware import replayed
from rag_assets.api.problems import Refused, documented
from rag_assets.api.record_routes import MOST_VALUES, REFUSED, drafting_of
from rag_assets.api.responses import RecordLine, RecordLines
from rag_assets.api.write_model import RecordQuery, named_versions
from rag_assets.common.errors import UnknownDocument, VersionChanged
from rag_assets.common.invalid_values import InvalidFields, invalid
from rag_assets.ingest.sources.record_bodies import BODIES
from rag_assets.records.drafts import Draft, Drafting, parse_clock
from rag_assets.records.text_records import SOURCE_ID, SOURCE_TYPE
from rag_assets.records.writing import BULK, Outcome, write_drafts

MOST_LINES = 1_000
MOST_BYTES = 16 * 1024 * 1024
_BULK_SECONDS = 60.0
_NDJSON = "application/x-ndjson"


class Bulk(Guarded):
    """A guarded route for a body with many lines."""

    most_bytes: ClassVar[int] = MOST_BYTES

    async def admitted(self, request: Request) -> Request:
        """Return the request for the handler, after reading its body."""
        body = await whole_body(request, seconds=_BULK_SECONDS, most=self.most_bytes)
        return Request(request.scope, replayed(body, request.receive))


record_lines = APIRouter(prefix="/rag", tags=["writing"], responses=REFUSED, route_class=Bulk)


@record_lines.post(
    "/records",
    responses=documented(400, 408, 409, 413),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                _NDJSON: {
                    "schema": {
                        "type": "string",
                        "description": "A JSON object a line: `op` (put or delete), `type`, `id`,"
                        " `if_match`, and what a single write has.",
                    }
                }
            },
        }
    },
)
@open_to_writers
async def write_records(
    request: Request,
    parameters: Annotated[RecordQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> RecordLines:
    """Push and delete many records, with a JSON object on each line. For admins and writers.

    A request may have at most 1,000 lines. The lines are applied in their order, in one
    transaction; an invalid line does not stop the others. Records that are pushed singly are
    indexed before records that are pushed here.
    """
    tenant_id = request.state.tenant = identity.written(parameters.tenant)
    sent = enumerate((await request.body()).split(b"\n"), start=1)
    lines = {number: line for number, line in sent if line.strip()}
    if len(lines) > MOST_LINES:
        raise Refused(413, f"send at most {MOST_LINES:,} lines at once")
    if lines:
        backend.written.take(identity.name, len(lines))
    names = request.app.state.description.names

    def write() -> RecordLines:
        drafting, known = drafting_of(backend, tenant_id, parameters.source)
        drafts = [*_drafts(drafting, lines.values())]
        outcomes = write_drafts(
            backend.catalog, backend.blobs, known.ref, drafts, by=identity.name, lane=BULK
        )
        found = (_line(*one, names) for one in zip(lines, outcomes, strict=True))
        return RecordLines(tuple(found))

    return await backend.write(tenant_id, write)


def _drafts(drafting: Drafting, lines: Iterable[bytes]) -> Iterator[Draft | InvalidFields]:
    for line in lines:
        try:
            yield _draft(drafting, line)
        except InvalidFields as error:
            yield error


def _draft(drafting: Drafting, line: bytes) -> Draft:
    try:
        values = json.loads(line, parse_constant=_no_number)
        require_few_values(line, most=MOST_VALUES)
    except (ValueError, RecursionError):
        raise invalid("body", "it is not JSON") from None
    except Refused as error:
        raise invalid("body", str(error.detail)) from None
    if not isinstance(values, dict):
        raise invalid("body", "it must be a JSON object")
    named = {name: values.pop(name, None) for name in ("op", "type", "id")}
    for name, value in named.items():
        if not isinstance(value, str) or not _NAMED[name](value):
            raise invalid(name, _PROBLEMS[name])
    if_match = values.pop("if_match", None)
    if not isinstance(if_match, str | None):
        raise invalid("if_match", "it must be the ETag of the record")
    if named["op"] == "delete":
        page_uuid = values.pop("page_uuid", None)
        clock = parse_clock(values)
        if values:
            raise invalid(next(iter(values)), "there is no such field")
        draft = drafting.delete(named["type"], named["id"], page_uuid, clock)
    else:
        draft = drafting.put(named["type"], named["id"], values)
    return draft if if_match is None else replace(draft, etags=named_versions(if_match))


def _no_number(_: str) -> None:
    raise ValueError


_NAMED = {
    "op": lambda value: value in {"put", "delete"},
    "type": lambda value: SOURCE_TYPE.fullmatch(value) is not None,
    "id": lambda value: SOURCE_ID.fullmatch(value) is not None,
}
_PROBLEMS = {
    "op": "it must be put or delete",
    "type": f"it must be a type of records, in a workspace one of: {', '.join(BODIES)}",
    "id": "it must be text of up to 512 characters, without control characters",
}


def _line(number: int, outcome: Outcome, names: frozenset[str]) -> RecordLine:
    if isinstance(outcome, InvalidFields):
        errors = tuple(invalid_fields(outcome.errors, names | _NAMED.keys()))
        return RecordLine(number, "invalid", errors=errors)
    if isinstance(outcome, UnknownDocument):
        return RecordLine(number, "unknown-page")
    if isinstance(outcome, VersionChanged):
        return RecordLine(number, "changed-meanwhile")
    return RecordLine(number, outcome.outcome, outcome.document_id, etag=outcome.etag)
