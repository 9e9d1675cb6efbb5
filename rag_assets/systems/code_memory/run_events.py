"""Events of runs as applications send them: one JSON object per line."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from rag_assets.common.invalid_values import InvalidFields
from rag_assets.common.times import boundary_of

MOST_BYTES: Final = 4 << 20
"""Maximum size in bytes of all events in a request."""
MOST_EVENTS: Final = 1_000
MOST_LINE: Final = 128 << 10
"""Maximum size of an event in bytes; several times that of the longest summary."""
_MOST_ERRORS: Final = 50

_PRINTABLE: Final = r"^[^\x00-\x1f\x7f]*$"
_DRIVE: Final = re.compile(r"[A-Za-z]:[/\\]")

EventKind: TypeAlias = Literal["file_created", "file_updated", "file_deleted", "final_summary"]


def _within(path: str) -> str:
    plain = posixpath.normpath(path)
    if path.startswith("/") or _DRIVE.match(path) or plain.split("/")[0] == ".." or plain == ".":
        raise ValueError("it must be the path of a file, relative to its repository")
    return plain


_EventId = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]*$", max_length=128)
]
FilePath = Annotated[
    str,
    StringConstraints(pattern=_PRINTABLE, min_length=1, max_length=1_000, strip_whitespace=True),
    AfterValidator(_within),
]
_Line = Annotated[str, StringConstraints(pattern=_PRINTABLE, max_length=200, strip_whitespace=True)]
_Summary = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=20_000)]
_Moment = Annotated[
    datetime,
    BeforeValidator(boundary_of),
    WithJsonSchema({"type": "string", "anyOf": [{"format": "date-time"}, {"format": "date"}]}),
]


class RunEvent(BaseModel):
    """An action of an agent in a run.

    Attributes:
        id: the id of the event within its run; a repeated id is known already and ignored.
        path: the path of the file, within its repository or as hits name it; not for a summary.
        action: the action in a few words.
        summary: the summary, in words; required for a final_summary.
        at: when; by default now.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: _EventId
    kind: EventKind
    path: FilePath | None = None
    action: _Line = ""
    summary: _Summary = ""
    at: _Moment | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> RunEvent:
        of_run = self.kind == "final_summary"
        if of_run and not self.summary.strip():
            raise ValueError("a final_summary needs a summary")
        if of_run and self.path is not None:
            raise ValueError("a final_summary has no path")
        if not of_run and self.path is None:
            raise ValueError(f"a {self.kind} needs a path")
        return self


def parsed_events(body: bytes) -> tuple[RunEvent, ...]:
    """Return the events of a body, one per line; empty lines are skipped.

    Raises:
        InvalidFields: a line is not an event; names the line, from 1, and the field.
    """
    events: list[RunEvent] = []
    errors: list[Mapping[str, Any]] = []
    for number, line in enumerate(body.split(b"\n"), start=1):
        if not line.strip():
            continue
        if len(events) == MOST_EVENTS:
            errors.append(_error(number, f"at most {MOST_EVENTS:,} events are taken at once"))
        elif len(line) > MOST_LINE:
            errors.append(_error(number, f"an event has at most {MOST_LINE:,} bytes"))
        else:
            try:
                events.append(RunEvent.model_validate_json(line))
            except ValidationError as error:
                errors += _located(number, error)
        if len(errors) >= _MOST_ERRORS:
            break
    if not events and not errors:
        errors.append(_error(1, "there is no event"))
    if errors:
        raise InvalidFields(errors)
    return tuple(events)


def refused(number: int, field: str, problem: str) -> InvalidFields:
    """Return the error for one field of an event."""
    return InvalidFields([_error(number, problem, field)])


def _error(number: int, problem: str, *field: str) -> Mapping[str, Any]:
    where = ("body", number, *field)
    return {"type": "value_error", "loc": where, "msg": f"line {number}: {problem}"}


def _located(number: int, error: ValidationError) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for one in error.errors(include_url=False, include_input=False, include_context=False):
        # Pydantic's message about unreadable JSON may quote it.
        message = one["msg"].removeprefix("Value error, ")
        if one["type"] == "json_invalid":
            message = "it is not JSON"
        if one["type"] == "extra_forbidden":
            message = "there is no such field"
        where = ("body", number, *one["loc"])
        found.append({"type": "value_error", "loc": where, "msg": f"line {number}: {message}"})
    return found
