"""Pushed runs, and their retrieval."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rag_assets.common.invalid_values import InvalidFields
from rag_assets.systems.code_memory import run_retrieval
from rag_assets.systems.code_memory.manifests import FRAMEWORKS
from rag_assets.systems.code_memory.run_retrieval import build_metadata
from rag_assets.systems.code_memory.runs import MAX_EVENTS, MAX_LINE_BYTES, parse_events

CHANGE = {"id": "1", "kind": "file_updated", "path": "app/Models/Invoice.php"}


def lines(*events: Any) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def problems(body: bytes) -> list[tuple[tuple[Any, ...], str]]:
    with pytest.raises(InvalidFields) as raised:
        parse_events(body)
    return [(error["loc"], error["msg"]) for error in raised.value.errors]


def test_events_are_read_line_by_line() -> None:
    summary = {"id": "2", "kind": "final_summary", "summary": "Done.", "at": "2026-11-24T01:00:00Z"}
    first, second = parse_events(lines(CHANGE) + b"\r\n\n" + lines(summary)[:-1])
    assert (first.path, first.action, first.summary, first.at) == (CHANGE["path"], "", "", None)
    assert second.at is not None
    assert second.at.isoformat() == "2026-11-24T01:00:00+00:00"
    [event] = parse_events(lines({**CHANGE, "path": " ./app//Models/../Models/Invoice.php "}))
    assert event.path == CHANGE["path"], "a path is normalized"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no id": ({"kind": "file_updated", "path": "a"}, "id"),
    "an id with a slash": ({**CHANGE, "id": "a/b"}, "id"),
    "a number as id": ({**CHANGE, "id": 1}, "id"),
    "no such kind": ({**CHANGE, "kind": "file_moved"}, "kind"),
    "an absolute path": ({**CHANGE, "path": "/etc/passwd"}, "path"),
    "a path on a drive": ({**CHANGE, "path": "C:\\app\\a.php"}, "path"),
    "a path above": ({**CHANGE, "path": "app/../../secret"}, "path"),
    "no file": ({**CHANGE, "path": "./"}, "path"),
    "a path of two lines": ({**CHANGE, "path": "a\nb"}, "path"),
    "a zero byte": ({**CHANGE, "summary": "a\0b"}, "summary"),
    "an endless summary": ({**CHANGE, "summary": "a" * 20_001}, "summary"),
    "a time without its zone": ({**CHANGE, "at": "2026-11-24T01:00:00"}, "at"),
    "another field": ({**CHANGE, "scope": "public"}, "scope"),
}


@pytest.mark.parametrize(("event", "field"), REFUSED.values(), ids=list(REFUSED))
def test_an_error_names_the_line_and_field(event: dict[str, Any], field: str) -> None:
    [(where, problem)] = problems(lines(CHANGE, event))
    assert where == ("body", 2, field)
    assert problem.startswith("line 2: ")


WHOLE: dict[str, bytes] = {
    "no JSON": b"{" + b"secret",
    "no object": b"[]",
    "deep": b"[" * 50_000,
    "no UTF-8": b'{"id": "\xff"}',
    "a change of nothing": lines({"id": "2", "kind": "file_created"}),
    "a summary of a file": lines({**CHANGE, "kind": "final_summary", "summary": "x"}),
    "an empty summary": lines({"id": "2", "kind": "final_summary", "summary": " "}),
    "too long": b" " * (MAX_LINE_BYTES + 1) + b"{}",
}


@pytest.mark.parametrize("line", WHOLE.values(), ids=list(WHOLE))
def test_a_line_that_is_no_event_is_named_by_its_number(line: bytes) -> None:
    [(where, problem)] = problems(lines(CHANGE) + line)
    assert where == ("body", 2)
    assert problem.startswith("line 2: ")
    assert "secret" not in problem


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({**CHANGE, "id": 1}, "it must be a string"),
        ({**CHANGE, "id": "a/b"}, "it must begin with a letter or digit, and may contain only"),
        ({**CHANGE, "summary": "a\0"}, "it must not contain the character U+0000"),
        ({**CHANGE, "summary": "a" * 20_001}, "it is too long: 20000 characters at most"),
        ({**CHANGE, "other": 1}, "there is no such field"),
        ({"id": "1", "path": "a"}, "this field is needed"),
    ],
)
def test_an_invalid_field_names_its_allowed_values(event: dict[str, Any], text: str) -> None:
    [(_, problem)] = problems(lines(event))
    assert problem.replace(",000", "000").startswith(f"line 1: {text}")


def test_the_numbers_of_events_and_of_reported_problems_are_limited() -> None:
    assert problems(b"\n \n") == [(("body", 1), "line 1: the request contains no event")]
    many = [{**CHANGE, "id": str(number)} for number in range(MAX_EVENTS + 1)]
    assert len(parse_events(lines(*many[:-1]))) == MAX_EVENTS
    [(where, _)] = problems(lines(*many))
    assert where == ("body", MAX_EVENTS + 1)
    assert len(problems(b"x\n" * 5_000)) == 50


def test_every_framework_has_a_package_and_languages_of_its_manager() -> None:
    managers = {manager for manager, _ in FRAMEWORKS}
    assert managers == run_retrieval._LANGUAGES.keys()
    # No two managers have a package of one name, of which a manifest would tell the wrong one.
    assert len(run_retrieval._PACKAGES) == len(FRAMEWORKS)


def test_without_hits_there_is_no_metadata() -> None:
    assert build_metadata(None, []) == []
